import type { CountedLead, ErasedLead, Lead, LeadStage } from '../../domain/lead.ts';
import type { EarlierCreation, ErasedCreation } from '../../domain/lead-creation.ts';
import type { OriginalFields } from '../../domain/lead-data.ts';
import type { LeadFilter } from '../../domain/lead-filter.ts';
import type { Page } from './page.ts';

/** All stored data of a lead. */
export interface LeadRecord {
  /** Includes its enquiries. */
  readonly lead: Lead;
  readonly idempotencyKey: string;
  /** Its original texts; null: they are not stored apart from the lead. */
  readonly original: OriginalFields | null;
}

export interface LeadsOfContact {
  readonly leads: readonly Lead[];
  readonly unreadable: readonly string[];
}

export interface PublicLeadStore {
  /** Returns the PublicLead of a lead of the studio as JSON. Returns null, and throws, as findLead does. */
  findPublicLead(studioId: string, leadId: string): Promise<string | null>;

  /** Lists leads' PublicLeads as JSON, as listLeads does without a filter. */
  listPublicLeads(studioId: string, before: string | null, limit: number): Promise<Page<string>>;
}

export interface LeadCountStore {
  /**
   * Lists the counted parts of the studio's leads in the filter's range of `created`, otherwise as listLeads does
   * without a filter. Other unreadable parts of a lead do not matter.
   */
  listLeadsToCount(
    studioId: string,
    before: string | null,
    limit: number,
    filter?: LeadFilter,
  ): Promise<{ readonly records: readonly CountedLead[]; readonly next: string | null }>;

  /** Returns the number of the studio's leads in a stage, in the filter's range of `updated`, up to `bound`. */
  measureStage(studioId: string, stage: LeadStage, filter: LeadFilter | undefined, bound: number): Promise<number>;
}

/** The reads of leads. None of them returns another studio's leads. */
export interface LeadReadStore extends PublicLeadStore, LeadCountStore {
  /** Returns a lead of the studio, with its enquiries. Must not return another studio's lead. @throws UnreadableRecord */
  findLead(studioId: string, leadId: string): Promise<Lead | null>;

  /** Returns all stored data of a lead of the studio; null: it has no such lead, or the lead was erased. */
  findLeadRecord(studioId: string, leadId: string): Promise<LeadRecord | 'unreadable' | null>;

  /** Returns the lead that an idempotency key created in the studio, changed or not. @throws UnreadableRecord */
  findLeadByIdempotencyKey(studioId: string, idempotencyKey: string): Promise<EarlierCreation | ErasedCreation | null>;

  /**
   * Returns whether the studio has a lead with this id, erased or not, readable or not; null: it has none. Must not
   * reveal other studios' leads.
   */
  presenceOfLead(studioId: string, leadId: string): Promise<'present' | 'erased' | null>;

  isLeadChangeApplied(studioId: string, leadId: string, requestId: string): Promise<boolean>;

  /**
   * Lists the leads of the studio, highest id first, without their enquiries. Must skip unreadable ones and reach all
   * others. Only after hundreds of unreadable ones in a row may a page have fewer than `limit` leads and a `next`.
   *
   * With a filter, lists only matching leads, and examines some thousand leads of the studio. A page may then be short or
   * empty, and have a `next`. If isByUpdate says so, leads are in the order of `updatedAt` and id, highest first, and
   * `before` and `next` are results of updatePosition. A filter by `created` may miss leads whose id does not begin with
   * `createdAt`.
   */
  listLeads(studioId: string, before: string | null, limit: number, filter?: LeadFilter): Promise<Page<Lead>>;

  /**
   * Lists as listLeads does, but lowest first, and with enquiries. A walk must return each lead that existed at its start
   * exactly once. A walk in the order of `updatedAt` must return each lead that matches throughout at least once.
   */
  walkLeads(studioId: string, after: string | null, limit: number, filter?: LeadFilter): Promise<Page<Lead>>;

  /**
   * Returns the leads of the studio with one of the contact keys: open leads that hold it, and closed leads that held it,
   * or would have taken it when last closed or corrected. With `former`, returns leads that had a key before a correction.
   * Returns each lead once, in any order. If there are more than MAX_LEADS_PER_CONTACT, must return that many, open ones
   * first. Must return only the ids of unreadable ones. Must not return another studio's leads.
   */
  findLeadsOfContact(studioId: string, contactKeys: readonly string[], former?: 'former'): Promise<LeadsOfContact>;

  /** Returns the leads among the next `limit` of a studio, lowest id first, that are not erased, readable or not. */
  walkUnerasedLeads(
    studioId: string,
    after: string | null,
    limit: number,
  ): Promise<{ readonly leads: readonly { readonly id: string }[]; readonly next: string | null }>;

  /** Returns the erased leads among the next `limit` leads of a studio, lowest id first. Skips unreadable ones. */
  walkErasedLeads(
    studioId: string,
    after: string | null,
    limit: number,
  ): Promise<{ readonly leads: readonly ErasedLead[]; readonly next: string | null }>;
}
