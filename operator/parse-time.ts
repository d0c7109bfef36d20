/** What a person may give as a time. */
export const TIME_FORM = 'a time with a zone, such as 2025-01-31T12:00:00Z, or a date, such as 2025-01-31 (UTC)';

const DATE = String.raw`\d{4}-\d{2}-\d{2}`;
const CLOCK = String.raw`([01]\d|2[0-3]):[0-5]\d:[0-5]\d`;
const ZONE = String.raw`Z|[+-](?:[01]\d|2[0-3]):[0-5]\d`;
const TIME = new RegExp(`^(?<date>${DATE})(?:T(?<clock>${CLOCK})(?<fraction>\\.\\d+)?(?<zone>${ZONE}))?$`, 'i');

/**
 * Reads a time of RFC 3339, or a date as its midnight in UTC, in whole milliseconds, never later than given. `Date`
 * alone guesses: it takes the first of May for the fifth of January, moves 31 February to March, and takes a time
 * without a zone for one of this machine's.
 *
 * @returns undefined: something else, or a day that is not on the calendar
 */
export function parseTime(text: string): Date | undefined {
  const { date, clock = '00:00:00', fraction = '.000', zone = 'Z' } = TIME.exec(text)?.groups ?? {};
  if (date === undefined) return undefined;
  const day = new Date(`${date}T00:00:00Z`);
  // Of a day that a month does not have, Date makes one of the next month.
  if (Number.isNaN(day.getTime()) || !day.toISOString().startsWith(date)) return undefined;
  return new Date(`${date}T${clock}${fraction.slice(0, 4).padEnd(4, '0')}${zone.toUpperCase()}`);
}
