import { STAGES } from '../../common/rules/public-lead.ts';
import type { OpenClaims } from './claims.ts';
import type { Contact } from './contact.ts';
import type { Fingerprint } from './fingerprint.ts';

/** Where a lead can stand. */
export const LEAD_STAGES = STAGES;
export type LeadStage = (typeof LEAD_STAGES)[number];

/** A lead in any of these stages keeps its contact from having another open one. @rule 3.1.open */
export const isOpen = (stage: LeadStage): boolean => stage !== 'won' && stage !== 'lost';

/** How many leads of one contact are looked at. */
export const MAX_LEADS_PER_CONTACT = 1000;

/** How much of a lead an answer carries; only the full view has the contact. */
export type LeadView = 'basic' | 'full';

/**
 * A person who showed interest in a studio. Ids are UUIDs in lower case; texts are as they were typed.
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
  /** Whole milliseconds. */
  readonly createdAt: Date;
  /** Whole milliseconds; grows with every change. */
  readonly updatedAt: Date;
}

/** What is kept of a lead when the data of its person were erased: that there was one, and what became of it. */
export interface ErasedLead extends Pick<Lead, 'id' | 'studioId' | 'stage' | 'createdAt' | 'updatedAt'> {
  /** Whole milliseconds. */
  readonly erasedAt: Date;
}

/** What makes a lead one of a kind: kept with it, in the same write. @rule 4.1.memory 4.1.success */
export interface LeadClaims extends OpenClaims {
  /** What the caller will repeat on a retry; a UUID in lower case. */
  readonly idempotencyKey: string;
  /** What the caller must repeat with it. */
  readonly fingerprint: Fingerprint;
}

/** A lead as it was the moment it was created, of one with the fields that it was created with. @rule 4.1.original */
export function asCreated(lead: Lead): Lead {
  return { ...lead, stage: 'new', updatedAt: lead.createdAt };
}

/** The next `updatedAt`: now, and later than the one before, even if the clock went back. @rule 2.1.updatedAt 3.1.moves */
export function nextUpdate(previous: Date, now: Date): Date {
  return new Date(Math.max(now.getTime(), previous.getTime() + 1));
}
