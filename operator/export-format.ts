import { printable } from '../common/printable.ts';
import { crmIdFault, uuidFault } from '../common/rules/field-rules.ts';
import type { Lead } from '../src/domain/lead.ts';
import type { ExportPosition } from '../src/domain/resume-token.ts';
import { CSV_HEADER, csvLines, restored } from './csv.ts';

/** How leads are written. */
export interface ExportFormat {
  /** What stands above all leads. */
  readonly header: string;
  /** How all that is written so begins; so nothing else is taken for it. */
  readonly beginning: string;
  /** Whether a line may end within a pair of quotes, where that ends no record. */
  readonly hasQuotes: boolean;
  linesOf(leads: readonly Lead[]): string;
  /** The lead of a record, as it was written; undefined when it is none. */
  leadIn(record: string): ExportPosition | undefined;
}

/** A lead in the contract's JSON (`leadintake.v1.Lead`), in a line which a terminal shows as it is. */
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

/** Every format, by its name. */
export const EXPORT_FORMATS = { ndjson: NDJSON, csv: CSV } as const;

const positionAt = (leadId: unknown, studioId: unknown): ExportPosition | undefined =>
  typeof leadId === 'string' && typeof studioId === 'string' && !uuidFault(leadId) && !crmIdFault(studioId)
    ? { studioId, leadId }
    : undefined;
