import { printable } from '../common/printable.ts';
import { crmIdFault, uuidFault } from '../common/rules/field-rules.ts';
import type { ExportPosition } from '../src/domain/cursor.ts';
import type { Lead } from '../src/domain/lead.ts';
import { CSV_HEADER, csvLines, restored } from './csv.ts';

/** A file format of exports. */
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
