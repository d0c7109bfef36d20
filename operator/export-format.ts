import { stringify } from 'csv-stringify/sync';
import { printable } from '../common/printable.ts';
import { CONTACT_TYPES, crmIdFault, uuidFault } from '../common/rules/field-rules.ts';
import type { ExportPosition } from '../src/domain/cursor.ts';
import type { Lead } from '../src/domain/lead.ts';

/** The columns of an export, in their order. */
export const COLUMNS = [
  'id',
  'studioId',
  'displayName',
  ...CONTACT_TYPES,
  'sourceId',
  'note',
  'stage',
  'createTime',
  'updateTime',
] as const;

/** Characters that end a cell or a record for some readers unless they are quoted. */
const BREAKS = /[\r\n\t;]/;

/** A text that a spreadsheet would run as a formula, in either character width, or such a text behind apostrophes. */
const FORMULA = /^'*[=+\-@\t\r\n＝＋－＠]/u;

/**
 * Returns a cell that no spreadsheet runs: a text that begins like a formula gets an apostrophe in front. So does such
 * a text behind apostrophes, so that each cell restores to one text.
 */
export const defused = (text: string): string => (FORMULA.test(text) ? `'${text}` : text);

/** Returns the text of a cell; the inverse of `defused`. */
export const restored = (cell: string): string => (cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell);

export const CSV_HEADER = linesOf([COLUMNS]);

/** Formats leads as records of RFC 4180. */
export const csvLines = (leads: readonly Lead[]): string =>
  linesOf(leads.map((lead) => cellsOf(lead).map((text) => text && defused(text))));

/** Returns the values of a lead in the order of the columns; null: no value. */
function cellsOf({ id, studioId, displayName, contact, sourceId, note, stage, createdAt, updatedAt }: Lead) {
  const contacts = CONTACT_TYPES.map((type) => (type === contact.type ? contact.value : null));
  return [
    id,
    studioId,
    displayName,
    ...contacts,
    sourceId,
    note,
    stage,
    createdAt.toISOString(),
    updatedAt.toISOString(),
  ];
}

function linesOf(records: readonly (readonly (string | null)[])[]): string {
  return stringify([...records] as unknown[], { record_delimiter: 'windows', quoted_match: BREAKS });
}

export interface ExportFormat {
  /** The text before all leads. */
  readonly header: string;
  /** The beginning of every file in this format, by which files are recognised. */
  readonly beginning: string;
  /** Whether a quoted line end does not end the record. */
  readonly hasQuotes: boolean;
  linesOf(leads: readonly Lead[]): string;
  /** Returns the position of the lead in a record; undefined when the record is invalid. */
  leadIn(record: string): ExportPosition | undefined;
}

/** Formats a lead in the JSON form of `leadintake.v1.Lead`, in a line without control characters. */
function jsonLine({ id, studioId, displayName, contact, sourceId, note, stage, createdAt, updatedAt }: Lead): string {
  const fields = {
    id,
    studioId,
    displayName,
    contact: { [contact.type]: contact.value },
    ...(sourceId !== null && { sourceId }),
    ...(note !== null && { note }),
    stage: `LEAD_STAGE_${stage.toUpperCase()}`,
    createTime: createdAt.toISOString(),
    updateTime: updatedAt.toISOString(),
  };
  return `${printable(JSON.stringify(fields))}\n`;
}

const NDJSON: ExportFormat = {
  header: '',
  beginning: '{"id":"',
  hasQuotes: false,
  linesOf: (leads) => leads.map(jsonLine).join(''),
  leadIn(record) {
    try {
      const { id, studioId } = Object(JSON.parse(record));
      return positionAt(id, studioId);
    } catch {
      return undefined;
    }
  },
};

const CSV: ExportFormat = {
  header: CSV_HEADER,
  beginning: CSV_HEADER,
  hasQuotes: true,
  linesOf: csvLines,
  leadIn(record) {
    const [id = '', studioId = ''] = record.split(',', 2);
    return positionAt(id, restored(studioId));
  },
};

export const EXPORT_FORMATS = { ndjson: NDJSON, csv: CSV } as const;

const positionAt = (leadId: unknown, studioId: unknown): ExportPosition | undefined =>
  typeof leadId === 'string' && typeof studioId === 'string' && !uuidFault(leadId) && !crmIdFault(studioId)
    ? { studioId, leadId }
    : undefined;
