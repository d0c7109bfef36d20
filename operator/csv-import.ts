import type { Readable } from 'node:stream';
import { CONTACT_TYPES, isContactType, uuidFault } from '../common/rules/field-rules.ts';
import { LEAD_STAGES, type LeadStage } from '../src/domain/lead.ts';
import { readTexts } from '../src/domain/lead-data.ts';
import { idFrom } from '../src/domain/new-id.ts';
import type { LeadImport } from '../src/usecases/import-leads.ts';
import { CommandFault } from './command.ts';
import { COLUMNS, restore } from './csv-export.ts';
import { readCsvRecords } from './csv-records.ts';
import { parseTime, TIME_FORM } from './parse-time.ts';

/** The fields that columns may have. */
export const IMPORT_FIELDS: readonly string[] = [...COLUMNS, 'idempotencyKey'];

interface Column {
  readonly heading: string;
  /** Undefined: the column is ignored. */
  readonly field: string | undefined;
}

/**
 * Returns the columns of a file. If any is unclear, nothing is imported, because nobody would notice a dropped column.
 *
 * @throws CommandFault
 */
function readColumns(headings: readonly string[], { fields, ignoresOthers }: ImportReading): Column[] {
  refuse(
    [...fields.keys()].filter((heading) => !headings.includes(heading)),
    'missing column',
    'the option --columns names it, but the file does not have it',
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
    [...byField.values()].filter(({ length }) => length > 1).flatMap((same) => same.map(({ heading }) => heading)),
    'repeated column',
    'only displayName may have several columns, of different names',
  );
  for (const needed of [['displayName'], [...CONTACT_TYPES]]) {
    if (used.some(({ field }) => needed.some((name) => name === field))) continue;
    throw new CommandFault(`missing column ${needed.join(' or ')}: add it, or name one with --columns`);
  }
  return columns.map(({ heading, field }) => ({ heading, field }));
}

function refuse(headings: readonly string[], what: string, remedy: string): void {
  const names = headings.map((heading) => `"${heading}"`).join(', ');
  if (headings.length > 0) throw new CommandFault(`${what} ${names}: ${remedy}`);
}

/** A number that a spreadsheet has abbreviated, such as 4.93E+12: most of its digits are lost. */
const CUT_NUMBER = /^\d(?:[.,]\d+)?E\+\d+$/i;

/** A lead in a file, and the line where it begins. */
export interface LeadLine {
  readonly line: number;
  readonly lead: LeadImport;
}

/** A lead in a file, or what is wrong with its line. */
export type ImportLine = LeadLine | { readonly line: number; readonly fault: string };

export interface ImportReading {
  readonly studioId: string;
  /** Fields of columns by heading. An empty field ignores the column. */
  readonly fields: ReadonlyMap<string, string>;
  /** Whether to ignore columns that are neither in `fields` nor known. */
  readonly ignoresOthers: boolean;
  /** Called with the headings of ignored columns. */
  readonly onIgnored: (headings: readonly string[]) => void;
}

/** Reads the leads of a CSV file. @throws CommandFault, the error of reading */
export async function* readCsvLeads(input: Readable, reading: ImportReading): AsyncGenerator<ImportLine> {
  let columns: Column[] | undefined;
  for await (const { line, ...record } of readCsvRecords(input)) {
    if (columns) {
      yield 'fault' in record
        ? { line, fault: record.fault }
        : parseLead(columns, record.cells, line, reading.studioId);
    } else {
      if ('fault' in record) throw new CommandFault(`line ${line}, the header, ${record.fault}`);
      columns = readColumns(record.cells, reading);
      const ignored = columns.filter(({ field }) => field === undefined).map(({ heading }) => heading);
      if (ignored.length > 0) reading.onIgnored(ignored);
    }
  }
  if (!columns) throw new CommandFault('the file is empty: the first line must name its columns');
}

function parseLead(columns: readonly Column[], cells: readonly string[], line: number, studioId: string): ImportLine {
  const fields = new Map<string, string>();
  for (const [index, { heading, field }] of columns.entries()) {
    const text = restore(cells[index] as string);
    // The derived idempotency key covers the whole line, including ignored columns.
    const name = field ?? heading;
    if (text === '' || (field === undefined && IMPORT_FIELDS.includes(heading))) continue;
    fields.set(name, fields.has(name) ? `${fields.get(name)} ${text}` : text);
  }
  const contacts = CONTACT_TYPES.flatMap((type) => {
    const value = fields.get(type);
    return value === undefined ? [] : [{ type, value }];
  });
  const faults = ['createTime', 'updateTime'].flatMap((name) => {
    const text = fields.get(name);
    return text === undefined || parseTime(text) ? [] : `${name} must be ${TIME_FORM}`;
  });
  if (contacts.length > 1) {
    faults.push('contact has both an email address and a phone number: a lead has one of them, so remove the other');
  }
  for (const name of ['id', 'phone'])
    if (CUT_NUMBER.test(fields.get(name) ?? ''))
      faults.push(`${name} is a number that a spreadsheet has cut: give its column the format text, and fill it again`);
  if (faults.length > 0) return { line, fault: faults.join(', ') };
  const [id, stage] = [fields.get('id'), fields.get('stage')];
  const uuid = id !== undefined && uuidFault(id) === undefined ? id.toLowerCase() : undefined;
  // Earlier releases derived the key from the id in the file's letter case.
  const otherKeys = uuid
    ? [id, uuid.toUpperCase()].filter((each) => each !== uuid).map((each) => deriveKey(each, studioId))
    : [];
  return {
    line,
    lead: {
      // Ids of other systems are not UUIDs.
      leadId: uuid,
      idempotencyKey: fields.get('idempotencyKey') ?? deriveKey(uuid ?? id ?? toRecord(fields), studioId),
      otherKeys: fields.has('idempotencyKey') ? [] : otherKeys,
      ...readTexts({ displayName: '', ...Object.fromEntries(fields) }),
      contact: contacts[0],
      stage: stage === undefined ? 'new' : parseStage(stage),
      createdAt: parseTime(fields.get('createTime') ?? ''),
      updatedAt: parseTime(fields.get('updateTime') ?? ''),
    },
  };
}

/** Derives an idempotency key from a record's id, or from all its fields, so that an import can be repeated. */
const deriveKey = (record: unknown, studioId: string): string => idFrom(`${studioId}\0${JSON.stringify(record)}`);

/** Returns a lead's fields in the form from which an earlier release derived its key. */
function toRecord(fields: ReadonlyMap<string, string>): object {
  const others = [...fields].filter(([name]) => !isContactType(name));
  const contact = CONTACT_TYPES.flatMap((type) => (fields.has(type) ? [[type, fields.get(type)]] : []));
  return { ...Object.fromEntries(others), contact: Object.fromEntries(contact) };
}

/** Parses a stage by its name in the public API or in the RPCs. */
const parseStage = (stage: string): LeadStage | undefined =>
  LEAD_STAGES.find((known) => known === stage || `LEAD_STAGE_${known.toUpperCase()}` === stage);
