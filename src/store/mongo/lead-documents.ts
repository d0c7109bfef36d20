import { type UpdateFilter, UUID } from 'mongodb';
import type { TextField } from '../../../common/rules/field-rules.ts';
import type { Actor } from '../../domain/audit.ts';
import type { StoredEnquiries } from '../../domain/enquiry.ts';
import { type ErasedLead, isOpen, type Lead, type LeadKeys } from '../../domain/lead.ts';
import type { ChangeKind, PendingChange } from '../../domain/lead-change.ts';
import type { EarlierCreation, ErasedCreation } from '../../domain/lead-creation.ts';
import { DATA_FIELDS, type OriginalFields, readTexts } from '../../domain/lead-data.ts';
import {
  type Checked,
  checkedEnquiries,
  checkedErasedLead,
  checkedLead,
  checkedOriginal,
  creatingKey,
  earlierCreation,
  leadRecord,
  storedTexts,
  type Unchecked,
  withEnquiries,
} from '../checked.ts';
import type { EnquiredLead, EnquiryWrite, KeyRule, LeadWrite, StoredLead } from '../decisions/leads.ts';
import { creationEvent } from '../decisions/leads.ts';
import { type ReportUnreadable, UnreadableRecord } from '../port/faults.ts';
import { uuidText } from './documents.ts';
import { type Changeable, historyEntry } from './history.ts';
import { type LeadKey, leadKey, READ, WITHOUT_HISTORY } from './queries.ts';
import { contactKeysIn, erasedKey, formerKeysIn, keysDocument } from './uniqueness-keys.ts';

/** The projection of the fields that callers give. */
const DATA = Object.fromEntries(DATA_FIELDS.map((field) => [field, 1]));

/** Reads what callers see of leads, because a page has many. */
export const PUBLIC = {
  ...READ,
  projection: { studioId: 1, ...DATA, stage: 1, createdAt: 1, updatedAt: 1, erasedAt: 1, apiKeyId: 1 },
} as const;

/** Reads the same, and the enquiries. */
export const SHOWN = { ...READ, projection: { ...PUBLIC.projection, 'original.enquiries': 1 } } as const;

/** Reads leads without their history and their enquiries. */
export const WITHOUT_ORIGINAL = { ...READ, projection: { ...WITHOUT_HISTORY.projection, original: 0 } } as const;

/** A lead with its uniqueness keys, so that one write of one document decides everything. */
export interface LeadDocument extends Omit<Lead, 'id' | 'sourceId' | 'enquiries' | 'apiKeyId'>, Changeable {
  readonly _id: LeadKey;
  readonly sourceId: UUID | null;
  /**
   * The uniqueness keys of an open lead; no two leads of a studio may share one. For a closed lead, the keys that find it,
   * each made unique by the lead's id, as are the keys of former contacts. For an erased lead, a string with its id.
   */
  readonly openContactKey: string | readonly string[];
  readonly contactRule?: KeyRule;
  readonly idempotency: { readonly key: UUID; readonly fingerprint: string; readonly fingerprintVersion: number };
  /** Its original texts, and its enquiries; absent until its first correction or enquiry. */
  readonly original?: OriginalDocument;
  readonly erasedAt?: Date;
  readonly changes: ChangesDocument;
  /** Absent: no key created it, or a core of release 1.2 did. */
  readonly apiKeyId?: UUID;
}

export interface ChangesDocument {
  /** The time of the first change; ACKNOWLEDGED: there are none. */
  readonly since?: Date;
  /** The revision of the lead; absent: unchanged since its creation. */
  readonly revision?: number;
  /** The time of the latest change of each kind; absent: only its creation. */
  readonly kinds?: Readonly<Partial<Record<ChangeKind, Date>>>;
}

/** Later than every change, so that `$min` with the next change replaces it. */
export const ACKNOWLEDGED = new Date(8.64e15);

interface OriginalDocument extends Omit<OriginalFields, 'sourceId'> {
  readonly sourceId: UUID | null;
  /** Each source is a UUID as text. */
  readonly enquiries?: StoredEnquiries;
}

export function leadDocument(
  lead: Lead,
  { idempotencyKey, fingerprint, ...keys }: LeadKeys,
  changedSince = lead.createdAt,
  by?: Actor,
): LeadDocument {
  const { id, apiKeyId, ...fields } = lead;
  return {
    _id: leadKey(lead.studioId, id),
    ...fieldsDocument(fields),
    ...keysDocument(id, { ...keys, isOpen: isOpen(lead.stage), formerKeys: [] }),
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

/** The fields with personal data, or computed from it. */
export const PERSONAL = {
  ...DATA,
  original: 1,
  contactRule: 1,
  'idempotency.fingerprint': 1,
  'idempotency.fingerprintVersion': 1,
} as const;

/** Returns fields of a lead, or its original texts, in stored form. */
export const fieldsDocument = <Fields extends Partial<OriginalFields>>({ sourceId, ...others }: Fields) =>
  (sourceId === undefined ? others : { ...others, sourceId: sourceId && new UUID(sourceId) }) as Omit<
    Fields,
    'sourceId'
  > & { readonly sourceId: UUID | null };

export const originalDocument = (original: OriginalFields): OriginalDocument => fieldsDocument(readTexts(original));

export const enquiryDocument = ({ pending: changes, original }: EnquiryWrite) => ({
  changes,
  original: { ...originalDocument(original), enquiries: original.enquiries },
});

export const storedLead = (document: LeadDocument): StoredLead => ({
  lead: presentLeadFromDocument(document),
  remaining: erasedLeadFromDocument({ erasedAt: new Date(0), ...document }),
  isCorrected: document.original !== undefined,
  contactKeys: contactKeysIn(document.openContactKey),
  formerKeys: formerKeysIn(document.openContactKey),
  pending: pendingFromDocument(document),
});

export function createUpdate(leadId: string, { fields, pending, keys, original, isErasure }: LeadWrite) {
  const $set = {
    ...fieldsDocument(fields),
    changes: pending,
    ...(keys && keysDocument(leadId, keys)),
    ...(original && { original: originalDocument(original) }),
    ...(isErasure && { erasedAt: fields.updatedAt, openContactKey: erasedKey(leadId) }),
  };
  return { $set, ...(isErasure && { $unset: PERSONAL }) } as UpdateFilter<LeadDocument>;
}

/* The types of documents state what this release writes. The functions below check each value, because the database may hold others. */

export interface WithPendingChange {
  readonly changes: ChangesDocument;
  readonly createdAt: Date;
}

/** Returns the pending change of a lead as read. An invalid part is replaced by the one that a new lead has. */
export function pendingFromDocument({ changes, createdAt: created }: WithPendingChange): PendingChange {
  const { revision, since, kinds } = Object(changes);
  return {
    revision: Number.isSafeInteger(revision) ? revision : 0,
    since: since?.getTime?.() === ACKNOWLEDGED.getTime() ? null : since instanceof Date ? since : undefined,
    kinds: isPlainObject(kinds) ? kinds : { created },
  };
}

export const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  Object.prototype.toString.call(value) === '[object Object]';

export const leadFromDocument = (document: LeadDocument): Checked<Lead> => checkedLead(leadIn(document));

export const presentLeadFromDocument = (document: LeadDocument): Checked<Lead> | null =>
  isErased(document) ? null : leadFromDocument(document);

/** Returns what presentLeadFromDocument returns, with the lead's enquiries. */
export const enquiredLeadFromDocument = (document: LeadDocument): Checked<Lead> | null =>
  withEnquiries(presentLeadFromDocument(document), Object(document.original).enquiries);

/** Returns the data that a refused creation is compared with. */
export function enquiryTargetFromDocument(document: LeadDocument): EnquiredLead {
  const original = originalIn(document);
  return {
    lead: presentLeadFromDocument(document),
    pending: pendingFromDocument(document),
    original: original ? checkedOriginal(leadIn(document), original) : null,
    enquiries: checkedEnquiries(Object(document.original).enquiries),
  };
}

export const isErased = ({ erasedAt }: LeadDocument): boolean => erasedAt instanceof Date;

export const erasedLeadFromDocument = (document: LeadDocument): Checked<ErasedLead> =>
  checkedErasedLead(leadIn(document), document.erasedAt);

/** Returns the creation of a document's lead. @throws UnreadableRecord */
export function creationFromDocument(document: LeadDocument): EarlierCreation | ErasedCreation {
  if (isErased(document)) return { kind: 'erased' };
  const { fingerprint: sha256, fingerprintVersion: version } = Object(document.idempotency);
  return earlierCreation(leadIn(document), originalIn(document), { version, sha256 });
}

/** Returns all stored data of a document's lead, as `leadRecord` does. */
export const recordFromDocument = (document: LeadDocument, report: ReportUnreadable) =>
  leadRecord(
    enquiredLeadFromDocument(document),
    originalIn(document),
    uuidText(Object(document.idempotency).key),
    report,
  );

/** Returns the unchecked texts of a lead, or its original ones. */
const textsIn = (stored: Pick<LeadDocument, TextField>): Unchecked<OriginalFields> => ({
  ...storedTexts(stored),
  sourceId: stored.sourceId === null ? null : uuidText(stored.sourceId),
});

/** Returns the unchecked original texts; undefined: none are stored. */
function originalIn({ original }: LeadDocument): Unchecked<OriginalFields> | undefined {
  if (original === undefined) return undefined;
  return textsIn(Object(original));
}

export function leadIn({ _id, ...fields }: LeadDocument): Unchecked<Lead> {
  const { studioId, contact, stage, createdAt, updatedAt, apiKeyId } = fields;
  return {
    id: uuidText(_id?.id),
    // Documents are found by either of the two studio ids, so these must agree.
    studioId: studioId === _id?.studioId ? studioId : undefined,
    ...textsIn(fields),
    contact,
    stage,
    createdAt,
    updatedAt,
    ...creatingKey(uuidText(apiKeyId)),
  };
}

/** Returns the outcome for a contact that a lead already holds. Only the lead's id must be readable. @throws UnreadableRecord */
export function alreadyOpen(holder: LeadDocument): { readonly kind: 'already-open'; readonly leadId: string } {
  const lead = leadFromDocument(holder);
  if (lead instanceof UnreadableRecord && lead.field === 'id') throw lead;
  return { kind: 'already-open', leadId: lead.id };
}
