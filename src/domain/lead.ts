import { hash } from 'node:crypto';
import { assert } from '../../common/invariants.ts';
import { captureFault } from '../../common/rules/field-rules.ts';
import { STAGES } from '../../common/rules/public-api.ts';
import { type Contact, isSameContact, type OpenClaims } from './contact.ts';
import type { Hold } from './hold.ts';
import type { Faults } from './refusal.ts';

export const LEAD_STAGES = STAGES;
export type LeadStage = (typeof LEAD_STAGES)[number];

/** Whether a lead in this stage is open: it then prevents another open lead of its contact. @rule 3.1.open */
export const isOpen = (stage: LeadStage): boolean => stage !== 'won' && stage !== 'lost';

/** The maximum number of leads of one contact that a search reads. */
export const MAX_LEADS_PER_CONTACT = 1000;

/** How much of a lead a response contains; only the full view has the contact. */
export type LeadView = 'basic' | 'full';

/**
 * A person's interest in a studio. Ids are UUIDs in lower case; texts are stored exactly as typed.
 *
 * @rule 2.2.unchanged 2.2.uuids
 */
export interface Lead {
  readonly id: string;
  readonly studioId: string;
  readonly displayName: string;
  readonly contact: Contact;
  readonly sourceId: string | null;
  readonly note: string | null;
  readonly stage: LeadStage;
  readonly createdAt: Date;
  /** Whole milliseconds; grows with every change. */
  readonly updatedAt: Date;
  /** Oldest first. Absent: it has none, or the call leaves them out. */
  readonly enquiries?: readonly Enquiry[];
  /** Absent: it has none, or the call leaves it out. */
  readonly hold?: Hold;
}

/** What remains of a lead whose personal data were erased: its existence, stage and times. */
export interface ErasedLead extends Pick<Lead, 'id' | 'studioId' | 'stage' | 'createdAt' | 'updatedAt'> {
  readonly erasedAt: Date;
}

/** Returns a lead as it was when created. `lead` must have its original fields. @rule 4.1.original */
export const asCreated = (lead: Lead): Lead => ({ ...lead, stage: 'new', updatedAt: lead.createdAt });

/** Returns the next `updatedAt`: now, but later than the previous one. @rule 2.1.updatedAt 3.1.moves */
export function nextUpdate(previous: Date, now: Date): Date {
  const next = new Date(Math.max(now.getTime(), previous.getTime() + 1));
  assert(next > previous, 'update_time_grows');
  return next;
}

/**
 * The fields of a lead that callers give when they create it, and can correct; in the order of the audit log and of an
 * export.
 */
export const DATA_FIELDS = ['displayName', 'contact', 'sourceId', 'note'] as const;
export type DataField = (typeof DATA_FIELDS)[number];

export type LeadData = Pick<Lead, DataField>;

/** Those that are one text. A correction keeps what they were created with, for a replay. */
export const TEXT_FIELDS = DATA_FIELDS.filter((field) => field !== 'contact');
export type OriginalFields = Pick<Lead, (typeof TEXT_FIELDS)[number]>;

/** The data of a lead, not yet checked. */
export interface GivenLeadData {
  readonly displayName: string;
  /** Undefined: neither an email address nor a phone number. */
  readonly contact: Contact | undefined;
  readonly sourceId: string | undefined;
  readonly note: string | undefined;
}

/**
 * Notes the faults of the data of a lead. What is absent, or null, has none.
 *
 * @param at precedes the fields' names
 */
export function noteLeadFaults(
  faults: Faults,
  data: { readonly [Field in keyof GivenLeadData]?: GivenLeadData[Field] | null },
  at = '',
): void {
  for (const field of DATA_FIELDS) {
    if (field === 'contact') {
      if ('contact' in data) noteContactFault(faults, `${at}contact`, data.contact);
    } else if (typeof data[field] === 'string') faults.note(`${at}${field}`, captureFault(field, data[field]));
  }
}

/** Adds the faults of a required contact. @param field its JSON path in the request */
export function noteContactFault(faults: Faults, field: string, contact: Contact | null | undefined): void {
  if (contact) faults.note(`${field}.${contact.type}`, captureFault(contact.type, contact.value));
  else faults.note(field, 'must have an email or a phone');
}

/** Returns the data of a lead as they are stored. @param given without faults */
export const leadDataOf = ({ displayName, contact, sourceId, note }: GivenLeadData): LeadData => ({
  displayName,
  contact: contact as Contact,
  sourceId: sourceId?.toLowerCase() ?? null,
  note: note ?? null,
});

/** New values of some of a lead's fields; absent fields do not change. */
export type Correction = Partial<LeadData>;

export function correctedFields(lead: Lead, correction: Correction): DataField[] {
  return DATA_FIELDS.filter((field) => {
    if (field !== 'contact') return correction[field] !== undefined && correction[field] !== lead[field];
    return correction.contact !== undefined && !isSameContact(correction.contact, lead.contact);
  });
}

/** A hash that decides whether two requests carry the same data, and the version of its computation. */
export interface Fingerprint {
  readonly version: number;
  readonly sha256: string;
}

/**
 * Fingerprints are stored as long as their leads, so a different computation needs a different version. One that adds a
 * field only where it is given is the same for all others.
 */
const FINGERPRINT_VERSION = 1;

/** Returns the fingerprint of a creation; equal for equal data. @rule 4.1.2 4.1.same-data */
export function fingerprintOf({ displayName, contact, sourceId, note }: LeadData): Fingerprint {
  const data = JSON.stringify([displayName, contact.type, contact.value, sourceId, note]);
  return { version: FINGERPRINT_VERSION, sha256: hash('sha256', data, 'base64url') };
}

const SHA256_TEXT = /^[A-Za-z0-9_-]{43}$/;

/** Whether a stored fingerprint can be compared with others: it has a known version and a valid hash. */
export const isFingerprint = (read: { readonly [Part in keyof Fingerprint]: unknown }): read is Fingerprint =>
  read.version === FINGERPRINT_VERSION && typeof read.sha256 === 'string' && SHA256_TEXT.test(read.sha256);

export const sameData = (a: Fingerprint, b: Fingerprint): boolean => a.version === b.version && a.sha256 === b.sha256;

/** The unique keys of a lead, stored with it in the same write. @rule 4.1.memory 4.1.success */
export interface LeadClaims extends OpenClaims {
  /** Identifies the creation on a retry; a UUID in lower case. */
  readonly idempotencyKey: string;
  /** Identifies the data that a retry must repeat. */
  readonly fingerprint: Fingerprint;
}

/** What a creation said that was refused because the lead was open. */
export interface Enquiry extends OriginalFields {
  readonly time: Date;
}

/** The enquiries of a lead, oldest first, and the idempotency keys that it remembers. */
export interface KeptEnquiries {
  readonly kept: readonly Enquiry[];
  /** Hashes of the keys whose enquiries were kept last, also of those that were dropped since. */
  readonly keys: readonly string[];
}

/** The maximum number of enquiries of a lead, and of their bytes. The oldest are dropped. */
export const MAX_ENQUIRIES = 50;
export const MAX_ENQUIRY_BYTES = 32 * 1024;

/** The number of keys that are recognised when they are repeated; each takes 16 characters. */
export const MAX_ENQUIRY_KEYS = 500;

/**
 * Returns the enquiries of a lead with a further one; null: its key was kept already, or it says what the lead or the
 * enquiry before it says.
 *
 * @rule 4.1.enquiry
 */
export function withEnquiry(
  lead: Lead,
  { kept, keys }: KeptEnquiries,
  enquiry: Enquiry,
  idempotencyKey: string,
): KeptEnquiries | null {
  const saysSame = (said: OriginalFields) => TEXT_FIELDS.every((field) => said[field] === enquiry[field]);
  if (isKeyKept({ keys }, idempotencyKey) || [lead, kept.at(-1) ?? lead].some(saysSame)) return null;
  const all = [...kept, enquiry].slice(-MAX_ENQUIRIES);
  let bytes = 0;
  const lastDropped = all.findLastIndex((each) => {
    bytes += bytesOf([each]);
    return bytes > MAX_ENQUIRY_BYTES;
  });
  return { kept: all.slice(lastDropped + 1), keys: [...keys, keyHash(idempotencyKey)].slice(-MAX_ENQUIRY_KEYS) };
}

const keyHash = (idempotencyKey: string): string => hash('sha256', idempotencyKey, 'base64url').slice(0, 16);

export const isKeyKept = ({ keys }: Pick<KeptEnquiries, 'keys'>, idempotencyKey: string): boolean =>
  keys.includes(keyHash(idempotencyKey));

/** The bytes of enquiries as JSON, which are more than those that a message takes for them. */
export const bytesOf = (enquiries: readonly Enquiry[]): number => Buffer.byteLength(JSON.stringify(enquiries));
