import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { CONTACT_TYPES, type ContactType, isContactType, uuidFault } from '../common/rules/field-rules.ts';
import type { Contact } from '../src/domain/contact.ts';
import { LEAD_STAGES, type LeadStage } from '../src/domain/lead.ts';
import type { LeadImport } from '../src/usecases/import-leads.ts';
import { CommandFault } from './command.ts';
import { COLUMNS, restored } from './export-format.ts';
import { csvReader, importText, readRecords, restOfLine } from './import-records.ts';
import { parseTime, TIME_FORM } from './parse-time.ts';

/** The fields that a column may have. */
export const IMPORT_FIELDS: readonly string[] = [...COLUMNS, 'idempotencyKey'];

interface Column {
  readonly heading: string;
  /** Undefined: ignored. */
  readonly field: string | undefined;
}

/**
 * Returns the columns of a file. Of a file whose columns are unclear nothing is written: a column that is dropped would not be
 * noticed.
 *
 * @throws CommandFault
 */
function columnsOf(headings: readonly string[], { fields, ignoresOthers }: ImportReading): Column[] {
  refuse(
    [...fields.keys()].filter((heading) => !headings.includes(heading)),
    'missing column',
    'the option --columns names it, and the file does not have it',
  );
  const columns = headings.map((heading) => {
    const name = fields.get(heading) ?? heading;
    return {
      heading,
      field: IMPORT_FIELDS.includes(name) ? name : undefined,
      isIgnored: name === '' && heading !== '',
    };
  });
  const unknown = columns.filter(({ field, isIgnored }) => field === undefined && !isIgnored && !ignoresOthers);
  refuse(
    unknown.map(({ heading }) => heading),
    'unknown column',
    `the first line must name columns of ${IMPORT_FIELDS.join(', ')}; give others their fields with --columns, or add --ignore-other-columns`,
  );
  const used = columns.filter(({ field }) => field !== undefined);
  const byField = Map.groupBy(used, ({ heading, field }) => (field === 'displayName' ? `${field} ${heading}` : field));
  refuse(
    [...byField.values()].filter(({ length }) => length > 1).flatMap((each) => each.map(({ heading }) => heading)),
    'repeated column',
    'only displayName may have several columns, of different names',
  );
  for (const needed of [['displayName'], [...CONTACT_TYPES]]) {
    if (used.some(({ field }) => needed.some((each) => each === field))) continue;
    throw new CommandFault(`missing column ${needed.join(' or ')}: add it, or name one with --columns`);
  }
  return columns.map(({ heading, field }) => ({ heading, field }));
}

function refuse(headings: readonly string[], what: string, remedy: string): void {
  const names = headings.map((heading) => `"${heading}"`).join(', ');
  if (headings.length > 0) throw new CommandFault(`${what} ${names}: ${remedy}`);
}

/** A lead of a file, or its fault. */
type ReadLead = { readonly lead: LeadImport } | { readonly fault: string };

/** The same with the line on which it begins. */
export type ImportLine = { readonly line: number } & ReadLead;

export interface ImportReading {
  readonly studioId: string;
  /** The field of a column, by its heading; an empty one: ignored. */
  readonly fields: ReadonlyMap<string, string>;
  /** Whether columns that are neither named there nor known are ignored. */
  readonly ignoresOthers: boolean;
  /** Called with the headings of the columns that are ignored. */
  readonly onIgnored: (headings: readonly string[]) => void;
}

/** The parsers of import files, by format. */
export const IMPORT_FORMATS = { ndjson: ndjsonLines, csv: csvLines } as const;

/** The unchecked fields of a record: those of an export, and idempotencyKey. */
type Fields = Readonly<Record<string, unknown>>;

async function* ndjsonLines(input: Readable, { studioId }: ImportReading): AsyncGenerator<ImportLine> {
  const { pieces, decode, undecodable } = await importText(input);
  for await (const { line, ...record } of readRecords(pieces, restOfLine)) {
    if ('fault' in record) yield { line, fault: record.fault };
    else if (record.value.trim() !== '') yield { line, ...leadIn(decode(record.value)) };
  }

  function leadIn(text: string | undefined): ReadLead {
    if (text === undefined) return { fault: undecodable };
    const record = parsed(text);
    if (!record) return { fault: 'is not a JSON object' };
    const unknown = Object.keys(record).filter((name) => name !== 'contact' && !TEXTS.includes(name));
    if (unknown.length > 0) return { fault: `has unknown fields: ${unknown.join(', ')}` };
    return hasRepeatedFields(text, record) ? { fault: 'has a field twice' } : leadOf(record, studioId);
  }
}

/** The fields of a record besides the contact, which are texts. */
const TEXTS = IMPORT_FIELDS.filter((name) => !isContactType(name));

async function* csvLines(input: Readable, reading: ImportReading): AsyncGenerator<ImportLine> {
  const { pieces, decode, undecodable } = await importText(input);
  let columns: Column[] | undefined;
  for await (const { line, ...record } of readRecords(pieces, csvReader())) {
    const cells = 'value' in record ? record.value.map(decode) : [];
    const isReadable = cells.every((cell) => cell !== undefined);
    const fault = 'fault' in record ? record.fault : isReadable ? undefined : undecodable;
    // What spreadsheets write behind the last row that was used.
    if (!fault && cells.every((cell) => cell === '')) continue;
    if (columns) {
      yield { line, ...(fault === undefined ? leadIn(columns, cells as string[]) : { fault }) };
    } else {
      if (fault !== undefined) throw new CommandFault(`line ${line}, the header, ${fault}`);
      columns = columnsOf(cells as string[], reading);
      const ignored = columns.filter(({ field }) => field === undefined).map(({ heading }) => heading);
      if (ignored.length > 0) reading.onIgnored(ignored);
    }
  }
  if (!columns) throw new CommandFault('the file is empty: the first line must name its columns');

  function leadIn(columns: readonly Column[], cells: readonly string[]) {
    const fields = new Map<string, string>();
    for (const [index, { heading, field }] of columns.entries()) {
      const text = restored(cells[index] as string);
      // The key of a lead is derived from all of its line, columns that are ignored included.
      const name = field ?? heading;
      if (text === '' || (field === undefined && IMPORT_FIELDS.includes(heading))) continue;
      fields.set(name, fields.has(name) ? `${fields.get(name)} ${text}` : text);
    }
    const others = [...fields].filter(([name]) => !isContactType(name));
    const contact = Object.fromEntries(CONTACT_TYPES.map((type) => [type, fields.get(type)]));
    return leadOf({ ...Object.fromEntries(others), contact }, reading.studioId);
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

/** Whether a JSON text has a field twice, of which the parser keeps the last one only. */
function hasRepeatedFields(text: string, record: Fields): boolean {
  // Values are matched, too: a search that begins again within one takes the square of its quotes.
  const texts = [...text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)];
  return texts.filter(([, colon]) => colon !== undefined).length > countOfFields(record);
}

function countOfFields(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const values = Object.values(value);
  const own = Array.isArray(value) ? 0 : values.length;
  return values.reduce((count: number, each) => count + countOfFields(each), own);
}

function leadOf(record: Fields, studioId: string): ReadLead {
  const faults: string[] = [];
  const contact = contactOf(record.contact, faults);
  const texts: Record<string, string | undefined> = {};
  for (const name of TEXTS) texts[name] = textOf(record[name], name, faults);
  const createdAt = timeOf(texts.createTime, 'createTime', faults);
  const updatedAt = timeOf(texts.updateTime, 'updateTime', faults);
  if (texts.id === '') faults.push('id must not be empty');
  if (faults.length > 0) return { fault: faults.join(', ') };
  const { id, displayName = '', sourceId, note, stage } = texts;
  return {
    lead: {
      // Other systems have ids of other forms.
      leadId: id !== undefined && uuidFault(id) === undefined ? id : undefined,
      idempotencyKey: texts.idempotencyKey ?? keyOf(id ?? withoutAbsent(record), studioId),
      displayName,
      contact,
      sourceId,
      note,
      stage: stage === undefined ? 'new' : stageOf(stage),
      createdAt,
      updatedAt,
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

/**
 * Returns a record without what is the same as absent. Otherwise it is unchanged, because an earlier release derived
 * keys from it.
 */
function withoutAbsent({ idempotencyKey: _, ...record }: Fields): Fields {
  const contact = Object.fromEntries(Object.entries(Object(record.contact)).filter(([, value]) => isGiven(value)));
  return { ...record, contact };
}

/** Accepts the names of the public API and of the RPCs. */
const stageOf = (stage: string): LeadStage | undefined =>
  LEAD_STAGES.find((each) => each === stage || `LEAD_STAGE_${each.toUpperCase()}` === stage);

const isGiven = (value: unknown): boolean => value !== undefined && value !== null && value !== '';

/** Returns a text; null is absent. What is not a text is a fault: `String` would make `[object Object]` of it. */
function textOf(value: unknown, name: string, faults: string[]): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  faults.push(`${name} must be a string`);
  return undefined;
}

function timeOf(text: string | undefined, name: string, faults: string[]): Date | undefined {
  const time = text === undefined ? undefined : parseTime(text);
  if (text !== undefined && !time) faults.push(`${name} must be ${TIME_FORM}`);
  return time;
}

/** Returns the one contact that is given; an empty one is absent. */
function contactOf(contact: unknown, faults: string[]): Contact | undefined {
  if (contact === undefined || contact === null) return undefined;
  if (typeof contact !== 'object' || Array.isArray(contact)) {
    faults.push('contact must be an object');
    return undefined;
  }
  const fields = Object.entries(contact).filter(([, value]) => isGiven(value));
  const contacts = fields.flatMap(([name, each]) => {
    if (!isContactType(name)) faults.push(`contact has an unknown field: ${name}`);
    const value = isContactType(name) ? textOf(each, `contact.${name}`, faults) : undefined;
    return value !== undefined ? [{ type: name as ContactType, value }] : [];
  });
  if (contacts.length > 1) {
    faults.push('contact has both an e-mail address and a phone number: a lead has one of them, so remove the other');
  }
  return contacts[0];
}
