import { createHash } from 'node:crypto';
import { createInterface } from 'node:readline';
import { parse } from 'csv-parse';
import { CONTACT_TYPES, type Contact } from '../src/domain/contact.ts';
import { LEAD_STAGES, type LeadStage } from '../src/domain/lead.ts';
import type { LeadImport } from '../src/usecases/import-leads.ts';
import { restored } from './csv.ts';

/** A lead of a file, or what is wrong with the line on which it begins. */
export type ImportLine = { readonly line: number } & ({ readonly lead: LeadImport } | { readonly fault: string });

/** The fields of a record, whatever stands in them: those of an export, and idempotencyKey. */
type Fields = Readonly<Record<string, unknown>>;

/** Reads leads from what was exported, or made like it. */
export const IMPORT_FORMATS = { ndjson: ndjsonLines, csv: csvLines } as const;

async function* ndjsonLines(input: NodeJS.ReadableStream, studioId: string): AsyncGenerator<ImportLine> {
  let line = 0;
  for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    line += 1;
    if (text.trim() === '') continue;
    const record = parsed(text);
    yield record ? { line, ...leadOf(record, studioId) } : { line, fault: 'is no object in JSON' };
  }
}

async function* csvLines(input: NodeJS.ReadableStream, studioId: string): AsyncGenerator<ImportLine> {
  const parser = input.pipe(
    parse({ bom: true, columns: true, info: true, relax_column_count: true, skip_empty_lines: true }),
  );
  let line = 2;
  for await (const { record, info } of parser as AsyncIterable<{
    record: Record<string, string>;
    info: { lines: number };
  }>) {
    const cells = Object.entries(record).filter(([, cell]) => cell !== '');
    const { email, phone, ...fields } = Object.fromEntries(cells.map(([name, cell]) => [name, restored(cell)]));
    yield { line, ...leadOf({ ...fields, contact: { email, phone } }, studioId) };
    line = info.lines + 1;
  }
}

function parsed(text: string): Fields | undefined {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function leadOf(fields: Fields, studioId: string): { readonly lead: LeadImport } | { readonly fault: string } {
  const { id, idempotencyKey = keyOf(id ?? fields, studioId), displayName, contact, sourceId, note } = fields;
  const stage = fields.stage === undefined ? 'new' : stageOf(fields.stage);
  const times = { createdAt: timeOf(fields.createTime), updatedAt: timeOf(fields.updateTime) };
  if (Object.values(times).includes(null)) return { fault: 'has a time that is none' };
  return {
    lead: {
      idempotencyKey: String(idempotencyKey),
      displayName: textOf(displayName) ?? '',
      contact: contactOf(contact),
      sourceId: textOf(sourceId),
      note: textOf(note),
      stage,
      createdAt: times.createdAt ?? undefined,
      updatedAt: times.updatedAt ?? undefined,
    },
  };
}

/** The same key for the same record of a studio, so that an import can be done again: by its id, or by all that it has. */
function keyOf(record: unknown, studioId: string): string {
  const hash = createHash('sha256')
    .update(`${studioId}\0${JSON.stringify(record)}`)
    .digest('hex');
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}

/** In the words of the public API, or of the RPCs. */
const stageOf = (stage: unknown): LeadStage | undefined =>
  LEAD_STAGES.find((each) => each === stage || `LEAD_STAGE_${each.toUpperCase()}` === stage);

const textOf = (value: unknown): string | undefined =>
  value === undefined || value === null ? undefined : String(value);

function contactOf(contact: unknown): Contact | undefined {
  const given = CONTACT_TYPES.filter((type) => Object(contact)[type] !== undefined);
  const [type] = given;
  return type && given.length === 1 ? { type, value: String(Object(contact)[type]) } : undefined;
}

/** Undefined: there is none; null: it cannot be read. */
function timeOf(value: unknown): Date | undefined | null {
  if (value === undefined || value === null) return undefined;
  const time = new Date(String(value));
  return Number.isNaN(time.getTime()) ? null : time;
}
