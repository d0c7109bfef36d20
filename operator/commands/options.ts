import { type Command, InvalidArgumentError, Option } from 'commander';
import { DAY_MS } from '../../common/units.ts';
import { LEAD_STAGES, type LeadStage } from '../../src/domain/lead.ts';
import type { GivenLeadFilter } from '../../src/domain/lead-filter.ts';
import { CommandFault } from '../command.ts';
import { IMPORT_FIELDS } from '../csv-import.ts';
import { parseTime, TIME_FORM } from '../parse-time.ts';

/** The option of commands whose audit event may name a member. */
export const AUDITED_MEMBER = ['--member <id>', 'member to record in the audit log'] as const;

/** Requests per window. `default` is the gateways' setting. */
export type QuotaOption = number | 'default';

export const DEFAULT_QUOTA_HELP = '"default" for the setting of the gateways';

export function quotaOption(value: string): QuotaOption {
  return value === 'default' ? value : positiveInteger(value);
}

export function positiveInteger(value: string): number {
  if (!/^[1-9]\d*$/.test(value)) throw new InvalidArgumentError('must be a whole number, at least 1');
  return Number(value);
}

export function wholeNumber(value: string): number {
  if (!/^\d+$/.test(value)) throw new InvalidArgumentError('must be a whole number');
  return Number(value);
}

export function dateOrTime(value: string): Date {
  const time = parseTime(value);
  if (!time) throw new InvalidArgumentError(`must be ${TIME_FORM}`);
  return time;
}

/** Options that select leads. */
export interface FilterOptions {
  readonly stage?: readonly LeadStage[];
  readonly source?: readonly string[];
  readonly apiKey?: readonly string[];
  readonly createdSince?: Date;
  readonly createdBefore?: Date;
  readonly changedSince?: Date;
  readonly changedBefore?: Date;
}

export const addFilterOptions = (command: Command): Command =>
  command
    .addOption(new Option('--stage <stage...>', 'only leads in one of these stages').choices(LEAD_STAGES))
    .option('--source <id...>', 'only leads of one of these sources')
    .option('--api-key <id...>', 'only leads that one of these API keys created')
    .option('--created-since <time>', 'only leads created at this time or later', dateOrTime)
    .option('--created-before <time>', 'only leads created before', dateOrTime)
    .option('--changed-since <time>', 'only leads that last changed at this time or later', dateOrTime)
    .option('--changed-before <time>', 'only leads that last changed before', dateOrTime);

export const filterIn = ({ stage, source, apiKey, ...times }: FilterOptions): GivenLeadFilter => ({
  stages: stage ?? [],
  sourceIds: source ?? [],
  apiKeyIds: apiKey ?? [],
  created: { start: times.createdSince ?? null, end: times.createdBefore ?? null },
  updated: { start: times.changedSince ?? null, end: times.changedBefore ?? null },
});

/** Parses `heading=field`, and adds it to the columns given before. An empty field ignores the column. */
export function columnOption(value: string, others: ReadonlyMap<string, string> = new Map()): Map<string, string> {
  const [, heading, field] = /^(.+)=(\w*)$/s.exec(value) ?? [];
  if (heading === undefined || field === undefined || (field !== '' && !IMPORT_FIELDS.includes(field))) {
    throw new InvalidArgumentError(`must be "heading=field", where the field is ${IMPORT_FIELDS.join(', ')}, or empty`);
  }
  return new Map([...others, [heading, field]]);
}

/** @throws CommandFault when a `Date` cannot be that far ahead */
export function daysFromNow(days: number): Date {
  const time = new Date(Date.now() + days * DAY_MS);
  if (Number.isNaN(time.getTime())) throw new CommandFault('--days names a time that is too far ahead');
  return time;
}
