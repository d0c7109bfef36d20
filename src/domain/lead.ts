import { hash } from 'node:crypto';
import { assert } from '../../common/invariants.ts';
import { STAGES } from '../../common/rules/public-api.ts';
import { type Contact, isSameContact, type OpenClaims } from './contact.ts';

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
}

/** What remains of a lead whose personal data were erased: its existence, stage and times. */
export interface ErasedLead extends Pick<Lead, 'id' | 'studioId' | 'stage' | 'createdAt' | 'updatedAt'> {
  readonly erasedAt: Date;
}

/** The unique keys of a lead, stored with it in the same write. @rule 4.1.memory 4.1.success */
export interface LeadClaims extends OpenClaims {
  /** Identifies the creation on a retry; a UUID in lower case. */
  readonly idempotencyKey: string;
  /** Identifies the data that a retry must repeat. */
  readonly fingerprint: Fingerprint;
}

/** Returns a lead as it was when created. `lead` must have its original fields. @rule 4.1.original */
export const asCreated = (lead: Lead): Lead => ({ ...lead, stage: 'new', updatedAt: lead.createdAt });

/** Returns the next `updatedAt`: now, but later than the previous one. @rule 2.1.updatedAt 3.1.moves */
export function nextUpdate(previous: Date, now: Date): Date {
  const next = new Date(Math.max(now.getTime(), previous.getTime() + 1));
  assert(next > previous, 'update_time_grows');
  return next;
}

/** A hash that decides whether two requests carry the same data, and the version of its computation. */
export interface Fingerprint {
  readonly version: number;
  readonly sha256: string;
}

export type LeadData = Pick<Lead, CorrectableField>;

/** Fingerprints are stored as long as their leads, so a different computation needs a different version. */
const VERSION = 1;

/** Returns the fingerprint of a creation; equal for equal data. @rule 4.1.2 4.1.same-data */
export function fingerprintOf({ displayName, contact, sourceId, note }: LeadData): Fingerprint {
  const data = JSON.stringify([displayName, contact.type, contact.value, sourceId, note]);
  return { version: VERSION, sha256: hash('sha256', data, 'base64url') };
}

const SHA256_TEXT = /^[A-Za-z0-9_-]{43}$/;

/** Whether a stored fingerprint can be compared with others: it has a known version and a valid hash. */
export const isFingerprint = (read: { readonly [Part in keyof Fingerprint]: unknown }): read is Fingerprint =>
  read.version === VERSION && typeof read.sha256 === 'string' && SHA256_TEXT.test(read.sha256);

export const sameData = (a: Fingerprint, b: Fingerprint): boolean => a.version === b.version && a.sha256 === b.sha256;

/** The fields of a lead that can be corrected, in the order of the audit log. */
export const CORRECTABLE_FIELDS = ['displayName', 'contact', 'sourceId', 'note'] as const;
type CorrectableField = (typeof CORRECTABLE_FIELDS)[number];

/** New values of some of a lead's fields; absent fields do not change. */
export type Correction = Partial<Pick<Lead, CorrectableField>>;

/** The public fields of a lead as created, which a correction may have changed since. */
export type OriginalFields = Pick<Lead, 'displayName' | 'sourceId' | 'note'>;

export function correctedFields(lead: Lead, correction: Correction): CorrectableField[] {
  return CORRECTABLE_FIELDS.filter((field) => {
    if (field !== 'contact') return correction[field] !== undefined && correction[field] !== lead[field];
    return correction.contact !== undefined && !isSameContact(correction.contact, lead.contact);
  });
}
