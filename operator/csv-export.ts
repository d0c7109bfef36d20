import { stringify } from 'csv-stringify/sync';
import { CONTACT_TYPES } from '../common/rules/field-rules.ts';
import type { Lead } from '../src/domain/lead.ts';
import { DATA_FIELDS } from '../src/domain/lead-data.ts';

/** The columns of an export, in order. */
export const COLUMNS = [
  'id',
  'studioId',
  ...DATA_FIELDS.flatMap((field) => (field === 'contact' ? CONTACT_TYPES : field)),
  'stage',
  'createTime',
  'updateTime',
  'enquiries',
  'apiKeyId',
] as const;

/** Characters that end a cell or a record for some programs, unless the cell is quoted. */
const BREAKS = /[\r\n\t;]/;

/** Text that a spreadsheet would run as a formula, in either character width. Leading apostrophes do not change that. */
const FORMULA = /^'*[=+\-@\t\r\n＝＋－＠]/u;

/**
 * Returns a cell that no spreadsheet runs: puts an apostrophe before a formula. A text that already has apostrophes before a formula gets
 * another one, so that each cell restores to exactly one text.
 */
export const disarm = (text: string): string => (FORMULA.test(text) ? `'${text}` : text);

/** Returns the text of a cell, as the inverse of `disarm`. */
export const restore = (cell: string): string => (cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell);

export const CSV_HEADER = formatCsv([COLUMNS]);

/** Formats leads as records of RFC 4180. */
export const formatLeads = (leads: readonly Lead[]): string =>
  formatCsv(leads.map((lead) => toCells(lead).map((text) => text && disarm(text))));

/** Returns a lead's values in column order; null means no value. */
function toCells({ id, studioId, contact, stage, createdAt, updatedAt, enquiries, apiKeyId, ...texts }: Lead) {
  const contacts = CONTACT_TYPES.map((type) => (type === contact.type ? contact.value : null));
  const data = DATA_FIELDS.flatMap((field) => (field === 'contact' ? contacts : texts[field]));
  const times = [createdAt, updatedAt].map((time) => time.toISOString());
  return [id, studioId, ...data, stage, ...times, enquiries ? JSON.stringify(enquiries) : null, apiKeyId ?? null];
}

function formatCsv(records: readonly (readonly (string | null)[])[]): string {
  return stringify([...records] as unknown[], { record_delimiter: 'windows', quoted_match: BREAKS });
}
