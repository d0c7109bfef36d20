import { InvalidArgumentError } from 'commander';
import { DAY_MS } from '../../common/units.ts';

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
  const date = new Date(value);
  if (!/^\d{4}-\d{2}-\d{2}(T|$)/.test(value) || Number.isNaN(date.getTime())) {
    throw new InvalidArgumentError('must be a date, such as 2025-01-31, or a time, such as 2025-01-31T12:00:00Z');
  }
  return date;
}

export function daysFromNow(days: number): Date {
  return new Date(Date.now() + days * DAY_MS);
}
