import { stringify } from 'csv-stringify/sync';
import type { Lead } from '../src/domain/lead.ts';

/** The columns of an export, in their order. */
const COLUMNS = [
  'id',
  'studioId',
  'displayName',
  'email',
  'phone',
  'sourceId',
  'note',
  'stage',
  'createTime',
  'updateTime',
] as const;

/** What some readers take for the end of a cell or of a record, unless it stands in quotes. */
const BREAKS = /[\r\n\t;]/;

/** What a spreadsheet would run: a formula, in either width, behind whatever stands in its way already. */
const FORMULA = /^'*[=+\-@\t\r\n＝＋－＠]/u;

/**
 * A text as a cell that no spreadsheet runs. One that begins as formulas do gets an apostrophe in front; so does one that begins
 * so behind apostrophes, so that each cell is the cell of one text.
 */
export const defused = (text: string): string => (FORMULA.test(text) ? `'${text}` : text);

/** The text of a cell. */
export const restored = (cell: string): string => (cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell);

/** The line above all others. */
export const CSV_HEADER = linesOf([COLUMNS]);

/** Leads as records of RFC 4180. */
export const csvLines = (leads: readonly Lead[]): string =>
  linesOf(leads.map((lead) => cellsOf(lead).map((text) => text && defused(text))));

/** A lead's texts, in the order of the columns; null: there is none. */
function cellsOf({ id, studioId, displayName, contact, sourceId, note, stage, createdAt, updatedAt }: Lead) {
  const { type, value } = contact;
  const [email, phone] = type === 'email' ? [value, null] : [null, value];
  const times = [createdAt.toISOString(), updatedAt.toISOString()];
  return [id, studioId, displayName, email, phone, sourceId, note, stage, ...times];
}

function linesOf(records: readonly (readonly (string | null)[])[]): string {
  return stringify([...records] as unknown[], { record_delimiter: 'windows', quoted_match: BREAKS });
}
