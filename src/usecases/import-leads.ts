import { uuidFault } from '../../common/rules/field-rules.ts';
import type { Requester } from '../domain/audit.ts';
import { toContactKeys } from '../domain/contact.ts';
import { computeFingerprint } from '../domain/fingerprint.ts';
import type { LeadStage } from '../domain/lead.ts';
import { type CreateLeadOutcome, refusalOfCreation } from '../domain/lead-creation.ts';
import { toLeadData } from '../domain/lead-data.ts';
import { CLOCKS_DIFFER_MS, newIdAt } from '../domain/new-id.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { Studio } from '../domain/studio.ts';
import { type GivenCreation, noteCreationFaults } from './create-lead.ts';
import type { Changing } from './dependencies.ts';
import { requestedBy } from './requests.ts';
import { existingStudio } from './studios.ts';

export const MAX_IMPORTED_LEADS = 100;

/** An unchecked lead from another system. */
export interface LeadImport extends GivenCreation {
  /** The id of a lead that the studio may already have; undefined: unknown. */
  readonly leadId?: string | undefined;
  /** Idempotency keys under which an earlier import may have written it. */
  readonly otherKeys?: readonly string[];
  /** Undefined: unknown. */
  readonly stage: LeadStage | undefined;
  /** Undefined: now. */
  readonly createdAt: Date | undefined;
  /** Undefined: the same as `createdAt`. */
  readonly updatedAt: Date | undefined;
}

export type ImportedLead =
  | { readonly kind: 'imported' | 'already-there'; readonly leadId: string }
  /** The studio has erased the lead; the id is null if only its idempotency key shows that. */
  | { readonly kind: 'erased'; readonly leadId: string | null }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/**
 * Imports leads from another system. Each is independent of the others and follows the rules of creation: its idempotency
 * key is unique, and an open lead holds the keys of its contact. A lead whose id the studio already has is not written
 * again, because it may have been corrected, closed or erased since its export.
 *
 * @returns a result per lead, in their order
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND, STUDIO_ENDED for the whole request
 */
export async function importLeads(
  { store, clock }: Changing,
  { studioId, leads, ...requester }: Requester & { readonly studioId: string; readonly leads: readonly LeadImport[] },
): Promise<ImportedLead[]> {
  const faults = new Faults();
  if (leads.length === 0 || leads.length > MAX_IMPORTED_LEADS) {
    faults.note('leads', `must have 1 to ${MAX_IMPORTED_LEADS} elements`);
  }
  const studio = await existingStudio(store, studioId, faults);
  if (studio.status === 'ended') throw new Refusal('STUDIO_ENDED');
  const by = requestedBy(requester, clock);
  const { now } = by;
  return Promise.all(
    leads.map((lead) =>
      importLead(studio, lead).catch((error) => {
        if (error instanceof Refusal) return { kind: 'refused', refusal: error } as const;
        throw error;
      }),
    ),
  );

  async function importLead(studio: Studio, unchecked: LeadImport): Promise<ImportedLead> {
    const leadId = unchecked.leadId?.toLowerCase();
    if (leadId !== undefined && !uuidFault(leadId)) {
      const presence = await store.presenceOfLead(studio.id, leadId);
      if (presence) return { kind: presence === 'erased' ? 'erased' : 'already-there', leadId };
    }
    let usedKey = unchecked.idempotencyKey;
    for (const key of unchecked.otherKeys ?? [])
      if (await store.findLeadByIdempotencyKey(studio.id, key)) usedKey = key;
    const { idempotencyKey, lead } = validate({ ...unchecked, idempotencyKey: usedKey }, studio.id, now);
    if (lead.sourceId !== null && !(await store.findLeadSource(studio.id, lead.sourceId)))
      throw new Refusal('SOURCE_INVALID');
    // Ids sort by creation time.
    const id = newIdAt(lead.createdAt);
    const keys = { idempotencyKey, fingerprint: computeFingerprint(lead), ...toContactKeys(lead.contact, studio) };
    return toImportedLead(await store.createLead({ ...lead, id }, keys, { now, by }));
  }
}

function toImportedLead(outcome: CreateLeadOutcome): ImportedLead {
  switch (outcome.kind) {
    case 'created':
      return { kind: 'imported', leadId: outcome.lead.id };
    case 'replayed':
      return { kind: 'already-there', leadId: outcome.lead.id };
    case 'erased':
      return { kind: 'erased', leadId: null };
    default:
      throw refusalOfCreation(outcome);
  }
}

/** Returns the lead to import, without its id. @throws Refusal INVALID_REQUEST */
function validate(unchecked: LeadImport, studioId: string, now: Date) {
  const { idempotencyKey, stage, createdAt = now } = unchecked;
  const { updatedAt = createdAt } = unchecked;
  const latest = new Date(now.getTime() + CLOCKS_DIFFER_MS);
  const faults = new Faults();
  if (unchecked.leadId !== undefined) faults.note('leadId', uuidFault(unchecked.leadId));
  noteCreationFaults(faults, unchecked);
  if (!stage) faults.note('stage', 'must be a known stage');
  if (!(createdAt >= new Date(0) && createdAt <= latest)) faults.note('createTime', 'must be a time from 1970 to now');
  if (!(updatedAt >= createdAt && updatedAt <= latest))
    faults.note('updateTime', 'must be a time from createTime to now');
  faults.refuseIfAny();
  return {
    idempotencyKey: idempotencyKey.toLowerCase(),
    lead: { studioId, ...toLeadData(unchecked), stage: stage as LeadStage, createdAt, updatedAt },
  };
}
