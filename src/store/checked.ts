import { BOUNDS, isCanonicalUuid, isContactType, isCrmId } from '../../common/rules/field-rules.ts';
import { isHint } from '../../common/rules/key-secret.ts';
import { isRequestId } from '../../common/rules/public-api.ts';
import { API_KEY_SCOPES, type ApiKey, type ApiKeyScope } from '../domain/api-key.ts';
import { AUDIT_ACTIONS, type AuditEvent } from '../domain/audit.ts';
import { type Backfill, CONSUMER_STARTS, type Consumer, consumerNameFault } from '../domain/consumer.ts';
import { type Contact, isRegionCode, type RegionCode } from '../domain/contact.ts';
import type { DatabaseEpoch } from '../domain/database-epoch.ts';
import {
  type Enquiry,
  type KeptEnquiries,
  MAX_ENQUIRIES,
  MAX_ENQUIRY_KEYS,
  namedEnquiries,
} from '../domain/enquiry.ts';
import { type Fingerprint, isFingerprint } from '../domain/fingerprint.ts';
import { type ErasedLead, LEAD_STAGES, type Lead } from '../domain/lead.ts';
import { CHANGE_KINDS, isResentToOne, type LeadChange } from '../domain/lead-change.ts';
import type { EarlierCreation } from '../domain/lead-creation.ts';
import { ADDED_TEXTS, type OriginalFields, TEXT_FIELDS } from '../domain/lead-data.ts';
import { isMatch, type LeadFilter } from '../domain/lead-filter.ts';
import type { LeadInJson } from '../domain/public-lead.ts';
import { faultOfRequest, type LoggedRequest } from '../domain/request-log.ts';
import {
  isQuotaLimit,
  isRetentionDays,
  type LeadSource,
  MEMBER_ROLES,
  type Member,
  type Retention,
  STUDIO_STATUSES,
  type Studio,
} from '../domain/studio.ts';
import { type ReportUnreadable, UnreadableRecord } from './port/faults.ts';
import type { CountedLead, LeadRecord, LeadsOfContact } from './port/lead-reads.ts';

/*
 * Every record is checked when it is read, because the database may hold records that this release did not write. The
 * checks are hand-written for speed: a page has a hundred leads.
 */

/** A record as the database returns it, with fields of any type. */
export type Unchecked<Record> = { readonly [Field in keyof Record]: unknown };

export type Checked<Record> = Record | UnreadableRecord;

/** Replaces the unreadable name of a key. */
export const NO_NAME = '(cannot be read)';

/** Replaces an unreadable time of a key; as an expiry, it is long past. */
export const NO_TIME = new Date(0);

/** The range of a protobuf timestamp; milliseconds since 1970. */
const FIRST_TIME_MS = Date.parse('0001-01-01T00:00:00.000Z');
const LAST_TIME_MS = Date.parse('9999-12-31T23:59:59.999Z');

const SHA256_BYTES = 32;

/** At least the length of the longest text of an event, that of a member with a role. */
const MAX_TEXT = 80;

export function readableOrThrow<Record>(record: Record): Exclude<Record, UnreadableRecord> {
  if (record instanceof UnreadableRecord) throw record;
  return record as Exclude<Record, UnreadableRecord>;
}

export function readableOrNull<Record>(
  record: Record,
  report: ReportUnreadable,
): Exclude<Record, UnreadableRecord> | null {
  if (!(record instanceof UnreadableRecord)) return record as Exclude<Record, UnreadableRecord>;
  report(record);
  return null;
}

/** Sorts the leads of a contact into readable and unreadable ones, and reports these; null: an erased one. */
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
 * @param original what it was created with, if it was corrected since
 * @throws UnreadableRecord
 */
export function earlierCreation(
  read: Unchecked<Lead>,
  original: Unchecked<OriginalFields> | undefined,
  fingerprint: Unchecked<Fingerprint>,
): EarlierCreation {
  if (original) readableOrThrow(checkedOriginal(read, original));
  const isStageReadable = isOneOf(LEAD_STAGES, read.stage) && isTime(read.updatedAt);
  const now = isStageReadable ? read : { ...read, stage: 'new', updatedAt: read.createdAt };
  const lead = readableOrThrow(checkedLead({ ...now, ...original }));
  if (!isFingerprint(fingerprint)) throw unreadable('lead', read, 'fingerprint');
  return { lead, fingerprint };
}

export const checkedOriginal = (
  lead: Pick<Unchecked<Lead>, 'id' | 'studioId'>,
  original: Unchecked<OriginalFields>,
): Checked<OriginalFields> =>
  faultOfOriginal(original) ? unreadable('lead', lead, 'original') : (original as OriginalFields);

/** Returns all that is kept of a lead; null: it was erased. An unreadable one is reported. */
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

/** Checks the enquiries of a lead, as they are stored, or as JSON. Those that cannot be read are left out. */
export function checkedEnquiries(read: unknown): KeptEnquiries {
  const { kept, keys } = Object(read) as Unchecked<KeptEnquiries>;
  const enquiryIn = (each: unknown): Enquiry[] => {
    const { time: stored, contact } = Object(each) as Unchecked<Enquiry>;
    const time = typeof stored === 'string' ? new Date(stored) : stored;
    const said = storedTexts(Object(each));
    if (!isTime(time) || faultOfOriginal(said) || !(contact === undefined || isContact(contact))) return [];
    return [{ time, ...(said as OriginalFields), ...(contact && { contact }) }];
  };
  return {
    kept: Array.isArray(kept) ? kept.flatMap(enquiryIn).slice(-MAX_ENQUIRIES) : [],
    keys: Array.isArray(keys) ? keys.filter((key) => typeof key === 'string').slice(-MAX_ENQUIRY_KEYS) : [],
  };
}

/** Returns a lead with its enquiries, if it is readable and has any. @param read as checkedEnquiries does */
export function withEnquiries<Read extends Checked<Lead> | null>(lead: Read, read: unknown): Read {
  if (read === undefined || lead === null || lead instanceof UnreadableRecord) return lead;
  const enquiries = namedEnquiries(lead.id, checkedEnquiries(read));
  return enquiries.length === 0 ? lead : { ...lead, enquiries };
}

/** The API key that created a lead, if it can be read: nothing else of the lead depends on it. */
export const creatingKey = (apiKeyId: unknown): Pick<Lead, 'apiKeyId'> =>
  isCanonicalUuid(apiKeyId) ? { apiKeyId } : {};

export function checkedCountedLead(read: Unchecked<CountedLead>): Checked<CountedLead> {
  if (!isCanonicalUuid(read.id)) return unreadable('lead', read, 'id');
  if (!isOneOf(LEAD_STAGES, read.stage)) return unreadable('lead', read, 'stage');
  if (read.sourceId !== null && !isCanonicalUuid(read.sourceId)) return unreadable('lead', read, 'sourceId');
  if (!isTime(read.createdAt)) return unreadable('lead', read, 'createdAt');
  return isTime(read.updatedAt) ? (read as CountedLead) : unreadable('lead', read, 'updatedAt');
}

/** Returns a lead; null: it does not match the filter. */
export const matching = (filter: LeadFilter | undefined, lead: Checked<Lead> | null): Checked<Lead> | null =>
  filter && lead && !(lead instanceof UnreadableRecord) && !isMatch(filter, lead) ? null : lead;

/** Whether a lead is valid whose texts are JSON, and its ids UUIDs. Of some that are, the length of the JSON says otherwise. */
export const isLeadInJson = (read: Unchecked<LeadInJson>): read is LeadInJson =>
  isJsonText(read.displayName, BOUNDS.displayName.max) &&
  isOneOf(LEAD_STAGES, read.stage) &&
  (read.note === 'null' || isJsonText(read.note, BOUNDS.note.max)) &&
  isTimeMs(read.createdAt) &&
  isTimeMs(read.updatedAt);

/** Whether JSON is a text that this service may have written. */
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

/** Checks the changes of a lead; unknown kinds and invalid times are left out. */
export function checkedLeadChange(
  lead: Checked<Lead | ErasedLead>,
  {
    revision,
    since,
    kinds,
    attempts,
  }: Unchecked<Omit<LeadChange, 'lead' | 'kinds' | 'attempts'>> & {
    readonly kinds: object;
    readonly attempts: number;
  },
): Checked<LeadChange> {
  if (lead instanceof UnreadableRecord) return lead;
  if (!Number.isSafeInteger(revision)) return unreadable('lead', lead, 'revision');
  const times = Object.entries(kinds).map(([kind, time]) => [isResentToOne(kind) ? 'resent' : kind, time] as const);
  const timeOf = new Map<string, unknown>(times);
  const known = CHANGE_KINDS.flatMap((kind) => {
    const time = timeOf.get(kind);
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

/** Returns the texts of a stored record, which may be older than the added ones. */
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

/** Checks a key. Unknown scopes grant nothing and do not invalidate the others; duplicates count once. */
export function checkedApiKey(read: Unchecked<ApiKey>): Checked<ApiKey> {
  const field = faultOfApiKey(read);
  return field === undefined
    ? ({ ...read, scopes: knownScopes(read.scopes) } as ApiKey)
    : unreadable('API key', read, field);
}

function faultOfApiKey(read: Unchecked<ApiKey>): keyof ApiKey | undefined {
  if (!isCanonicalUuid(read.id)) return 'id';
  if (!isCrmId(read.studioId)) return 'studioId';
  if (!isCrmId(read.memberId)) return 'memberId';
  if (!isText(read.name, BOUNDS.name.max)) return 'name';
  if (!Array.isArray(read.scopes)) return 'scopes';
  if (!isTime(read.createdAt)) return 'createdAt';
  if (!isTime(read.expiresAt)) return 'expiresAt';
  if (read.revokedAt !== null && !isTime(read.revokedAt)) return 'revokedAt';
  if (!isHash(read.secretSha256)) return 'secretSha256';
  if (!isHint(read.secretHint)) return 'secretHint';
  if (read.lastUsedAt !== null && !isTime(read.lastUsedAt)) return 'lastUsedAt';
  return isQuotaLimitOrNull(read.quotaLimit) ? undefined : 'quotaLimit';
}

/**
 * Returns a key; of an unreadable one, which is reported, the readable parts, so that it can be listed and revoked. NO_NAME
 * and NO_TIME replace an unreadable name or time, the empty text any other text. It grants no access, so it appears as
 * expired.
 *
 * @returns null when it has no valid id by which to revoke it
 */
export function readablePartsOfKey(read: Unchecked<ApiKey>, report: ReportUnreadable): ApiKey | null {
  const key = readableOrNull(checkedApiKey(read), report);
  if (key) return key;
  const { id, studioId, memberId, name, scopes, createdAt, revokedAt, secretSha256, secretHint } = read;
  const { lastUsedAt, quotaLimit } = read;
  if (!isCanonicalUuid(id) || !isCrmId(studioId)) return null;
  return {
    id,
    studioId,
    memberId: isCrmId(memberId) ? memberId : '',
    name: isText(name, BOUNDS.name.max) ? name : NO_NAME,
    scopes: knownScopes(scopes),
    createdAt: isTime(createdAt) ? createdAt : NO_TIME,
    expiresAt: NO_TIME,
    revokedAt: isTime(revokedAt) ? revokedAt : null,
    secretSha256: isHash(secretSha256) ? secretSha256 : new Uint8Array(SHA256_BYTES),
    secretHint: isHint(secretHint) ? secretHint : '',
    lastUsedAt: isTime(lastUsedAt) ? lastUsedAt : null,
    quotaLimit: isQuotaLimitOrNull(quotaLimit) ? quotaLimit : null,
  };
}

/**
 * Checks a studio. An unreadable one is reported, suspended, and has no region unless that is readable. A former region
 * that cannot be read counts as none.
 */
export function checkedStudio(read: Unchecked<Studio> & Pick<Studio, 'id'>, report: ReportUnreadable): Studio {
  const { id, regionCode, quotaLimit, keepEnquiries, isTest, retention } = read;
  const formerRegions = regionsIn(read.formerRegions);
  const field = faultOfStudio(read);
  if (field === undefined) return { ...(read as Studio), formerRegions };
  report(unreadable('studio', { studioId: id, id }, field));
  return {
    id,
    status: 'suspended',
    regionCode: isRegion(regionCode) ? regionCode : null,
    quotaLimit: isQuotaLimitOrNull(quotaLimit) ? quotaLimit : null,
    keepEnquiries: keepEnquiries === true,
    isTest: isTest === true,
    retention: isRetentionOrNull(retention) ? retention : null,
    formerRegions,
  };
}

/** Checks a studio in a list, which must have a valid id. */
export const checkedListedStudio = (
  read: Unchecked<Studio> & Pick<Studio, 'id'>,
  report: ReportUnreadable,
): Checked<Studio> =>
  isCrmId(read.id) ? checkedStudio(read, report) : unreadable('studio', { studioId: read.id, id: read.id }, 'id');

function faultOfStudio(read: Unchecked<Studio>): keyof Studio | undefined {
  if (!isOneOf(STUDIO_STATUSES, read.status)) return 'status';
  if (!isRegion(read.regionCode)) return 'regionCode';
  if (!isQuotaLimitOrNull(read.quotaLimit)) return 'quotaLimit';
  if (typeof read.keepEnquiries !== 'boolean') return 'keepEnquiries';
  return isRetentionOrNull(read.retention) ? undefined : 'retention';
}

/**
 * Checks a consumer. An unreadable one is reported, and has a fault, all studios, and the name that can be read, or else one by
 * its number, by which it can be removed.
 *
 * @throws UnreadableRecord if it has no number, by which its deliveries are stored
 */
export function checkedConsumer(read: Unchecked<Omit<Consumer, 'fault'>>, report: ReportUnreadable): Consumer {
  const { number, name, createdAt } = read;
  const known = { studioId: '', id: name };
  if (!Number.isSafeInteger(number)) throw unreadable('consumer', known, 'number');
  const field = faultOfConsumer(read);
  if (field === undefined) return read as Consumer;
  const fault = unreadable('consumer', known, field);
  report(fault);
  return {
    number: number as number,
    name: isConsumerName(name) ? name : `unreadable-${number}`,
    studioIds: null,
    includesTests: true,
    start: 'now',
    createdAt: isTime(createdAt) ? createdAt : NO_TIME,
    backfills: [],
    fault,
  };
}

/** Checks which database this is. Of one that was restored to a time that cannot be read, everything may be lost. */
export function checkedEpoch({ epoch, restoredTo, backedUpAt }: Unchecked<DatabaseEpoch>): DatabaseEpoch {
  const isRestored = Number.isSafeInteger(epoch) && (epoch as number) > 0 && (epoch as number) <= LAST_TIME_MS;
  return {
    epoch: isRestored ? (epoch as number) : 0,
    restoredTo: isRestored ? (isTime(restoredTo) ? restoredTo : NO_TIME) : null,
    backedUpAt: isTime(backedUpAt) ? backedUpAt : null,
  };
}

function faultOfConsumer(read: Unchecked<Omit<Consumer, 'fault'>>): keyof Consumer | undefined {
  if (!isConsumerName(read.name)) return 'name';
  if (read.studioIds !== null && !isListOf(read.studioIds, isCrmId)) return 'studioIds';
  if (typeof read.includesTests !== 'boolean') return 'includesTests';
  if (!isOneOf(CONSUMER_STARTS, read.start)) return 'start';
  if (!isTime(read.createdAt)) return 'createdAt';
  return isListOf(read.backfills, isBackfill) ? undefined : 'backfills';
}

const isConsumerName = (value: unknown): value is string =>
  typeof value === 'string' && consumerNameFault(value) === undefined;

const isListOf = (value: unknown, isItem: (item: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(isItem);

function isBackfill(value: unknown): boolean {
  const { id, studioId, after, andLater } = Object(value) as Unchecked<Backfill>;
  const isStart = studioId === '' && andLater === true;
  return (
    isCanonicalUuid(id) &&
    (isStart || isCrmId(studioId)) &&
    (after === null || isCanonicalUuid(after)) &&
    typeof andLater === 'boolean'
  );
}

export const checkedMember = (read: Unchecked<Member>): Checked<Member> =>
  isOneOf(MEMBER_ROLES, read.role) ? (read as Member) : unreadable('member', read, 'role');

export function checkedLeadSource(read: Unchecked<LeadSource>): Checked<LeadSource> {
  const field = faultOfLeadSource(read);
  return field === undefined ? (read as LeadSource) : unreadable('lead source', read, field);
}

function faultOfLeadSource({ id, name, enabled }: Unchecked<LeadSource>): keyof LeadSource | undefined {
  if (!isCanonicalUuid(id)) return 'id';
  if (!isText(name, BOUNDS.name.max)) return 'name';
  return typeof enabled === 'boolean' ? undefined : 'enabled';
}

export function checkedEvent(read: Unchecked<AuditEvent>): Checked<AuditEvent> {
  const field = faultOfEvent(read);
  const id = read.leadId ?? read.apiKeyId ?? read.studioId;
  return field === undefined ? (read as AuditEvent) : unreadable('event', { studioId: read.studioId, id }, field);
}

function faultOfEvent(read: Unchecked<AuditEvent>): keyof AuditEvent | undefined {
  if (!isOneOf(AUDIT_ACTIONS, read.action)) return 'action';
  if (read.memberId !== null && !isCrmId(read.memberId)) return 'memberId';
  if (read.caller !== null && !isText(read.caller, MAX_TEXT)) return 'caller';
  if (read.callId !== null && !isRequestId(read.callId)) return 'callId';
  if (!isTime(read.time)) return 'time';
  if (read.apiKeyId !== null && !isCanonicalUuid(read.apiKeyId)) return 'apiKeyId';
  if (read.from !== null && !isText(read.from, MAX_TEXT)) return 'from';
  return read.to === null || isText(read.to, MAX_TEXT) ? undefined : 'to';
}

export function checkedRequest(read: Unchecked<LoggedRequest>): Checked<LoggedRequest> {
  const field = faultOfRequest(read);
  return field === undefined ? (read as LoggedRequest) : unreadable('request', read, field);
}

function unreadable(
  kind: UnreadableRecord['kind'],
  { studioId, id }: { readonly studioId: unknown; readonly id: unknown },
  field: string,
): UnreadableRecord {
  return new UnreadableRecord(kind, { studioId: idOrNone(studioId), id: idOrNone(id) }, field);
}

/** An invalid id may contain anything, so it is replaced. */
const idOrNone = (id: unknown) => (isCanonicalUuid(id) || isCrmId(id) ? id : '?');

/** Returns the text of a UUID. @param hex its 32 digits, in lower case */
export const uuidOfHex = (hex: string): string =>
  `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;

/** Whether this service may have written a text: a code point has at most two UTF-16 units. */
const isText = (value: unknown, max: number): value is string =>
  typeof value === 'string' && isLength(value.length, max);

const isLength = (length: number, max: number): boolean => length >= 1 && length <= 2 * max;

export const isOneOf = <Word>(words: readonly Word[], value: unknown): value is Word => words.includes(value as Word);

export const isRegion = (value: unknown): value is RegionCode | null =>
  value === null || (typeof value === 'string' && isRegionCode(value));

const isQuotaLimitOrNull = (value: unknown): value is number | null => value === null || isQuotaLimit(value);

function isRetentionOrNull(value: unknown): value is Retention | null {
  const { days, since } = Object(value) as Unchecked<Retention>;
  return value === null || (isRetentionDays(days) && isTime(since));
}

const regionsIn = (values: unknown): (RegionCode | null)[] =>
  Array.isArray(values) ? [...new Set(values.map((value) => (isRegion(value) ? value : null)))] : [null];

function isContact(value: unknown): value is Contact {
  if (typeof value !== 'object' || value === null) return false;
  const { type, value: text } = value as Unchecked<Contact>;
  return isContactType(type) && isText(text, BOUNDS[type].max);
}

const isTime = (value: unknown): value is Date => value instanceof Date && isTimeMs(value.getTime());

const isTimeMs = (ms: unknown): boolean => typeof ms === 'number' && ms >= FIRST_TIME_MS && ms <= LAST_TIME_MS;

const isHash = (value: unknown): value is Uint8Array => value instanceof Uint8Array && value.length === SHA256_BYTES;

const knownScopes = (scopes: unknown): ApiKeyScope[] =>
  Array.isArray(scopes) ? [...new Set(scopes.filter((scope) => isOneOf(API_KEY_SCOPES, scope)))] : [];
