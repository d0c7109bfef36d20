import { createHash } from 'node:crypto';
import { createInterface } from 'node:readline';
import { pipeline, Readable } from 'node:stream';
import { parse } from 'csv-parse';
import { CONTACT_TYPES, type Contact } from '../src/domain/contact.ts';
import { LEAD_STAGES, type LeadStage } from '../src/domain/lead.ts';
import type { LeadImport } from '../src/usecases/import-leads.ts';
import { restored } from './csv.ts';

/** A lead of a file, or its fault, with the line on which it begins. */
export type ImportLine = { readonly line: number } & ({ readonly lead: LeadImport } | { readonly fault: string });

/** The unchecked fields of a record: those of an export, and idempotencyKey. */
type Fields = Readonly<Record<string, unknown>>;

/** The parsers of import files, by format. */
export const IMPORT_FORMATS = { ndjson: ndjsonLines, csv: csvLines } as const;

/** Reported rather than replaced: decoding another encoding as UTF-8 would silently corrupt names. */
const NOT_UTF8 = 'is not UTF-8: save the file in that encoding';

/*
 * Both formats are split with each byte as one character (Latin-1), because line and cell delimiters are the same in
 * UTF-8. Each text in between is then decoded separately.
 */

async function* ndjsonLines(input: Readable, studioId: string): AsyncGenerator<ImportLine> {
  let line = 0;
  for await (const bytes of createInterface({
    input: bytesOf(input).setEncoding('latin1'),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    line += 1;
    if (bytes.trim() === '') continue;
    const text = utf8Of(bytes);
    const record = text === undefined ? undefined : parsed(text);
    if (text === undefined) yield { line, fault: NOT_UTF8 };
    else yield record ? { line, ...leadOf(record, studioId) } : { line, fault: 'is not a JSON object' };
  }
}

async function* csvLines(input: Readable, studioId: string): AsyncGenerator<ImportLine> {
  const parser = parse({
    encoding: 'latin1',
    columns: true,
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
  });
  // The parser also throws read errors.
  pipeline(bytesOf(input), parser, () => {});
  let line = 2;
  for await (const { record, info } of parser as AsyncIterable<{
    record: Record<string, string>;
    info: { lines: number };
  }>) {
    const cells = Object.entries(record).filter(([, cell]) => cell !== '');
    const texts = cells.map(([name, cell]) => [name, utf8Of(cell)] as const);
    if (texts.some(([, text]) => text === undefined)) yield { line, fault: NOT_UTF8 };
    else {
      const restoredTexts = texts.map(([name, text]) => [name, restored(text ?? '')]);
      const { email, phone, ...fields } = Object.fromEntries(restoredTexts);
      yield { line, ...leadOf({ ...fields, contact: { email, phone } }, studioId) };
    }
    line = info.lines + 1;
  }
}

const BYTE_ORDER_MARK = Buffer.from('\u{feff}');

/** Returns the bytes of a file without a byte order mark. */
function bytesOf(input: Readable): Readable {
  return Readable.from(chunks(), { objectMode: false });

  async function* chunks(): AsyncGenerator<Buffer> {
    let head: Buffer | undefined = Buffer.alloc(0);
    for await (const chunk of input as AsyncIterable<Buffer>) {
      if (head) head = Buffer.concat([head, chunk]);
      else yield chunk;
      if (!head || head.length < BYTE_ORDER_MARK.length) continue;
      const isMarked = head.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
      const rest = head.subarray(isMarked ? BYTE_ORDER_MARK.length : 0);
      head = undefined;
      if (rest.length > 0) yield rest;
    }
    if (head?.length) yield head;
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes a text whose bytes were read as Latin-1; undefined when they are not UTF-8. */
function utf8Of(bytes: string): string | undefined {
  try {
    return UTF8.decode(Buffer.from(bytes, 'latin1'));
  } catch {
    return undefined;
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
  if (Object.values(times).includes(null)) return { fault: 'has an invalid createTime or updateTime' };
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

/** Derives an idempotency key from the id of a record, or from all its fields, so that an import can be repeated. */
function keyOf(record: unknown, studioId: string): string {
  const hash = createHash('sha256')
    .update(`${studioId}\0${JSON.stringify(record)}`)
    .digest('hex');
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}

/** Accepts the names of the public API and of the RPCs. */
const stageOf = (stage: unknown): LeadStage | undefined =>
  LEAD_STAGES.find((each) => each === stage || `LEAD_STAGE_${each.toUpperCase()}` === stage);

const textOf = (value: unknown): string | undefined =>
  value === undefined || value === null ? undefined : String(value);

function contactOf(contact: unknown): Contact | undefined {
  const given = CONTACT_TYPES.filter((type) => Object(contact)[type] !== undefined);
  const [type] = given;
  return type && given.length === 1 ? { type, value: String(Object(contact)[type]) } : undefined;
}

/** Undefined: missing; null: invalid. */
function timeOf(value: unknown): Date | undefined | null {
  if (value === undefined || value === null) return undefined;
  const time = new Date(String(value));
  return Number.isNaN(time.getTime()) ? null : time;
}
