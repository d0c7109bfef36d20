import type { ErasedLead, Lead, LeadStage } from '../../domain/lead.ts';
import type { EarlierCreation, ErasedCreation } from '../../domain/lead-creation.ts';
import type { OriginalFields } from '../../domain/lead-data.ts';
import type { LeadFilter } from '../../domain/lead-filter.ts';
import type { Page } from './page.ts';

export type CountedLead = Pick<Lead, 'id' | 'studioId' | 'stage' | 'sourceId' | 'createdAt' | 'updatedAt' | 'apiKeyId'>;

/** All that is kept of a lead. */
export interface LeadRecord {
  /** With its enquiries. */
  readonly lead: Lead;
  readonly idempotencyKey: string;
  /** The texts that it was created with; null: they are not kept apart from the lead. */
  readonly original: OriginalFields | null;
}

export interface LeadsOfContact {
  readonly leads: readonly Lead[];
  readonly unreadable: readonly string[];
}

/** The reads of leads. None of them returns another studio's. */
export interface LeadReads {
  /** Returns a lead of the studio, with its enquiries; must not return another studio's. @throws UnreadableRecord */
  findLead(studioId: string, leadId: string): Promise<Lead | null>;

  /** Returns the JSON of the PublicLead of a lead of the studio; null, and throws, as findLead does. */
  findPublicLead(studioId: string, leadId: string): Promise<string | null>;

  /** Returns all that is kept of a lead of the studio; null: it has none, or that was erased. */
  findLeadRecord(studioId: string, leadId: string): Promise<LeadRecord | 'unreadable' | null>;

  /** Returns the lead that an idempotency key has created in the studio, changed or not. @throws UnreadableRecord */
  findLeadByIdempotencyKey(studioId: string, idempotencyKey: string): Promise<EarlierCreation | ErasedCreation | null>;

  /**
   * Returns whether the studio has a lead with this id, erased or not, readable or not; null: it has none. Must not
   * tell of another studio's.
   */
  presenceOfLead(studioId: string, leadId: string): Promise<'present' | 'erased' | null>;

  /** Returns whether a change with this `requestId` has been applied to the lead. */
  isLeadChangeApplied(studioId: string, leadId: string, requestId: string): Promise<boolean>;

  /**
   * Lists the leads of the studio, highest id first, without their enquiries. Must skip unreadable ones, so that all others are reached. Only
   * after hundreds of those in a row may a page have fewer than `limit` leads and a `next`.
   *
   * With a filter, lists only leads that it matches, and examines some thousand of the studio's: a page may be short, or
   * empty, and have a `next`. If isByUpdate says so, they are in the order of `updatedAt` and id, highest first, and
   * `before` and `next` are positions of updatePosition. Of leads whose id does not begin with `createdAt`, a filter by
   * `created` may miss some.
   */
  listLeads(studioId: string, before: string | null, limit: number, filter?: LeadFilter): Promise<Page<Lead>>;

  /** Lists the JSON of the PublicLead of each lead, as listLeads does without a filter. */
  listPublicLeads(studioId: string, before: string | null, limit: number): Promise<Page<string>>;

  /**
   * Lists as listLeads does, but lowest first, and with their enquiries. A walk must return each lead that existed at its
   * start exactly once. In the order of `updatedAt` it must return each lead that matches all the time at least once.
   */
  walkLeads(studioId: string, after: string | null, limit: number, filter?: LeadFilter): Promise<Page<Lead>>;

  /**
   * Lists what a count needs of the studio's leads, as listLeads does without a filter, but only of those in the filter's
   * range of `created`. What else of them cannot be read does not matter.
   */
  listLeadsToCount(
    studioId: string,
    before: string | null,
    limit: number,
    filter?: LeadFilter,
  ): Promise<Pick<Page<CountedLead>, 'records' | 'next'>>;

  /** Returns the number of the studio's leads in a stage, in the filter's range of `updated`, up to `bound`. */
  measureStage(studioId: string, stage: LeadStage, filter: LeadFilter | undefined, bound: number): Promise<number>;

  /**
   * Returns the leads of the studio with one of the contact keys: those claimed by open leads, and those that closed
   * leads had claimed, or would have claimed when they were last closed or corrected; with `former` those that had one before
   * a correction of their contact. Each lead once, in any order. Of more than MAX_LEADS_PER_CONTACT leads, must return
   * that many, open ones first. Must skip unreadable ones, but name them, and must not return another studio's.
   */
  findLeadsOfContact(studioId: string, contactKeys: readonly string[], former?: 'former'): Promise<LeadsOfContact>;

  /** Returns the leads among the next `limit` of a studio, lowest id first, that are not erased, readable or not. */
  walkUnerasedLeads(
    studioId: string,
    after: string | null,
    limit: number,
  ): Promise<{ readonly leads: readonly Pick<Lead, 'id'>[]; readonly next: string | null }>;

  /** Returns the erased leads among the next `limit` leads of a studio, lowest id first. Skips unreadable ones. */
  walkErasedLeads(
    studioId: string,
    after: string | null,
    limit: number,
  ): Promise<{ readonly leads: readonly ErasedLead[]; readonly next: string | null }>;
}
