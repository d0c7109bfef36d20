import { assert } from '../../common/invariants.ts';
import { STAGES } from '../../common/rules/public-api.ts';
import type { ContactKeys } from './contact.ts';
import type { EnquiryWithId } from './enquiry.ts';
import type { Fingerprint } from './fingerprint.ts';
import type { LeadData } from './lead-data.ts';

export const LEAD_STAGES = STAGES;
export type LeadStage = (typeof LEAD_STAGES)[number];

/** Whether a lead in this stage is open. It then prevents another open lead of its contact. @rule 3.1.open */
export const isOpen = (stage: LeadStage): boolean => stage !== 'won' && stage !== 'lost';

/** The maximum number of leads of one contact that a search reads. */
export const MAX_LEADS_PER_CONTACT = 1000;

/** How much of a lead a response contains; only the full view has the contact. */
export type LeadView = 'basic' | 'full';

/** The traits of a lead besides its data. */
interface LeadTraits {
  readonly id: string;
  readonly studioId: string;
  readonly stage: LeadStage;
  readonly createdAt: Date;
  /** Whole milliseconds; grows with every change. */
  readonly updatedAt: Date;
}

/** The part of a lead that a filter and a count see. */
export interface CountedLead extends LeadTraits {
  readonly sourceId: string | null;
  /** The id of the API key that created it. Absent: none did, or it cannot be read. */
  readonly apiKeyId?: string;
}

/**
 * A person's interest in a studio. Ids are UUIDs in lower case; texts are stored exactly as typed.
 *
 * @rule 2.2.unchanged 2.2.uuids
 */
export interface Lead extends CountedLead, LeadData {
  /** Oldest first. Absent: it has none, or the call omits them. */
  readonly enquiries?: readonly EnquiryWithId[];
}

/** The remains of a lead whose personal data was erased: its existence, stage and times. */
export interface ErasedLead extends LeadTraits {
  readonly erasedAt: Date;
}

/** The ids of a lead and of its studio. */
export interface LeadOfStudio {
  readonly studioId: string;
  readonly leadId: string;
}

/** Returns a lead as it was when created. @param lead with its original texts @rule 4.1.original */
export const asCreated = (lead: Lead): Lead => ({ ...lead, stage: 'new', updatedAt: lead.createdAt });

/** Returns the next `updatedAt`: now, or a millisecond after the previous one if that is later. @rule 2.1.updatedAt 3.1.moves */
export function nextUpdate(previous: Date, now: Date): Date {
  const next = new Date(Math.max(now.getTime(), previous.getTime() + 1));
  assert(next > previous, 'update_time_grows');
  return next;
}

/** The unique keys of a lead, stored with it in the same write. @rule 4.1.memory 4.1.success */
export interface LeadKeys extends ContactKeys {
  /** Identifies the creation on a retry; a UUID in lower case. */
  readonly idempotencyKey: string;
  /** Identifies the data that a retry must repeat. */
  readonly fingerprint: Fingerprint;
}
