import { Binary, UUID } from 'mongodb';
import type { ApiKey, ApiKeyScope } from '../../domain/api-key.ts';
import type { AuditEvent } from '../../domain/audit.ts';
import { type ClaimRenewal, renewalFromRuleV1 } from '../../domain/claim-renewal.ts';
import { CONTACT_RULE_VERSION, type ContactRule, type OpenClaims } from '../../domain/claims.ts';
import type { Contact, RegionCode } from '../../domain/contact.ts';
import type { Correction, OriginalFields } from '../../domain/correction.ts';
import type { Fingerprint } from '../../domain/fingerprint.ts';
import { type ErasedLead, isOpen, type Lead, type LeadClaims, type LeadStage } from '../../domain/lead.ts';
import type { ChangeKind } from '../../domain/lead-change.ts';
import type { LeadSource, Member, MemberRole, Studio } from '../../domain/studio.ts';
import {
  type Checked,
  checkedApiKey,
  checkedClaimingLead,
  checkedEarlierLead,
  checkedErasedLead,
  checkedFingerprint,
  checkedLead,
  checkedLeadSource,
  checkedListedStudio,
  checkedMember,
  checkedRenewal,
  checkedStudio,
  formerRulesIn,
  isRegion,
  readableOrThrow,
  type Unchecked,
} from '../checked.ts';
import type { ClaimingLead, EarlierCreation, ErasedCreation, ReportUnreadable } from '../store.ts';

/**
 * How documents are read. A text that is no UTF-8 shows as such: to the driver it would be a failure of the whole answer, with
 * everybody's documents in it.
 */
export const READ = { enableUtf8Validation: false } as const;

/** How leads and keys are read: without their history, which may be many times as long as the rest. */
export const WITHOUT_HISTORY = { ...READ, projection: { history: 0 } } as const;

/**
 * A lead's id, after its studio's: what every collection is ordered by keeps a studio's leads together, in the order of
 * the listing. To the database it is one value, so the fields' order is part of it.
 */
export interface LeadKey {
  readonly studioId: string;
  readonly id: UUID;
}

/** What was done to a document, in the order in which it was done. */
export interface HistoryEntry extends Pick<AuditEvent, 'action' | 'memberId' | 'time'> {
  readonly caller?: string;
  readonly from?: string | null;
  readonly to?: string | null;
}

/** A lead with its claims: all that decides about it is in the one document that is written. */
export interface LeadDocument {
  readonly _id: LeadKey;
  readonly studioId: string;
  readonly displayName: string;
  readonly contact: Contact;
  readonly sourceId: UUID | null;
  readonly note: string | null;
  readonly stage: LeadStage;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /**
   * What it claims while it is open: no two leads of a studio may have an element in common. What it is found by once it is closed:
   * each with its own id, so that it is nobody else's. A text instead of a list where the release that wrote it knew the first rule
   * only, and of a closed lead its id alone.
   */
  readonly openContactKey: string | readonly string[];
  /** By which rule it claims; absent: by the first one. */
  readonly contactRule?: ContactRule;
  readonly idempotency: { readonly key: UUID; readonly fingerprint: string; readonly fingerprintVersion: number };
  /** What it was created with; absent until it is corrected. */
  readonly original?: OriginalDocument;
  /** When what it tells of its person was erased, of which nothing is there any more; absent: it was not. */
  readonly erasedAt?: Date;
  /** Absent until it is changed. */
  readonly history?: readonly HistoryEntry[];
  /** Absent where a release wrote it that marked none. */
  readonly changes?: ChangesDocument;
}

/** Which changes of a lead no consumer has acknowledged. */
export interface ChangesDocument {
  /** When the first of them happened; ACKNOWLEDGED: there are none. */
  readonly since?: Date;
  /** How often the lead has changed; absent: never since it was created. */
  readonly revision?: number;
  /** Their kinds, each with the time of the latest; absent: it was created, and that is all. */
  readonly kinds?: Readonly<Partial<Record<ChangeKind, Date>>>;
}

/** Later than every change, so that what happens next is the earlier of the two. */
export const ACKNOWLEDGED = new Date(8.64e15);

/** What a creation was answered with and a correction may have changed since. */
interface OriginalDocument extends Omit<OriginalFields, 'sourceId'> {
  readonly sourceId: UUID | null;
}

/** A key; `slot` is one of its studio's slots while it is live, its own id otherwise. */
export interface ApiKeyDocument {
  readonly _id: UUID;
  readonly studioId: string;
  readonly memberId: string;
  readonly name: string;
  readonly scopes: readonly ApiKeyScope[];
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly revokedAt: Date | null;
  readonly secretSha256: Binary;
  readonly secretHint: string;
  readonly slot: string;
  /** Absent when it was made by a release that did not keep it. */
  readonly lastUsedAt?: Date | null;
  /** Absent, or null, when the key has no quota of its own. */
  readonly quotaLimit?: number | null;
  /** Absent when it was made by a release that kept none. */
  readonly history?: readonly HistoryEntry[];
}

/** A studio with its members and sources by id, so that each can be put and removed by itself. */
export interface StudioDocument {
  readonly _id: string;
  readonly status: Studio['status'];
  readonly regionCode: RegionCode | null;
  /** Absent, or null, when the studio has no quota of its own. */
  readonly quotaLimit?: number | null;
  /** The version of the rule by which all its leads claim, with its region of now; null while they are renewed. */
  readonly claimVersion?: number | null;
  /** Absent, as is the version, when a release wrote it that knew the first rule only. */
  readonly renewal?: RenewalDocument | null;
  readonly members: Readonly<Record<string, MemberRole>>;
  readonly sources: Readonly<Record<string, { readonly name: string; readonly enabled: boolean }>>;
  /** Absent when it was made by a release that kept none. */
  readonly history?: readonly HistoryEntry[];
}

/** How far the claims of a studio's leads are made anew. */
interface RenewalDocument extends Omit<ClaimRenewal, 'after'> {
  readonly after: UUID | null;
}

/** What of a studio's document is its record; the rest may be large. */
export const STUDIO_FIELDS = { status: 1, regionCode: 1, quotaLimit: 1, claimVersion: 1, renewal: 1 } as const;

/** No lead's id is below the one or above the other: any page is a walk between two ends, within one studio. */
export const FIRST_ID = '00000000-0000-0000-0000-000000000000';
export const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** Higher than every studio's id; none is lower than the empty text. */
export const AFTER_ALL_STUDIOS = '{';

export const leadKey = (studioId: string, leadId: string): LeadKey => ({ studioId, id: new UUID(leadId) });

export function leadDocument(
  lead: Lead,
  { idempotencyKey, fingerprint, ...claims }: LeadClaims,
  changedSince = lead.createdAt,
): LeadDocument {
  const { id, sourceId, ...fields } = lead;
  return {
    _id: leadKey(lead.studioId, id),
    ...fields,
    sourceId: uuidOrNull(sourceId),
    ...(isOpen(lead.stage) ? claimsDocument(claims) : closedClaimsDocument(id, claims)),
    idempotency: {
      key: new UUID(idempotencyKey),
      fingerprint: fingerprint.sha256,
      fingerprintVersion: fingerprint.version,
    },
    changes: { since: changedSince },
  };
}

/** The fields that a correction gives other values, as they are stored. */
export function correctionFields({ sourceId, ...others }: Correction) {
  return sourceId === undefined ? others : { ...others, sourceId: uuidOrNull(sourceId) };
}

/** What a lead was created with, as it is stored. */
export const originalDocument = ({ displayName, sourceId, note }: OriginalFields): OriginalDocument => ({
  displayName,
  sourceId: uuidOrNull(sourceId),
  note,
});

const uuidOrNull = (id: string | null): UUID | null => (id === null ? null : new UUID(id));

/** What an open lead claims, as it is stored. */
export function claimsDocument({ contactKeys, contactRule }: OpenClaims) {
  return { openContactKey: contactKeys.map(openClaim), contactRule };
}

export const openClaim = (contactKey: string): string => `open:${contactKey}`;

/** What a closed lead is found by, as it is stored. It claims itself alone, so that it needs no exception from the index. */
export function closedClaimsDocument(leadId: string, { contactKeys, contactRule }: OpenClaims) {
  return { openContactKey: contactKeys.map((key) => closedClaim(key, leadId)), contactRule };
}

export const closedClaim = (contactKey: string, leadId: string): string => `closed:${contactKey}:${leadId}`;

/** What finds all leads of a contact by one of its keys, open and closed. */
export const claimsWithKey = (contactKey: string): (string | RegExp)[] => [
  openClaim(contactKey),
  new RegExp(`^closed:${contactKey}:`),
];

/** What a closed lead claims that an earlier release has closed, and one that was erased. */
export const formerClosedClaim = (leadId: string): string => `closed:${leadId}`;

/*
 * Documents as they are read: typed as they were written, and checked, because what is there may be something else.
 */

export const leadOf = (document: LeadDocument): Checked<Lead> => checkedLead(leadIn(document));

/** The same; null: it was erased. */
export const presentLeadOf = (document: LeadDocument): Checked<Lead> | null =>
  isErased(document) ? null : leadOf(document);

/** Whether what a lead tells of its person was erased. */
export const isErased = ({ erasedAt }: Pick<LeadDocument, 'erasedAt'>): boolean => erasedAt instanceof Date;

/** What is kept of an erased lead. */
export function erasedLeadOf(document: LeadDocument): Checked<ErasedLead> {
  const { id, studioId, stage, createdAt, updatedAt } = leadIn(document);
  return checkedErasedLead({ id, studioId, stage, createdAt, updatedAt, erasedAt: document.erasedAt });
}

/** The lead that a creation made before. */
export const earlierLeadOf = (document: LeadDocument): Checked<Lead> =>
  checkedEarlierLead(leadIn(document), originalIn(document));

/** What a lead was created with, whatever stands there; undefined: it was never corrected. */
function originalIn({ original }: LeadDocument): Unchecked<OriginalFields> | undefined {
  if (original === undefined) return undefined;
  const { displayName, sourceId, note } = Object(original);
  return { displayName, sourceId: sourceId === null ? null : uuidText(sourceId), note };
}

/** A lead with whatever stands in its fields. */
function leadIn({ _id, ...fields }: LeadDocument): Unchecked<Lead> {
  const { studioId, displayName, contact, sourceId, note, stage, createdAt, updatedAt } = fields;
  return {
    id: uuidText(_id?.id),
    // A document is found by either of the two.
    studioId: studioId === _id?.studioId ? studioId : undefined,
    displayName,
    contact,
    sourceId: sourceId === null ? null : uuidText(sourceId),
    note,
    stage,
    createdAt,
    updatedAt,
  };
}

/** What an open lead claims, and what that is made of. */
export const CLAIM_FIELDS = { contact: 1, stage: 1, openContactKey: 1, contactRule: 1, erasedAt: 1 } as const;

export const claimingLeadOf = (
  studioId: string,
  { _id, contact, stage, openContactKey, contactRule }: Pick<LeadDocument, '_id' | keyof typeof CLAIM_FIELDS>,
): Checked<ClaimingLead> =>
  checkedClaimingLead(studioId, {
    id: uuidText(_id?.id),
    contact,
    stage,
    contactKeys: contactKeysIn(openContactKey),
    contactRule: contactRule ?? { version: 1, region: null },
  });

/** A claim's key: a hash in base64url. */
const CLAIM_KEY = /^(?:open|closed):([\w-]{43})/;

/** The keys among the claims of a lead. */
export const contactKeysIn = (claims: LeadDocument['openContactKey']): string[] =>
  [claims].flat().flatMap((claim) => (typeof claim === 'string' && CLAIM_KEY.exec(claim)?.[1]) || []);

/** What the lead of a document was made with. */
export function storedFingerprint({ _id, studioId, idempotency }: LeadDocument): Checked<Fingerprint> {
  return checkedFingerprint(
    { version: idempotency?.fingerprintVersion, sha256: idempotency?.fingerprint },
    { studioId, id: uuidText(_id?.id) },
  );
}

/** The creation that made the lead of a document. @throws UnreadableRecord */
export const creationOf = (document: LeadDocument): EarlierCreation | ErasedCreation =>
  isErased(document)
    ? { kind: 'erased' }
    : { lead: readableOrThrow(earlierLeadOf(document)), fingerprint: readableOrThrow(storedFingerprint(document)) };

export function apiKeyDocument({ id, secretSha256, ...fields }: ApiKey, slot: string): ApiKeyDocument {
  return { _id: new UUID(id), ...fields, secretSha256: new Binary(secretSha256), slot };
}

export const apiKeyOf = (document: ApiKeyDocument): Checked<ApiKey> => checkedApiKey(apiKeyIn(document));

/** A key with whatever stands in its fields. */
export function apiKeyIn({
  _id,
  secretSha256,
  lastUsedAt = null,
  quotaLimit = null,
  ...fields
}: ApiKeyDocument): Unchecked<ApiKey> {
  const { studioId, memberId, name, scopes, createdAt, expiresAt, revokedAt, secretHint } = fields;
  return {
    id: uuidText(_id),
    studioId,
    memberId,
    name,
    scopes,
    createdAt,
    expiresAt,
    revokedAt,
    secretSha256: secretSha256 instanceof Binary ? Uint8Array.from(secretSha256.value()) : undefined,
    secretHint,
    lastUsedAt,
    quotaLimit,
  };
}

export const studioOf = (document: StudioDocument, report: ReportUnreadable): Studio =>
  checkedStudio(studioIn(document), report);

/** A studio in a list. */
export const listedStudioOf = (document: StudioDocument, report: ReportUnreadable): Checked<Studio> =>
  checkedListedStudio(studioIn(document), report);

/** A studio with whatever stands in its fields. */
function studioIn(document: StudioDocument): Unchecked<Studio> & Pick<Studio, 'id'> {
  const { _id: id, status, regionCode, quotaLimit = null } = document;
  return { id, status, regionCode, quotaLimit, formerRules: formerRulesIn(renewalOf(document)) };
}

/** How far the claims of a studio's leads are made anew; null: all are by the rule of today. */
export function renewalOf({ _id, claimVersion, regionCode, renewal }: StudioDocument): Checked<ClaimRenewal> | null {
  if (renewal) {
    const { step, since, after, formerRules } = renewal;
    return checkedRenewal({ step, since, after: after === null ? null : uuidText(after), formerRules }, _id);
  }
  if (claimVersion === CONTACT_RULE_VERSION) return null;
  return renewalFromRuleV1(isRegion(regionCode) ? regionCode : null);
}

/** The fields that say how far a renewal has come. */
export function renewalFields(renewal: ClaimRenewal | null) {
  if (renewal === null) return { claimVersion: CONTACT_RULE_VERSION, renewal: null };
  return {
    claimVersion: null,
    renewal: { ...renewal, after: renewal.after === null ? null : new UUID(renewal.after) },
  };
}

/** A source of a studio, if it is there. */
export function sourceOf({ _id: studioId, sources }: StudioDocument, id: string): Checked<LeadSource> | null {
  const source = entryOf(sources, id);
  return source === undefined
    ? null
    : checkedLeadSource({ studioId, id, name: source?.name, enabled: source?.enabled });
}

/** A member of a studio, if it is there. */
export function memberOf({ _id: studioId, members }: StudioDocument, id: string): Checked<Member> | null {
  const role = entryOf(members, id);
  return role === undefined ? null : checkedMember({ studioId, id, role });
}

/** Ids of members are the CRM's: one may be the name of something that every object has. */
const entryOf = <Entry>(entries: Readonly<Record<string, Entry>>, id: string): Entry | undefined =>
  Object.hasOwn(Object(entries), id) ? entries[id] : undefined;

const uuidText = (value: unknown): string | undefined => (value instanceof UUID ? value.toString() : undefined);
