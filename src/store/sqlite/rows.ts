import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementResultingChanges } from 'node:sqlite';
import { BOUNDS, CONTACT_TYPES, type TextField } from '../../../common/rules/field-rules.ts';
import type { CountedLead, ErasedLead, Lead } from '../../domain/lead.ts';
import type { Delivery, PendingChange } from '../../domain/lead-change.ts';
import type { EarlierCreation, ErasedCreation } from '../../domain/lead-creation.ts';
import { type OriginalFields, TEXT_FIELDS } from '../../domain/lead-data.ts';
import { publicLead } from '../../domain/public-lead.ts';
import {
  type Checked,
  checkedCountedLead,
  checkedEnquiries,
  checkedErasedLead,
  checkedLead,
  checkedOriginal,
  creatingKey,
  earlierCreation,
  isLeadInJson,
  leadRecord,
  storedTexts,
  type Unchecked,
  uuidOfHex,
  withEnquiries,
} from '../checked.ts';
import type { EnquiredLead } from '../decisions/leads.ts';
import type { ReportUnreadable } from '../port/faults.ts';

/** A row in the driver's form. STRICT tables guarantee the column types; everything else is checked. */
export type ListRow = readonly SQLOutputValue[];

type Parameters = (SQLInputValue | Readonly<Record<string, SQLInputValue>>)[];

export interface Statement<Row extends ListRow> {
  run(...parameters: Parameters): StatementResultingChanges;
  get(...parameters: Parameters): Row | undefined;
  all(...parameters: Parameters): Row[];
  iterate(...parameters: Parameters): Iterable<Row>;
}

/**
 * Prepares a statement whose rows are arrays, which the driver creates faster than objects.
 *
 * @typeParam Row the types that STRICT tables and the SQL guarantee
 */
export type Prepare = <Row extends ListRow = ListRow>(sql: string) => Statement<Row>;

export const preparingIn =
  (database: DatabaseSync): Prepare =>
  <Row extends ListRow>(sql: string) => {
    const statement = database.prepare(sql);
    statement.setReturnArrays(true);
    return statement as unknown as Statement<Row>;
  };

/** Returns a condition for a studio's rows in the tables of leads. @param id the parameter with its id */
export const ofStudio = (id = '?') => `studio_number = (SELECT number FROM studio_numbers WHERE studio_id = ${id})`;

/** A condition for a lead, with its id as the parameter. */
export const BY_ID = "id = unhex(?, '-')";

/** The bound to which larger numbers are clamped. */
const MAX_READABLE = 9_000_000_000_000_000;

/**
 * Returns SQL that clamps an integer column to what the driver can read, because a larger number would fail the whole
 * query. Clamped values are beyond every valid time.
 */
export const number = (column: string) => `min(max(${column}, -${MAX_READABLE}), ${MAX_READABLE})`;

/** Returns the columns of a query, and their indices in its rows. @param sqlByName the SQL of each column */
export function columns<Name extends string>(sqlByName: Readonly<Record<Name, string>>) {
  const names = Object.keys(sqlByName) as Name[];
  const at = Object.fromEntries(names.map((name, index) => [name, index])) as Record<Name, number>;
  return { sqlByName, sql: names.map((name) => sqlByName[name]).join(', '), at };
}

export const toColumn = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

export const TEXT_COLUMNS = TEXT_FIELDS.map((field) => ({
  field,
  column: toColumn(field),
  isId: field === 'sourceId',
}));

export const LEAD_COLUMNS = columns({
  id: 'hex(leads.id)',
  ...(Object.fromEntries(
    TEXT_COLUMNS.map(({ field, column, isId }) => [
      field,
      isId ? `iif(${column} IS NULL, NULL, hex(${column}))` : column,
    ]),
  ) as Record<TextField, string>),
  contactType: 'contact_type',
  contactValue: 'contact_value',
  stage: 'stage',
  createdAt: number('created_at'),
  updatedAt: number('updated_at'),
  erasedAt: number('erased_at'),
  apiKeyId: 'hex(api_key_id)',
});

/**
 * The columns with a lead's personal data: how to write a value and read it from a lead, and what remains after an
 * erasure.
 */
export const PERSONAL: readonly {
  readonly column: string;
  readonly value: string;
  readonly readFrom: (lead: Lead) => string | null;
  readonly erased: string;
}[] = [
  ...TEXT_COLUMNS.map(({ field, column, isId }) => ({
    column,
    value: isId ? "unhex(?, '-')" : '?',
    readFrom: ({ [field]: text }: Lead) => (isId || text === null ? text : JSON.stringify(text)),
    erased: 'NULL',
  })),
  { column: 'contact_type', value: '?', readFrom: ({ contact }) => contact.type, erased: "''" },
  { column: 'contact_value', value: '?', readFrom: ({ contact }) => contact.value, erased: "''" },
];

const { id, sourceId, note, stage, createdAt, updatedAt, erasedAt, apiKeyId } = LEAD_COLUMNS.sqlByName;

/** The columns of a count. The first one is the id, as in LEAD_COLUMNS. */
export const COUNTED = [id, sourceId, stage, createdAt, updatedAt, erasedAt, apiKeyId].join();

/** The columns of a public lead. The name is NULL if the contact is unreadable. */
export const PUBLIC = [
  id,
  `iif(contact_type IN (${CONTACT_TYPES.map((type) => `'${type}'`)})
    AND length(contact_value) BETWEEN 1 AND ${BOUNDS.email.max}, display_name, NULL)`,
  sourceId,
  note,
  stage,
  createdAt,
  updatedAt,
  erasedAt,
].join();

/** Returns a public lead as JSON; null: it was erased; undefined: it may be unreadable. @param row PUBLIC */
export function publicLeadIn([id, displayName, sourceId, note, stage, createdAt, updatedAt, erasedAt]: ListRow) {
  if (erasedAt !== null) return null;
  if (!isUuid(id as string) || !(sourceId === null || isUuid(sourceId as string))) return undefined;
  const texts = { displayName, sourceId: idOrNull(sourceId), note: note ?? 'null' };
  const lead = { id: idText(id as string), ...texts, stage, createdAt, updatedAt };
  return isLeadInJson(lead) ? publicLead(lead) : undefined;
}

/** Whether bytes are a UUID with a version, as almost all are. @param hex from SQLite */
const isUuid = (hex: string): boolean => /^.{12}[1-8]...[89AB].{15}$/.test(hex);

/** @param row COUNTED */
export const countedLeadFromRow = (
  studioId: string,
  [id, sourceId, stage, createdAt, updatedAt, erasedAt, apiKeyId]: ListRow,
): Checked<CountedLead> | null =>
  erasedAt === null
    ? checkedCountedLead({
        id: idText(id as string),
        studioId,
        stage,
        sourceId: idOrNull(sourceId),
        createdAt: readDate(createdAt),
        updatedAt: readDate(updatedAt),
        ...creatingKey(idText(apiKeyId as string)),
      })
    : null;

export const WITH_ORIGINAL = columns({ ...LEAD_COLUMNS.sqlByName, original: 'original' });

/** The columns of a lead and of the request that created it. */
export const CREATION = columns({
  ...WITH_ORIGINAL.sqlByName,
  fingerprintVersion: number('fingerprint_version'),
  fingerprint: 'hex(fingerprint)',
});

/** The number of the lead is text, because another program may have written any integer. */
export const LEAD_WITH_PENDING = columns({
  ...WITH_ORIGINAL.sqlByName,
  revision: number('leads.revision'),
  since: number('changed_since'),
  kinds: 'change_kinds',
  number: 'CAST(leads.number AS TEXT)',
});

/** All columns of a lead except its fingerprint. Rows with fewer columns begin with the same ones. */
export const WHOLE_LEAD = columns({
  ...LEAD_WITH_PENDING.sqlByName,
  contactKeys: 'hex(contact_keys)',
  idempotencyKey: 'hex(idempotency_key)',
});

const { at } = WHOLE_LEAD;

export const presentLeadFromRow = (studioId: string, row: ListRow): Checked<Lead> | null =>
  isErased(row) ? null : checkedLead(leadIn(studioId, row));

/** Returns what presentLeadFromRow returns, with the lead's enquiries if the row has WITH_ORIGINAL. */
export const enquiredLeadFromRow = (studioId: string, row: ListRow): Checked<Lead> | null =>
  withEnquiries(presentLeadFromRow(studioId, row), enquiriesIn(row));

export const isErased = (row: ListRow): boolean => row[at.erasedAt] !== null;

export const leadIdFromRow = ([id]: ListRow): string => idText(id as string);

/** Returns the id of the last lead of a full page; null: the page is not full, so there are no more. */
export const lastIdOfFull = (rows: readonly ListRow[], limit: number): string | null =>
  rows.length < limit ? null : leadIdFromRow(rows.at(-1) as ListRow);

export const erasedLeadFromRow = (studioId: string, row: ListRow): Checked<ErasedLead> =>
  checkedErasedLead(leadIn(studioId, row), readDate(row[at.erasedAt]));

/** Returns the creation of a row's lead. @param row CREATION @throws UnreadableRecord */
export function creationFromRow(studioId: string, row: ListRow): EarlierCreation | ErasedCreation {
  if (isErased(row)) return { kind: 'erased' };
  const { fingerprintVersion, fingerprint: sha256 } = CREATION.at;
  const fingerprint = { version: row[fingerprintVersion], sha256: hashText(row[sha256] as string) };
  return earlierCreation(leadIn(studioId, row), originalIn(row), fingerprint);
}

/** Returns all stored data of a row's lead, as `leadRecord` does. @param row WHOLE_LEAD */
export const recordFromRow = (studioId: string, row: ListRow, report: ReportUnreadable) =>
  leadRecord(enquiredLeadFromRow(studioId, row), originalIn(row), idText(row[at.idempotencyKey] as string), report);

/** Returns the unchecked original texts; undefined: none are stored. @param row WITH_ORIGINAL */
function originalIn(row: ListRow): Unchecked<OriginalFields> | undefined {
  const json = row[at.original] as string | null;
  return json === null ? undefined : storedTexts(Object(objectIn(json)));
}

/** @param row LEAD_COLUMNS */
function textsIn(row: ListRow): Unchecked<OriginalFields> {
  const texts: { [field: string]: unknown } = {};
  for (const { field, isId } of TEXT_COLUMNS) {
    const value = row[at[field]];
    texts[field] = isId ? idOrNull(value) : textIn(value);
  }
  return texts as Unchecked<OriginalFields>;
}

/** Returns the text of a JSON column. Most texts need no escapes, and are read faster without a parser. */
function textIn(json: SQLOutputValue | undefined): unknown {
  if (typeof json !== 'string') return null;
  return json.startsWith('"') && !json.includes('\\') ? json.slice(1, -1) : objectIn(json);
}

const idOrNull = (hex: SQLOutputValue | undefined): string | null => (hex === null ? null : idText(hex as string));

function enquiriesIn(row: ListRow): unknown {
  const json = row[at.original];
  return typeof json === 'string' ? Object(objectIn(json)).enquiries : undefined;
}

export const originalJson = (original: OriginalFields): string => JSON.stringify(original, TEXT_FIELDS);

/** Returns a lead that prevents a creation, with the data to compare. @param row LEAD_WITH_PENDING */
export function enquiryTargetFromRow(studioId: string, row: ListRow): EnquiredLead {
  const original = originalIn(row);
  return {
    lead: presentLeadFromRow(studioId, row),
    pending: pendingFromRow(row),
    original: original ? checkedOriginal(leadIn(studioId, row), original) : null,
    enquiries: checkedEnquiries(enquiriesIn(row)),
  };
}

function leadIn(studioId: string, row: ListRow): Unchecked<Lead> {
  return {
    id: leadIdFromRow(row),
    studioId,
    ...textsIn(row),
    contact: { type: row[at.contactType], value: row[at.contactValue] },
    stage: row[at.stage],
    createdAt: readDate(row[at.createdAt]),
    updatedAt: readDate(row[at.updatedAt]),
    ...creatingKey(idText(row[at.apiKeyId] as string)),
  };
}

/** Returns the pending change of a lead as stored. @param row LEAD_WITH_PENDING, possibly with further columns */
export function pendingFromRow(row: ListRow): PendingChange {
  const [revision, since, kinds] = [row[at.revision], row[at.since], row[at.kinds]];
  return {
    revision: revision as number,
    since: timeOrNull(since),
    kinds: kinds === null ? { created: readDate(row[at.createdAt]) } : kindsIn(kinds as string),
  };
}

function kindsIn(json: string): PendingChange['kinds'] {
  const times = Object.entries(Object(objectIn(json))).filter(([, ms]) => typeof ms === 'number');
  return Object.fromEntries(times.map(([kind, ms]) => [kind, new Date(ms as number)]));
}

/** The assignments of an UPDATE that store pendingValues. */
export const SET_PENDING = 'revision = :revision, changed_since = :since, change_kinds = :kinds';

export const pendingValues = ({ revision, since, kinds }: PendingChange) => ({
  revision,
  since: since?.getTime() ?? null,
  kinds: kindsJson(kinds),
});

export const kindsJson = (kinds: PendingChange['kinds'] | Delivery['kinds']): string =>
  JSON.stringify(Object.fromEntries(Object.entries(kinds).map(([kind, time]) => [kind, Number(time)])));

export function objectIn(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

const readDate = (value: SQLOutputValue | undefined): Date => new Date(value as number);

const timeOrNull = (value: SQLOutputValue | undefined): Date | null => (value === null ? null : readDate(value));

/*
 * The tables of leads store ids and hashes as bytes, which take less than half of the space of texts.
 *
 * `unhex(?, '-')` turns the text of a UUID into bytes, and `hex(id)` back, because the driver returns texts twice as
 * fast as bytes. For an id of another length, which this service did not write, idText returns a unique other text.
 */

export const UUID_BYTES = 16;

const SHA256_BYTES = 32;

/** @param hex the result of `hex(id)` */
export function idText(hex: string): string {
  const text = hex.toLowerCase();
  return text.length === 2 * UUID_BYTES ? uuidOfHex(text) : text;
}

/** @param sha256 in base64url */
export function hashBytes(sha256: string): Buffer {
  const bytes = Buffer.from(sha256, 'base64url');
  if (bytes.length !== SHA256_BYTES) throw new RangeError('a hash must have 32 bytes');
  return bytes;
}

export const hashesBytes = (hashes: readonly string[]): Buffer => Buffer.concat(hashes.map(hashBytes));

/** Returns a hash as base64url; other bytes give a text that is not a hash. @param hex the result of `hex(hash)` */
export const hashText = (hex: string): string => Buffer.from(hex, 'hex').toString('base64url');

/** Splits concatenated hashes; undefined: the length is not a multiple of a hash's. @param hex the result of `hex(hashes)` */
export const hashesIn = (hex: string): string[] | undefined =>
  hex.length % (2 * SHA256_BYTES) === 0 ? (hex.match(/.{64}/g) ?? []).map(hashText) : undefined;
