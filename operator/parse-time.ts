/** The forms of time that a person may give. */
export const TIME_FORM = 'a time with a zone, such as 2025-01-31T12:00:00Z, or a date, such as 2025-01-31 (UTC)';

const DATE = String.raw`\d{4}-\d{2}-\d{2}`;
const CLOCK = String.raw`([01]\d|2[0-3]):[0-5]\d:[0-5]\d`;
const ZONE = String.raw`Z|[+-](?:[01]\d|2[0-3]):[0-5]\d`;
const TIME = new RegExp(`^(?<date>${DATE})(?:T(?<clock>${CLOCK})(?<fraction>\\.\\d+)?(?<zone>${ZONE}))?$`, 'i');

/**
 * Parses an RFC 3339 time, or a date as midnight UTC. Rounds down to milliseconds. `Date` alone would guess: it reads 1 May as 5 January,
 * 31 February as a day of March, and a time without a zone as local time.
 *
 * @returns undefined for anything else, or a day that is not on the calendar
 */
export function parseTime(text: string): Date | undefined {
  const { date, clock = '00:00:00', fraction = '.000', zone = 'Z' } = TIME.exec(text)?.groups ?? {};
  if (date === undefined) return undefined;
  const day = new Date(`${date}T00:00:00Z`);
  if (Number.isNaN(day.getTime()) || !day.toISOString().startsWith(date)) return undefined;
  return new Date(`${date}T${clock}${fraction.slice(0, 4).padEnd(4, '0')}${zone.toUpperCase()}`);
}
