import { BOUNDS, isCanonicalUuid, isCrmId } from '../../common/rules/field-rules.ts';
import { isHint } from '../../common/rules/key-secret.ts';
import { isRequestId } from '../../common/rules/public-api.ts';
import { API_KEY_SCOPES, type ApiKey, type ApiKeyScope } from '../domain/api-key.ts';
import { AUDIT_ACTIONS, type AuditEvent } from '../domain/audit.ts';
import {
  type Backfill,
  CONSUMER_STARTS,
  type Consumer,
  consumerNameFault,
  type StoredConsumer,
} from '../domain/consumer.ts';
import type { RegionCode } from '../domain/contact.ts';
import type { DatabaseEpoch } from '../domain/database-epoch.ts';
import {
  isQuotaLimit,
  isRetentionDays,
  type LeadSource,
  MEMBER_ROLES,
  type Member,
  STUDIO_STATUSES,
  type Studio,
} from '../domain/studio.ts';
import {
  checkedInParts,
  type Fields,
  isOneOf,
  isRegion,
  isText,
  isTime,
  LAST_TIME_MS,
  type RecordType,
  readableOrThrow,
  readableParts,
  type Unchecked,
} from './checked.ts';
import type { ReportUnreadable } from './port/faults.ts';

/** Replaces the unreadable name of a key. */
export const NO_NAME = '(cannot be read)';

/** Replaces an unreadable time of a key. As an expiry, it is long past. */
export const NO_TIME = new Date(0);

const SHA256_BYTES = 32;

/** At least the maximum length of an event's text: a member with a role. */
const MAX_TEXT = 80;

const isAny = () => true;
const isBoolean = (value: unknown): boolean => typeof value === 'boolean';
const isName = (value: unknown): boolean => isText(value, BOUNDS.name.max);
const isEventText = (value: unknown): boolean => isText(value, MAX_TEXT);
const isAmong = (words: readonly string[]) => (value: unknown) => isOneOf(words, value);
const isListOf = (isItem: (item: unknown) => boolean) => (value: unknown) =>
  Array.isArray(value) && value.every(isItem);
const isHash = (value: unknown): boolean => value instanceof Uint8Array && value.length === SHA256_BYTES;
const isRetention = (value: unknown): boolean => isRetentionDays(Object(value).days) && isTime(Object(value).since);
const isConsumerName = (value: unknown): boolean => typeof value === 'string' && consumerNameFault(value) === undefined;
const isEpoch = (value: unknown): boolean =>
  Number.isSafeInteger(value) && Number(value) > 0 && Number(value) <= LAST_TIME_MS;

function isBackfill(value: unknown): boolean {
  const { id, studioId, after, andLater } = Object(value) as Unchecked<Backfill>;
  const isStart = studioId === '' && andLater === true;
  const isAfter = after === null || isCanonicalUuid(after);
  return isCanonicalUuid(id) && (isStart || isCrmId(studioId)) && isAfter && isBoolean(andLater);
}

/** Unknown scopes grant nothing and do not invalidate the others; duplicates count once. */
const knownScopes = (scopes: unknown): ApiKeyScope[] | undefined =>
  Array.isArray(scopes) ? [...new Set(scopes.filter((scope) => isOneOf(API_KEY_SCOPES, scope)))] : undefined;

/** Reads an unreadable region as no region. */
const regionsIn = (values: unknown): (RegionCode | null)[] =>
  Array.isArray(values) ? [...new Set(values.map((value) => (isRegion(value) ? value : null)))] : [null];

/** An unreadable key can be listed and revoked. It grants no access, so it appears as expired. */
export const API_KEY: RecordType<ApiKey> = {
  kind: 'API key',
  table: 'api_keys',
  fields: {
    id: { kind: 'uuid', isValid: isCanonicalUuid },
    studioId: { kind: 'text', isValid: isCrmId },
    memberId: { kind: 'text', isValid: isCrmId, replacement: '' },
    name: { kind: 'text', isValid: isName, replacement: NO_NAME },
    scopes: { kind: 'words', isValid: Array.isArray, replacement: [], readPart: knownScopes },
    createdAt: { kind: 'time', isValid: isTime, replacement: NO_TIME },
    expiresAt: { kind: 'time', isValid: isTime, replacement: NO_TIME, isAlwaysReplaced: true },
    revokedAt: { kind: 'time', isValid: isTime, nullable: true },
    secretSha256: { kind: 'bytes', isValid: isHash, replacement: new Uint8Array(SHA256_BYTES) },
    secretHint: { kind: 'text', isValid: isHint, replacement: '' },
    lastUsedAt: { kind: 'time', isValid: isTime, nullable: true },
    quotaLimit: { kind: 'int', isValid: isQuotaLimit, nullable: true, absent: null },
  },
};

/** An unreadable studio is suspended. */
export const STUDIO: RecordType<Studio> = {
  kind: 'studio',
  table: 'studios',
  fields: {
    id: { kind: 'text', isValid: isCrmId },
    status: { kind: 'text', isValid: isAmong(STUDIO_STATUSES), replacement: 'suspended', isAlwaysReplaced: true },
    regionCode: { kind: 'text', isValid: isRegion, nullable: true },
    quotaLimit: { kind: 'int', isValid: isQuotaLimit, nullable: true, absent: null },
    keepEnquiries: { kind: 'bool', isValid: isBoolean, replacement: false, absent: true },
    isTest: { kind: 'bool', isValid: isBoolean, readPart: (value) => value === true, absent: false },
    retention: { kind: 'retention', isValid: isRetention, nullable: true, absent: null },
    formerRegions: { kind: 'json', isValid: isAny, readPart: regionsIn, absent: [] },
  },
  toIds: ({ id }) => ({ studioId: id, id }),
};

export const MEMBER: RecordType<Member> = {
  kind: 'member',
  table: 'members',
  fields: {
    studioId: { kind: 'text', isValid: isAny },
    id: { kind: 'text', isValid: isAny },
    role: { kind: 'text', isValid: isAmong(MEMBER_ROLES) },
  },
};

export const LEAD_SOURCE: RecordType<LeadSource> = {
  kind: 'lead source',
  table: 'lead_sources',
  fields: {
    studioId: { kind: 'text', isValid: isAny },
    id: { kind: 'text', isValid: isCanonicalUuid },
    name: { kind: 'text', isValid: isName },
    enabled: { kind: 'bool', isValid: isBoolean },
  },
};

export const AUDIT_EVENT: RecordType<AuditEvent> = {
  kind: 'event',
  table: 'audit_events',
  fields: {
    studioId: { kind: 'text', isValid: isAny },
    leadId: { kind: 'text', isValid: isAny, nullable: true, absent: null },
    action: { kind: 'text', isValid: isAmong(AUDIT_ACTIONS) },
    memberId: { kind: 'text', isValid: isCrmId, nullable: true },
    caller: { kind: 'text', isValid: isEventText, nullable: true, absent: null },
    callId: { kind: 'text', isValid: isRequestId, nullable: true, absent: null },
    time: { kind: 'time', isValid: isTime },
    apiKeyId: { kind: 'text', isValid: isCanonicalUuid, nullable: true, absent: null },
    from: { kind: 'text', isValid: isEventText, nullable: true, absent: null, column: 'from_value' },
    to: { kind: 'text', isValid: isEventText, nullable: true, absent: null, column: 'to_value' },
  },
  toIds: ({ studioId, leadId, apiKeyId }) => ({ studioId, id: leadId ?? apiKeyId ?? studioId }),
};

/** An unreadable consumer has all studios. Without a number, which its deliveries refer to, it cannot be read at all. */
export const CONSUMER: RecordType<StoredConsumer> = {
  kind: 'consumer',
  table: 'consumers',
  fields: {
    number: { kind: 'int', isValid: Number.isSafeInteger },
    name: { kind: 'text', isValid: isConsumerName, replacement: '' },
    studioIds: { kind: 'json', isValid: isListOf(isCrmId), nullable: true, isAlwaysReplaced: true },
    includesTests: { kind: 'bool', isValid: isBoolean, replacement: true, isAlwaysReplaced: true },
    start: { kind: 'text', isValid: isAmong(CONSUMER_STARTS), replacement: 'now', isAlwaysReplaced: true },
    createdAt: { kind: 'time', isValid: isTime, replacement: NO_TIME },
    backfills: { kind: 'json', isValid: isListOf(isBackfill), replacement: [], isAlwaysReplaced: true },
  },
  toIds: ({ name }) => ({ studioId: '', id: name }),
};

export const DATABASE_EPOCH: Fields<DatabaseEpoch> = {
  epoch: { kind: 'int', isValid: isEpoch, replacement: 0 },
  restoredTo: { kind: 'time', isValid: isTime, nullable: true },
  backedUpAt: { kind: 'time', isValid: isTime, nullable: true },
};

/** Checks a studio that was found by its id. */
export const checkedStudio = (read: Unchecked<Studio>, report: ReportUnreadable): Studio =>
  readableOrThrow(checkedInParts(STUDIO, read, report));

/**
 * Checks a consumer. Reports an unreadable one, and gives it a fault, and a name for its removal.
 *
 * @throws UnreadableRecord if it has no number
 */
export function checkedConsumer(read: Unchecked<StoredConsumer>, report: ReportUnreadable): Consumer {
  let fault: Error | undefined;
  const consumer = readableOrThrow(
    checkedInParts(CONSUMER, read, (record) => {
      fault = record;
      report(record);
    }),
  );
  return fault ? { ...consumer, name: consumer.name || `unreadable-${consumer.number}`, fault } : consumer;
}

/** Checks the epoch of a database. If its restore time is unreadable, everything may be lost. */
export function checkedEpoch(read: Unchecked<DatabaseEpoch>): DatabaseEpoch {
  const { epoch, restoredTo, backedUpAt } = readableParts(DATABASE_EPOCH, read) as DatabaseEpoch;
  return { epoch, restoredTo: epoch > 0 ? (restoredTo ?? NO_TIME) : null, backedUpAt };
}
