import { Binary, BSON, type Filter, UUID } from 'mongodb';
import { STORE_SILENCE_MS } from '../../../common/deadlines.ts';
import type { TextField } from '../../../common/rules/field-rules.ts';
import type { ApiKey } from '../../domain/api-key.ts';
import { type Actor, type AuditEvent, MAX_AUDIT_EVENTS } from '../../domain/audit.ts';
import type { Consumer } from '../../domain/consumer.ts';
import type { KeptEnquiries } from '../../domain/enquiry.ts';
import { type ErasedLead, isOpen, type Lead, type LeadClaims } from '../../domain/lead.ts';
import type { ChangeKind, Delivery } from '../../domain/lead-change.ts';
import type { EarlierCreation, ErasedCreation } from '../../domain/lead-creation.ts';
import { DATA_FIELDS, type OriginalFields, textsOf } from '../../domain/lead-data.ts';
import { HIGHEST_ID, LOWEST_ID } from '../../domain/new-id.ts';
import type { LoggedRequest } from '../../domain/request-log.ts';
import type { LeadSource, Member, MemberRole, Studio } from '../../domain/studio.ts';
import {
  type AnyField,
  type Checked,
  checked,
  checkedEnquiries,
  checkedErasedLead,
  checkedLead,
  checkedOriginal,
  creatingKey,
  earlierCreation,
  leadRecord,
  type RecordType,
  storedTexts,
  type Unchecked,
  uuidOfHex,
  withEnquiries,
} from '../checked.ts';
import type { DecidedEvent } from '../decisions/decision.ts';
import {
  creationEvent,
  type EnquiredLead,
  type EnquiryWrite,
  KEY_RULE,
  type KeyRule,
  type StoredClaims,
} from '../decisions/leads.ts';
import { CONTACT_RULE_VERSION } from '../earlier-release.ts';
import { type ReportUnreadable, UnreadableRecord } from '../port/faults.ts';
import type { SomeLeads } from '../port/resending.ts';
import { API_KEY, LEAD_SOURCE, MEMBER, STUDIO } from '../records.ts';

/**
 * Options of all reads. Invalid UTF-8 is decoded with replacement characters; with validation, the driver would fail
 * the whole response and the other documents in it.
 */
export const READ = { enableUtf8Validation: false } as const;

/** Options of writes of many documents, with which the server must not go on after the call has stopped waiting. */
export const OF_MANY = { ordered: false, maxTimeMS: STORE_SILENCE_MS } as const;

export const ID_ONLY = { ...READ, projection: { _id: 1 } } as const;

/** Reads without what grows with every change, which may be many times as long as the rest. */
export const WITHOUT_HISTORY = { ...READ, projection: { history: 0, appliedRequests: 0 } } as const;

/** The projection of the fields of a lead that callers give. */
const DATA = Object.fromEntries(DATA_FIELDS.map((field) => [field, 1]));

/** Reads of leads what their callers see, of which a page has many. */
export const PUBLIC = {
  ...READ,
  projection: { studioId: 1, ...DATA, stage: 1, createdAt: 1, updatedAt: 1, erasedAt: 1, apiKeyId: 1 },
} as const;

/** Reads of a lead also its enquiries. */
export const SHOWN = { ...READ, projection: { ...PUBLIC.projection, 'original.enquiries': 1 } } as const;

/** Reads leads also without their enquiries. */
export const WITHOUT_ORIGINAL = { ...READ, projection: { ...WITHOUT_HISTORY.projection, original: 0 } } as const;

/**
 * The `_id` of a lead. The studio comes first, so that the index keeps its leads together, in the order of lists. The
 * database compares it as one value, so the order of the fields matters.
 */
export interface LeadKey {
  readonly studioId: string;
  readonly id: UUID;
}

/** What every document keeps of its changes. */
export interface Changeable {
  /** Absent until the first event. */
  readonly history?: readonly HistoryEntry[];
  /** How many events were moved out of the history; absent: none. */
  readonly moved?: number;
  /** The identities of the latest MAX_APPLIED_REQUESTS changes. Absent until the first one by a release that keeps them. */
  readonly appliedRequests?: readonly UUID[];
}

/** An event in the history of a document, which is in the order of the writes. */
export interface HistoryEntry extends Pick<AuditEvent, 'action' | 'memberId' | 'time'> {
  readonly caller?: string;
  readonly callId?: string;
  readonly from?: string | null;
  readonly to?: string | null;
}

/** Events that were moved out of a history, in their order. The `_id` is an oldEventsId. */
export interface OldEventsDocument {
  readonly _id: string;
  readonly history: readonly HistoryEntry[];
}

/** The number of events that are moved at once. */
export const MOVED_AT_ONCE = 100;

/** The number of events from which on a history is full, so that as many as are listed always stay in it. */
const FULL = MAX_AUDIT_EVENTS + MOVED_AT_ONCE;
export const hasFullHistory = ($exists: boolean) => ({ [`history.${FULL - 1}`]: { $exists } });

/** Returns the `_id` of what is moved out of a history of which so many events were moved before: so they are in their order. */
export const oldEventsId = (collection: string, _id: unknown, moved: unknown): string =>
  `${collection} ${BSON.EJSON.stringify(_id, { relaxed: false })} ${String(moved).padStart(9, '0')}`;

/** Returns the `_id` of the document out of whose history it was moved. */
export const ownerOfOldEvents = (oldEventsId: string): unknown =>
  BSON.EJSON.parse(oldEventsId.slice(oldEventsId.indexOf(' '), oldEventsId.lastIndexOf(' ')));

/** Adds events to a history that was not full. Of one that is longer than any of this release, the newest stay. */
export const appended = (events: readonly HistoryEntry[]) => ({ $each: [...events], $slice: -(FULL + MOVED_AT_ONCE) });

export const historyEntry = ({ memberId, caller, callId, ...event }: DecidedEvent): HistoryEntry => ({
  ...event,
  memberId,
  ...(caller && { caller }),
  ...(callId && { callId }),
});

/** A lead with its claims, so that one write of one document decides everything. */
export interface LeadDocument extends Omit<Lead, 'id' | 'sourceId' | 'enquiries' | 'apiKeyId'>, Changeable {
  readonly _id: LeadKey;
  readonly sourceId: UUID | null;
  /**
   * The claims of an open lead; no two leads of a studio may have one in common. For a closed lead, the keys it is
   * found by, each with the lead's id, so that it is unique. So are the keys of contacts that were corrected. For an erased
   * lead, a string with its id.
   */
  readonly openContactKey: string | readonly string[];
  readonly contactRule?: KeyRule;
  readonly idempotency: { readonly key: UUID; readonly fingerprint: string; readonly fingerprintVersion: number };
  /** What it was created with, and its enquiries; absent until its first correction or enquiry. */
  readonly original?: OriginalDocument;
  readonly erasedAt?: Date;
  readonly changes: ChangesDocument;
  /** Absent: no key created it, or a core of release 1.2. */
  readonly apiKeyId?: UUID;
}

export interface ChangesDocument {
  /** The time of the first of them; ACKNOWLEDGED: there are none. */
  readonly since?: Date;
  /** The revision of the lead; absent: unchanged since its creation. */
  readonly revision?: number;
  /** The time of the latest change of each kind; absent: only its creation. */
  readonly kinds?: Readonly<Partial<Record<ChangeKind, Date>>>;
}

/** Later than every change, so that `$min` with the next change replaces it. */
export const ACKNOWLEDGED = new Date(8.64e15);

/** All named consumers, which change together: their number is limited. Its history is that of the deployment. */
export interface ConsumersDocument extends Changeable {
  readonly _id: 'consumers';
  /** Grows with each change, which is conditional on it. */
  readonly version: number;
  /** The number of the next consumer. */
  readonly next: number;
  readonly list: readonly Consumer[];
  /** As in DatabaseEpoch; absent: the database was never restored. */
  readonly epoch?: number;
  readonly restoredTo?: Date;
}

/** The release that a database is of, in the collection of the feed. */
export interface SchemaDocument {
  readonly _id: 'schema';
  readonly version: number;
}

/** The time that retention goes by, beside the consumers. */
export interface RetentionTimeDocument {
  readonly _id: 'retention';
  readonly version: number;
  readonly time: Date;
}

/** What there is before the first consumer. */
export const NO_CONSUMERS = { version: 0, next: 1, list: [] } as const;

/** What a named consumer has yet to handle of a lead. With the studio, so that the collection can be sharded by it. */
export interface DeliveryDocument extends Delivery {
  readonly _id: DeliveryKey;
  readonly consumer: number;
  readonly studioId: string;
  /** Its first change while it waits; otherwise see DEFERRED. */
  readonly due: Date;
  /** How often it was set aside at this revision, and why; absent: it was not. */
  readonly attempts?: number;
  readonly reason?: string;
}

/** As in LeadKey, the order of the fields matters. */
interface DeliveryKey extends LeadKey {
  readonly consumer: number;
}

export const deliveryKey = (consumer: number, { studioId, id }: LeadKey): DeliveryKey => ({ consumer, studioId, id });

/** A request that a website made. With the studio, so that the collection can be sharded by it. */
export interface RequestDocument extends Omit<LoggedRequest, 'id'> {
  readonly _id: LeadKey;
}

interface OriginalDocument extends Omit<OriginalFields, 'sourceId'> {
  readonly sourceId: UUID | null;
  /** Each source is the text of a UUID. */
  readonly enquiries?: KeptEnquiries;
}

/** A key; `slot` is one of its studio's slots while it is live, otherwise its own id. */
export interface ApiKeyDocument extends Omit<ApiKey, 'id' | 'secretSha256' | 'quotaLimit'>, Changeable {
  readonly _id: UUID;
  readonly secretSha256: Binary;
  readonly slot: string;
  readonly quotaLimit?: number | null;
}

/** A studio with its members and sources by id, so that each can be written separately. */
export interface StudioDocument
  extends Changeable,
    Pick<Studio, 'status' | 'regionCode'>,
    Partial<Omit<Studio, 'id' | 'status' | 'regionCode'>> {
  readonly _id: string;
  readonly claimVersion?: number;
  readonly members: Readonly<Record<string, MemberRole>>;
  readonly sources: Readonly<Record<string, Pick<LeadSource, 'name' | 'enabled'>>>;
}

/** Release 1.2 reads these fields of each studio, and does not start without them. */
export const NOTHING_DUE = { claimVersion: CONTACT_RULE_VERSION, renewal: null } as const;

/** The fields of a studio's record; the rest of the document may be large. */
export const STUDIO_FIELDS = Object.fromEntries(Object.keys(STUDIO.fields).map((name) => [name, 1] as const));

export const AFTER_ALL_STUDIOS = '{';
export const AFTER_ALL_SLOTS = 'g';

export const leadKey = (studioId: string, leadId: string): LeadKey => ({ studioId, id: new UUID(leadId) });

export const nameOf = ({ studioId, id }: LeadKey): string => `${studioId} ${id}`;

/** A condition for records by their `_id`s. With their studios: on a cluster, only the shards that have them are asked. */
export const among = <Id extends { readonly studioId: string }>(ids: readonly Id[]) => ({
  studioId: { $in: [...new Set(ids.map(({ studioId }) => studioId))] },
  _id: { $in: ids },
});

/** A condition for the `_id`s of a studio's leads above one and below another; null or undefined: without that end. */
export const leadIdsBetween = (studioId: string, above?: string | null, below?: string | null) => ({
  ...(above ? { $gt: leadKey(studioId, above) } : { $gte: leadKey(studioId, LOWEST_ID) }),
  ...(below ? { $lt: leadKey(studioId, below) } : { $lte: leadKey(studioId, HIGHEST_ID) }),
});

/** A condition for some leads. */
export const someOf = (some: SomeLeads): Filter<LeadDocument> =>
  'leadIds' in some
    ? among(some.leadIds.map((leadId) => leadKey(some.studioId, leadId)))
    : { studioId: some.studioId, _id: leadIdsBetween(some.studioId, some.after) };

/** The id of the last document of a full page; null: the page is not full, so there are no more. */
export const lastIdOfFull = (found: readonly Pick<LeadDocument, '_id'>[], limit: number): string | null =>
  found.length < limit || limit === 0 ? null : (found.at(-1)?._id.id.toString() ?? null);

export function leadDocument(
  lead: Lead,
  { idempotencyKey, fingerprint, ...claims }: LeadClaims,
  changedSince = lead.createdAt,
  by?: Actor,
): LeadDocument {
  const { id, apiKeyId, ...fields } = lead;
  return {
    _id: leadKey(lead.studioId, id),
    ...fieldsDocument(fields),
    ...claimsDocument(id, { ...claims, isOpen: isOpen(lead.stage), formerKeys: [] }),
    idempotency: {
      key: new UUID(idempotencyKey),
      fingerprint: fingerprint.sha256,
      fingerprintVersion: fingerprint.version,
    },
    changes: { since: changedSince },
    ...(apiKeyId !== undefined && { apiKeyId: new UUID(apiKeyId) }),
    ...(by && { history: [historyEntry(creationEvent(lead, { ...by, now: changedSince }))] }),
  };
}

/** The fields with personal data, or computed from such. */
export const PERSONAL = {
  ...DATA,
  original: 1,
  contactRule: 1,
  'idempotency.fingerprint': 1,
  'idempotency.fingerprintVersion': 1,
} as const;

/** Returns some fields of a lead, or of what it was created with, as stored. */
export const fieldsDocument = <Fields extends Partial<OriginalFields>>({ sourceId, ...others }: Fields) =>
  (sourceId === undefined ? others : { ...others, sourceId: sourceId && new UUID(sourceId) }) as Omit<
    Fields,
    'sourceId'
  > & { readonly sourceId: UUID | null };

export const originalDocument = (original: OriginalFields): OriginalDocument => fieldsDocument(textsOf(original));

export const enquiryDocument = ({ mark, original }: EnquiryWrite) => ({
  changes: mark,
  original: { ...originalDocument(original), enquiries: original.enquiries },
});

/**
 * Claims as stored. The keys by which a closed lead is found, and those of its former contacts, contain its id: the unique
 * index needs no exception.
 */
export function claimsDocument(
  leadId: string,
  { contactKeys, regionCode, isOpen: areClaimed, formerKeys }: StoredClaims,
) {
  const own = contactKeys.map((key) => (areClaimed ? openClaim(key) : closedClaim(key, leadId)));
  const former = formerKeys.map((key) => `former:${key}:${leadId}`);
  return {
    openContactKey: [...own, ...former],
    contactRule: { version: KEY_RULE, region: regionCode },
  };
}

export const openClaim = (contactKey: string): string => `open:${contactKey}`;

export const closedClaim = (contactKey: string, leadId: string): string => `closed:${contactKey}:${leadId}`;

/** Conditions for all open and closed leads with a contact key; with `former`, for those that had it before a correction. */
export const claimsWithKey = (contactKey: string, former?: 'former'): (string | RegExp)[] =>
  former ? [new RegExp(`^former:${contactKey}:`)] : [openClaim(contactKey), new RegExp(`^closed:${contactKey}:`)];

/** The only claim of a lead that was erased. */
export const erasedClaim = (leadId: string): string => `closed:${leadId}`;

/* Reading documents. Types state what this release writes; each is checked, as the database may hold something else. */

export const leadOf = (document: LeadDocument): Checked<Lead> => checkedLead(leadIn(document));

export const presentLeadOf = (document: LeadDocument): Checked<Lead> | null =>
  isErased(document) ? null : leadOf(document);

/** The same with the enquiries of the lead. */
export const enquiredLeadOf = (document: LeadDocument): Checked<Lead> | null =>
  withEnquiries(presentLeadOf(document), Object(document.original).enquiries);

/** Returns what a refused creation is compared with, but the mark. */
export function enquiryTargetOf(document: LeadDocument): Omit<EnquiredLead, 'mark'> {
  const original = originalIn(document);
  return {
    lead: presentLeadOf(document),
    original: original ? checkedOriginal(leadIn(document), original) : null,
    enquiries: checkedEnquiries(Object(document.original).enquiries),
  };
}

export const isErased = ({ erasedAt }: Pick<LeadDocument, 'erasedAt'>): boolean => erasedAt instanceof Date;

export const erasedLeadOf = (document: LeadDocument): Checked<ErasedLead> =>
  checkedErasedLead(leadIn(document), document.erasedAt);

/** Returns the creation of the lead of a document. @throws UnreadableRecord */
export function creationOf(document: LeadDocument): EarlierCreation | ErasedCreation {
  if (isErased(document)) return { kind: 'erased' };
  const { fingerprint: sha256, fingerprintVersion: version } = Object(document.idempotency);
  return earlierCreation(leadIn(document), originalIn(document), { version, sha256 });
}

/** Returns all that is kept of the lead of a document; as `leadRecord` does. */
export const recordOf = (document: LeadDocument, report: ReportUnreadable) =>
  leadRecord(enquiredLeadOf(document), originalIn(document), uuidText(Object(document.idempotency).key), report);

/** The unchecked texts of a lead, or of what it was created with. */
const textsIn = (stored: Pick<LeadDocument, TextField>): Unchecked<OriginalFields> => ({
  ...storedTexts(stored),
  sourceId: stored.sourceId === null ? null : uuidText(stored.sourceId),
});

/** The unchecked original fields; undefined: the lead was never corrected. */
function originalIn({ original }: LeadDocument): Unchecked<OriginalFields> | undefined {
  if (original === undefined) return undefined;
  return textsIn(Object(original));
}

export function leadIn({ _id, ...fields }: LeadDocument): Unchecked<Lead> {
  const { studioId, contact, stage, createdAt, updatedAt, apiKeyId } = fields;
  return {
    id: uuidText(_id?.id),
    // Documents are found by either of the two, so they must agree.
    studioId: studioId === _id?.studioId ? studioId : undefined,
    ...textsIn(fields),
    contact,
    stage,
    createdAt,
    updatedAt,
    ...creatingKey(uuidText(apiKeyId)),
  };
}

/** The outcome for a lead that has a contact already; only its id must be readable. @throws UnreadableRecord */
export function alreadyOpen(holder: LeadDocument): { readonly kind: 'already-open'; readonly leadId: string } {
  const lead = leadOf(holder);
  if (lead instanceof UnreadableRecord && lead.field === 'id') throw lead;
  return { kind: 'already-open', leadId: lead.id };
}

const keysIn = (claims: LeadDocument['openContactKey'], kind: RegExp): string[] =>
  [claims].flat().flatMap((claim) => (typeof claim === 'string' && kind.exec(claim)?.[1]) || []);

/** A contact key is a hash in base64url. */
export const contactKeysIn = (claims: LeadDocument['openContactKey']) => keysIn(claims, /^(?:open|closed):([\w-]{43})/);
export const formerKeysIn = (claims: LeadDocument['openContactKey']) => keysIn(claims, /^former:([\w-]{43}):/);

export const apiKeyDocument = (key: ApiKey, slot: string): ApiKeyDocument =>
  ({ ...storedFields(API_KEY, key), slot }) as ApiKeyDocument;

export const apiKeyOf = (document: ApiKeyDocument): Checked<ApiKey> => checked(API_KEY, fieldsIn(API_KEY, document));

/** Returns the unchecked record of a document or a part of one. */
export function fieldsIn<Record>({ fields }: Pick<RecordType<Record>, 'fields'>, document: object): Unchecked<Record> {
  const record: { [name: string]: unknown } = {};
  for (const name in fields) {
    const { kind, absent, partOf } = fields[name] as AnyField;
    const stored = (document as { readonly [name: string]: unknown })[name === 'id' ? '_id' : name];
    const value = kind === 'uuid' ? uuidText(stored) : kind === 'bytes' ? bytesIn(stored) : stored;
    record[name] = stored === undefined ? absent : partOf ? partOf(value) : value;
  }
  return record as Unchecked<Record>;
}

const bytesIn = (value: unknown) => (value instanceof Binary ? Uint8Array.from(value.value()) : undefined);

/** Returns some fields of a record as stored. */
export function storedFields<Record extends object>(
  { fields }: Pick<RecordType<Record>, 'fields'>,
  record: Partial<Record>,
): { readonly [field: string]: unknown } {
  const stored = Object.entries<unknown>(record).map(([name, value]) => {
    const { kind } = fields[name as keyof Record];
    const bson =
      kind === 'uuid' ? new UUID(value as string) : kind === 'bytes' ? new Binary(value as Uint8Array) : value;
    return [name === 'id' ? '_id' : name, bson];
  });
  return Object.fromEntries(stored);
}

export function sourceOf({ _id: studioId, sources }: StudioDocument, id: string): Checked<LeadSource> | null {
  const source = entryOf(sources, id);
  return source === undefined
    ? null
    : checked(LEAD_SOURCE, { studioId, id, name: source?.name, enabled: source?.enabled });
}

export function memberOf({ _id: studioId, members }: StudioDocument, id: string): Checked<Member> | null {
  const role = entryOf(members, id);
  return role === undefined ? null : checked(MEMBER, { studioId, id, role });
}

/** Returns an own property: the CRM may assign an id such as `constructor`, which every object inherits. */
export const entryOf = <Entry>(entries: Readonly<Record<string, Entry>>, id: string): Entry | undefined =>
  Object.hasOwn(Object(entries), id) ? entries[id] : undefined;

// The driver's own text is joined of five, which takes a tenth of a page's time.
const uuidText = (value: unknown): string | undefined =>
  value instanceof UUID ? uuidOfHex(value.toHexString(false)) : undefined;
