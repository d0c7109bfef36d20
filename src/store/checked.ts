import { BOUNDS, isCanonicalUuid, isContactType, isCrmId } from '../../common/rules/field-rules.ts';
import { type Contact, isRegionCode, type RegionCode } from '../domain/contact.ts';
import {
  type Enquiry,
  enquiriesWithIds,
  MAX_ENQUIRIES,
  MAX_ENQUIRY_KEYS,
  type StoredEnquiries,
} from '../domain/enquiry.ts';
import { type Fingerprint, isFingerprint } from '../domain/fingerprint.ts';
import { type CountedLead, type ErasedLead, LEAD_STAGES, type Lead } from '../domain/lead.ts';
import { CHANGE_KINDS, isResentToOne, type LeadChange } from '../domain/lead-change.ts';
import type { EarlierCreation } from '../domain/lead-creation.ts';
import { ADDED_TEXTS, type OriginalFields, TEXT_FIELDS } from '../domain/lead-data.ts';
import { isMatch, type LeadFilter } from '../domain/lead-filter.ts';
import type { LeadInJson } from '../domain/public-lead.ts';
import { faultOfRequest, type LoggedRequest } from '../domain/request-log.ts';
import { type ReportUnreadable, UnreadableRecord } from './port/faults.ts';
import type { LeadRecord, LeadsOfContact } from './port/lead-reads.ts';

/*
 * Every record is checked when it is read, because the database may hold records that this release did not write. The
 * checks of leads are hand-written for speed. `records.ts` declares those of other records.
 */

/** A record as the database returns it, with fields of any type. */
export type Unchecked<Record> = { readonly [Field in keyof Record]: unknown };

export type Checked<Record> = Record | UnreadableRecord;

/** The range of a protobuf timestamp; milliseconds since 1970. */
const FIRST_TIME_MS = Date.parse('0001-01-01T00:00:00.000Z');
export const LAST_TIME_MS = Date.parse('9999-12-31T23:59:59.999Z');

export function readableOrThrow<Record>(record: Checked<Record>): Record {
  if (record instanceof UnreadableRecord) throw record;
  return record;
}

export function readableOrNull<Record>(record: Checked<Record>, report: ReportUnreadable): Record | null {
  if (!(record instanceof UnreadableRecord)) return record;
  report(record);
  return null;
}

/** Sorts the leads of a contact (null: erased) into readable and unreadable ones, and reports the latter. */
export function leadsOfContact(found: readonly (Checked<Lead> | null)[], report: ReportUnreadable): LeadsOfContact {
  const unreadable = found.filter((lead) => lead instanceof UnreadableRecord);
  for (const record of unreadable) report(record);
  const leads = found.filter((lead) => lead !== null && !(lead instanceof UnreadableRecord));
  return { leads: leads as Lead[], unreadable: unreadable.map(({ id }) => id) };
}

export function checkedLead(read: Unchecked<Lead>): Checked<Lead> {
  const field = faultOfLead(read);
  return field === undefined ? (read as Lead) : unreadable('lead', read, field);
}

/**
 * Returns the creation of a lead for its replay. An unreadable stage or time of change is replaced, because a replay
 * returns what was created.
 *
 * @param original the original texts, if the lead was corrected
 * @throws UnreadableRecord
 */
export function earlierCreation(
  read: Unchecked<Lead>,
  original: Unchecked<OriginalFields> | undefined,
  fingerprint: Unchecked<Fingerprint>,
): EarlierCreation {
  if (original) readableOrThrow(checkedOriginal(read, original));
  const isStageReadable = isOneOf(LEAD_STAGES, read.stage) && isTime(read.updatedAt);
  const readable = isStageReadable ? read : { ...read, stage: 'new', updatedAt: read.createdAt };
  const lead = readableOrThrow(checkedLead({ ...readable, ...original }));
  if (!isFingerprint(fingerprint)) throw unreadable('lead', read, 'fingerprint');
  return { lead, fingerprint };
}

export const checkedOriginal = (lead: Ids, original: Unchecked<OriginalFields>): Checked<OriginalFields> =>
  faultOfOriginal(original) ? unreadable('lead', lead, 'original') : (original as OriginalFields);

/** Returns all stored data of a lead; null: it was erased. Reports an unreadable one. */
export function leadRecord(
  lead: Checked<Lead> | null,
  given: Unchecked<OriginalFields> | undefined,
  idempotencyKey: string | undefined,
  report: ReportUnreadable,
): LeadRecord | 'unreadable' | null {
  if (lead === null) return null;
  const key = isCanonicalUuid(idempotencyKey) ? idempotencyKey : unreadable('lead', lead, 'idempotencyKey');
  const original = given ? checkedOriginal(lead, given) : null;
  const fault = [lead, key, original].find((each) => each instanceof UnreadableRecord);
  if (!fault) return { lead, idempotencyKey: key, original } as LeadRecord;
  report(fault);
  return 'unreadable';
}

/** Checks the enquiries of a lead, in stored form or as JSON. Leaves out unreadable ones. */
export function checkedEnquiries(read: unknown): StoredEnquiries {
  const { kept, keys } = Object(read) as Unchecked<StoredEnquiries>;
  const enquiryIn = (each: unknown): Enquiry[] => {
    const { time: stored, contact } = Object(each) as Unchecked<Enquiry>;
    const time = typeof stored === 'string' ? new Date(stored) : stored;
    const texts = storedTexts(Object(each));
    if (!isTime(time) || faultOfOriginal(texts) || !(contact === undefined || isContact(contact))) return [];
    return [{ time, ...(texts as OriginalFields), ...(contact && { contact }) }];
  };
  return {
    kept: Array.isArray(kept) ? kept.flatMap(enquiryIn).slice(-MAX_ENQUIRIES) : [],
    keys: Array.isArray(keys) ? keys.filter((key) => typeof key === 'string').slice(-MAX_ENQUIRY_KEYS) : [],
  };
}

/** Returns a lead with its enquiries, if it is readable and has any. @param read see checkedEnquiries */
export function withEnquiries<Read extends Checked<Lead> | null>(lead: Read, read: unknown): Read {
  if (read === undefined || lead === null || lead instanceof UnreadableRecord) return lead;
  const enquiries = enquiriesWithIds(lead.id, checkedEnquiries(read));
  return enquiries.length === 0 ? lead : { ...lead, enquiries };
}

/** Returns the id of the API key that created a lead, if it is readable. An unreadable one does not make the lead unreadable. */
export const creatingKey = (apiKeyId: unknown): { readonly apiKeyId?: string } =>
  isCanonicalUuid(apiKeyId) ? { apiKeyId } : {};

export function checkedCountedLead(read: Unchecked<CountedLead>): Checked<CountedLead> {
  if (!isCanonicalUuid(read.id)) return unreadable('lead', read, 'id');
  if (!isOneOf(LEAD_STAGES, read.stage)) return unreadable('lead', read, 'stage');
  if (read.sourceId !== null && !isCanonicalUuid(read.sourceId)) return unreadable('lead', read, 'sourceId');
  if (!isTime(read.createdAt)) return unreadable('lead', read, 'createdAt');
  return isTime(read.updatedAt) ? (read as CountedLead) : unreadable('lead', read, 'updatedAt');
}

/** Returns a lead, or null if it does not match the filter. */
export const matching = (filter: LeadFilter | undefined, lead: Checked<Lead> | null): Checked<Lead> | null =>
  filter && lead && !(lead instanceof UnreadableRecord) && !isMatch(filter, lead) ? null : lead;

/** Whether a lead with texts as JSON and ids as UUIDs is valid. May be false for a valid lead whose JSON is long because of escapes. */
export const isLeadInJson = (read: Unchecked<LeadInJson>): read is LeadInJson =>
  isJsonText(read.displayName, BOUNDS.displayName.max) &&
  isOneOf(LEAD_STAGES, read.stage) &&
  (read.note === 'null' || isJsonText(read.note, BOUNDS.note.max)) &&
  isTimeMs(read.createdAt) &&
  isTimeMs(read.updatedAt);

/** Whether JSON is a text that this service could have written. */
const isJsonText = (json: unknown, max: number): boolean =>
  typeof json === 'string' && json.startsWith('"') && isLength(json.length - 2, max);

function faultOfLead(read: Unchecked<Lead>): keyof Lead | undefined {
  if (!isCanonicalUuid(read.id)) return 'id';
  if (typeof read.studioId !== 'string') return 'studioId';
  if (!isContact(read.contact)) return 'contact';
  const original = faultOfOriginal(read);
  if (original) return original;
  if (!isOneOf(LEAD_STAGES, read.stage)) return 'stage';
  if (!isTime(read.createdAt)) return 'createdAt';
  return isTime(read.updatedAt) ? undefined : 'updatedAt';
}

export function checkedErasedLead(read: Unchecked<Lead>, erasedAt: unknown): Checked<ErasedLead> {
  const { id, studioId, stage, createdAt, updatedAt } = read;
  if (!isCanonicalUuid(id)) return unreadable('lead', read, 'id');
  if (!isOneOf(LEAD_STAGES, stage)) return unreadable('lead', read, 'stage');
  const areTimesReadable = [createdAt, updatedAt, erasedAt].every(isTime);
  if (!areTimesReadable) return unreadable('lead', read, 'erasedAt');
  return { id, studioId, stage, createdAt, updatedAt, erasedAt } as ErasedLead;
}

/** A delivery in the form of the database. */
interface StoredDelivery {
  readonly revision: unknown;
  readonly since: unknown;
  readonly kinds: object;
  readonly attempts: number;
}

/** Checks the changes of a lead. Leaves out unknown kinds and invalid times. */
export function checkedLeadChange(
  lead: Checked<Lead | ErasedLead>,
  { revision, since, kinds, attempts }: StoredDelivery,
): Checked<LeadChange> {
  if (lead instanceof UnreadableRecord) return lead;
  if (!Number.isSafeInteger(revision)) return unreadable('lead', lead, 'revision');
  const times = Object.entries(kinds).map(([kind, time]) => [isResentToOne(kind) ? 'resent' : kind, time] as const);
  const timeByKind = new Map<string, unknown>(times);
  const known = CHANGE_KINDS.flatMap((kind) => {
    const time = timeByKind.get(kind);
    return isTime(time) ? [{ kind, time }] : [];
  });
  return {
    lead,
    revision: revision as number,
    since: isTime(since) ? since : lead.createdAt,
    kinds: known.sort((a, b) => a.time.getTime() - b.time.getTime()),
    attempts,
  };
}

/** Returns the texts of a stored record, possibly from a release without the added ones. */
export function storedTexts(read: Unchecked<OriginalFields>): Unchecked<OriginalFields> {
  const isOlder = (field: keyof OriginalFields) => read[field] === undefined && ADDED_TEXTS.includes(field);
  return Object.fromEntries(TEXT_FIELDS.map((field) => [field, isOlder(field) ? null : read[field]])) as typeof read;
}

const faultOfOriginal = (read: Unchecked<OriginalFields>): keyof OriginalFields | undefined =>
  TEXT_FIELDS.find((field) => {
    const value = read[field];
    // Only the name is required.
    if (value === null && field !== 'displayName') return false;
    return field === 'sourceId' ? !isCanonicalUuid(value) : !isText(value, BOUNDS[field].max);
  });

/** The types of a field in a store. */
export type Kind = 'text' | 'uuid' | 'int' | 'bool' | 'time' | 'bytes' | 'words' | 'json' | 'retention';

/** A field of any record; see Field. */
export interface AnyField<Value = unknown> {
  readonly kind: Kind;
  /** Whether the value may be null. */
  readonly nullable?: true;
  /** Whether a value other than null is readable. */
  readonly isValid: (value: unknown) => boolean;
  /** Replaces an unreadable value. Absent: null replaces it, or the record has no readable parts. */
  readonly replacement?: Value;
  /** Whether the field is also replaced when another one is unreadable. */
  readonly isAlwaysReplaced?: true;
  /** Returns the usable part of a stored value; undefined: it is unreadable. */
  readonly readPart?: (value: unknown) => Value | undefined;
  /** The value for a document without the field, and for a row whose INSERT does not name it. */
  readonly absent?: Value;
  /** The column; default: the name in snake case. */
  readonly column?: string;
}

type Field<Value> = AnyField<Value> &
  (null extends Value ? { readonly nullable: true } : { readonly nullable?: never });

/** The fields of a record, in the order of their checks. */
export type Fields<Record> = { readonly [Name in keyof Record]-?: Field<Record[Name]> };

/** A kind of record, with the rules by which both stores check, read and write it. */
export interface RecordType<Record> {
  readonly kind: UnreadableRecord['kind'];
  readonly table: string;
  readonly fields: Fields<Record>;
  /** Returns the ids that name the record in an error; default: its own. */
  readonly toIds?: (read: Unchecked<Record>) => Ids;
}

const isReadable = ({ nullable, isValid }: AnyField, value: unknown): boolean =>
  value === null ? nullable === true : isValid(value);

export function checked<Record>({ kind, fields, toIds }: RecordType<Record>, read: Unchecked<Record>): Checked<Record> {
  for (const name in fields) {
    if (!isReadable(fields[name], read[name])) return unreadable(kind, toIds?.(read) ?? (read as unknown as Ids), name);
  }
  return read as Record;
}

/** Returns a record with its unreadable parts replaced; null: one of them has no replacement. */
export function readableParts<Record>(fields: Fields<Record>, read: Unchecked<Record>): Record | null {
  const parts: Partial<Record> = {};
  for (const name in fields) {
    const { replacement, isAlwaysReplaced, ...field } = fields[name] as AnyField;
    const value = !isAlwaysReplaced && isReadable(field, read[name]) ? read[name] : replacement;
    if (value === undefined && !field.nullable) return null;
    parts[name] = (value ?? null) as Record[typeof name];
  }
  return parts as Record;
}

/** Returns a record, or the readable parts of an unreadable one, which it reports. */
export function checkedInParts<Record>(
  type: RecordType<Record>,
  read: Unchecked<Record>,
  report: ReportUnreadable,
): Checked<Record> {
  const found = checked(type, read);
  if (!(found instanceof UnreadableRecord)) return found;
  const parts = readableParts(type.fields, read);
  if (parts !== null) report(found);
  return parts ?? found;
}

export function checkedRequest(read: Unchecked<LoggedRequest>): Checked<LoggedRequest> {
  const field = faultOfRequest(read);
  return field === undefined ? (read as LoggedRequest) : unreadable('request', read, field);
}

interface Ids {
  readonly studioId: unknown;
  readonly id: unknown;
}

function unreadable(kind: UnreadableRecord['kind'], { studioId, id }: Ids, field: string): UnreadableRecord {
  return new UnreadableRecord(kind, { studioId: idOrNone(studioId), id: idOrNone(id) }, field);
}

/** Replaces an invalid id, because it may contain personal data. */
const idOrNone = (id: unknown) => (isCanonicalUuid(id) || isCrmId(id) ? id : '?');

/** Formats a UUID. @param hex 32 digits, in lower case */
export const uuidOfHex = (hex: string): string =>
  `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;

/** Whether this service could have written a text: a code point has at most two UTF-16 units. */
export const isText = (value: unknown, max: number): value is string =>
  typeof value === 'string' && isLength(value.length, max);

const isLength = (length: number, max: number): boolean => length >= 1 && length <= 2 * max;

export const isOneOf = <Word>(words: readonly Word[], value: unknown): value is Word => words.includes(value as Word);

export const isRegion = (value: unknown): value is RegionCode | null =>
  value === null || (typeof value === 'string' && isRegionCode(value));

function isContact(value: unknown): value is Contact {
  if (typeof value !== 'object' || value === null) return false;
  const { type, value: text } = value as Unchecked<Contact>;
  return isContactType(type) && isText(text, BOUNDS[type].max);
}

export const isTime = (value: unknown): value is Date => value instanceof Date && isTimeMs(value.getTime());

const isTimeMs = (ms: unknown): boolean => typeof ms === 'number' && ms >= FIRST_TIME_MS && ms <= LAST_TIME_MS;
