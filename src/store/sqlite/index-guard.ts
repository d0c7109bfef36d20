import type { DatabaseSync } from 'node:sqlite';
import { correctedFields } from '../../domain/correction.ts';
import { isOpen, type Lead } from '../../domain/lead.ts';
import { creationsRefused } from '../index-faults.ts';
import { replayOutcome } from '../replay-outcome.ts';
import type { ApiKeyStore, LeadStore } from '../store.ts';
import type { UniqueIndexes } from './unique-indexes.ts';

/**
 * Guards lead writes that rely on unique indexes. While one is missing, nothing that needs it is written: no lead, and
 * no claim of a lead that is reopened or gets another contact. GroupCommit ensures that the indexes exist until the end
 * of a transaction.
 */
export function guardLeads(store: LeadStore, database: DatabaseSync, indexes: UniqueIndexes): LeadStore {
  const countByKey = database.prepare(`
    SELECT count(*) AS leads FROM leads
    WHERE studio_number = (SELECT number FROM studio_numbers WHERE studio_id = ?) AND idempotency_key = unhex(?, '-')`);

  /** Returns the lead of an idempotency key. @throws StoreUnavailable when there are several */
  async function soleLead(studioId: string, idempotencyKey: string, fault: string) {
    const { leads } = countByKey.get(studioId, idempotencyKey) as { leads: number };
    if (leads > 1) throw creationsRefused([fault]);
    return store.findLeadByIdempotencyKey(studioId, idempotencyKey);
  }

  /** Refuses a change by which a lead takes claims while an index is missing. */
  async function refuseClaims(
    { studioId, leadId }: { readonly studioId: string; readonly leadId: string },
    takesClaims: (lead: Lead) => boolean,
  ): Promise<void> {
    const fault = indexes.fault('leads');
    const lead = fault === undefined ? null : await store.findLead(studioId, leadId);
    if (fault !== undefined && lead && takesClaims(lead)) throw creationsRefused([fault]);
  }

  return {
    ...store,

    async createLead(lead, claims, now) {
      const fault = indexes.fault('leads');
      if (fault === undefined) return store.createLead(lead, claims, now);
      const earlier = await soleLead(lead.studioId, claims.idempotencyKey, fault);
      if (!earlier) throw creationsRefused([fault]);
      return replayOutcome(earlier, claims.fingerprint);
    },

    async findLeadByIdempotencyKey(studioId, idempotencyKey) {
      const fault = indexes.fault('leads');
      return fault === undefined
        ? store.findLeadByIdempotencyKey(studioId, idempotencyKey)
        : soleLead(studioId, idempotencyKey, fault);
    },

    async changeLeadStage(change) {
      if (isOpen(change.stage)) await refuseClaims(change, (lead) => !isOpen(lead.stage));
      return store.changeLeadStage(change);
    },

    async updateLead(change) {
      const { correction } = change;
      await refuseClaims(change, (lead) => isOpen(lead.stage) && correctedFields(lead, correction).includes('contact'));
      return store.updateLead(change);
    },
  };
}

/** Guards the writes of API keys that rely on unique indexes: those that take a slot or store a secret. */
export function guardApiKeys(store: ApiKeyStore, indexes: UniqueIndexes): ApiKeyStore {
  const guarded =
    <Args extends unknown[], Result>(work: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      const fault = indexes.fault('api_keys');
      if (fault !== undefined) throw creationsRefused([fault]);
      return work(...args);
    };
  return { ...store, createApiKey: guarded(store.createApiKey), replaceApiKey: guarded(store.replaceApiKey) };
}
