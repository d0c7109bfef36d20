import { InvalidArgumentError } from 'commander';
import { DAY_MS } from '../../common/units.ts';
import { IMPORT_FIELDS } from '../csv-import.ts';
import { parseTime, TIME_FORM } from '../parse-time.ts';

/** The option of commands whose audit event may name a member. */
export const AUDITED_MEMBER = ['--member <id>', 'member to record in the audit log'] as const;

/** Requests per window; `default`: the setting of the gateways. */
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

/** Adds the field of a column, given as `heading=field`; an empty field: the column is ignored. */
export function columnOption(value: string, others: ReadonlyMap<string, string> = new Map()): Map<string, string> {
  const [, heading, field] = /^(.+)=(\w*)$/s.exec(value) ?? [];
  if (heading === undefined || field === undefined || (field !== '' && !IMPORT_FIELDS.includes(field))) {
    throw new InvalidArgumentError(`must be "heading=field", where the field is ${IMPORT_FIELDS.join(', ')}, or empty`);
  }
  return new Map([...others, [heading, field]]);
}

export function daysFromNow(days: number): Date {
  return new Date(Date.now() + days * DAY_MS);
}
