import { type Document, UUID } from 'mongodb';
import { correctedFields } from '../../domain/correction.ts';
import { isOpen, type Lead } from '../../domain/lead.ts';
import { creationsRefused } from '../index-faults.ts';
import { replayOutcome } from '../replay-outcome.ts';
import type { ApiKeyStore, LeadStore } from '../store.ts';
import { type Connection, untilKnown } from './connection.ts';
import { creationOf, type LeadDocument, leadKey, READ, WITHOUT_HISTORY } from './documents.ts';
import { INDEXES, type Indexed } from './indexes.ts';

/**
 * Guards lead writes that rely on unique indexes. While an index is known to be missing, nothing that needs it is
 * written. An index may also be dropped during a write, so a write is acknowledged only after a check that began after
 * it: an index that is valid then covers the write. A write that is not acknowledged remains; if it is a duplicate, the
 * index cannot be rebuilt, and the error names it.
 */
export function guardLeads(store: LeadStore, connection: Connection): LeadStore {
  const { leads, call, calls } = connection;
  const guard = indexGuard('leads', connection);

  /** Returns the lead of an idempotency key. @throws StoreUnavailable when it shares a claim with another lead */
  async function soleLead(studioId: string, idempotencyKey: string, fault: string): Promise<LeadDocument | null> {
    const found = await call(() =>
      leads.findOne({ studioId, 'idempotency.key': new UUID(idempotencyKey) }, WITHOUT_HISTORY),
    );
    if (found && !(await isUnique(found, connection))) throw creationsRefused([fault]);
    return found;
  }

  /** Guards a change by which a lead may take claims. */
  const guardedChange = <Outcome extends { readonly kind: string }>(
    { studioId, leadId }: { readonly studioId: string; readonly leadId: string },
    takesClaims: (lead: Lead) => boolean,
    change: () => Promise<Outcome>,
  ): Promise<Outcome> =>
    calls(async (deadline) => {
      const before = guard.lastFault();
      if (before !== undefined) {
        const lead = await store.findLead(studioId, leadId);
        if (lead && takesClaims(lead)) throw creationsRefused([before]);
      }
      const outcome = await change();
      const isWritten = outcome.kind === 'changed' || outcome.kind === 'updated';
      const fault = isWritten && (await guard.fault(deadline));
      if (!fault) return outcome;
      const changed = await call(() => leads.findOne({ studioId, _id: leadKey(studioId, leadId) }, WITHOUT_HISTORY));
      if (!changed || !(await isUnique(changed, connection))) throw creationsRefused([fault]);
      return outcome;
    });

  return {
    ...store,

    createLead: (lead, claims, now) =>
      calls(async (deadline) => {
        let fault = guard.lastFault();
        if (fault === undefined) {
          const outcome = await store.createLead(lead, claims, now);
          // Nothing was written, and what was read does not depend on an index.
          if (outcome.kind === 'already-open') return outcome;
          fault = await guard.fault(deadline);
          if (fault === undefined) return outcome;
        }
        const earlier = await soleLead(lead.studioId, claims.idempotencyKey, fault);
        if (!earlier || earlier._id.id.toString() === lead.id) throw creationsRefused([fault]);
        return replayOutcome(creationOf(earlier), claims.fingerprint);
      }),

    findLeadByIdempotencyKey: (studioId, idempotencyKey) =>
      calls(async (deadline) => {
        const found = await store.findLeadByIdempotencyKey(studioId, idempotencyKey);
        const fault = found && (await guard.fault(deadline));
        if (!fault) return found;
        const sole = await soleLead(studioId, idempotencyKey, fault);
        return sole && creationOf(sole);
      }),

    changeLeadStage: (change) => {
      // Closing takes no claims.
      if (!isOpen(change.stage)) return store.changeLeadStage(change);
      const takesClaims = (lead: Lead) => !isOpen(lead.stage);
      return guardedChange(change, takesClaims, () => store.changeLeadStage(change));
    },

    updateLead: (change) => {
      const { correction } = change;
      if (correction.contact === undefined) return store.updateLead(change);
      const takesClaims = (lead: Lead) => isOpen(lead.stage) && correctedFields(lead, correction).includes('contact');
      return guardedChange(change, takesClaims, () => store.updateLead(change));
    },
  };
}

/** Whether no other lead has one of this lead's claims or its idempotency key. */
async function isUnique(lead: LeadDocument, { leads, call }: Connection): Promise<boolean> {
  const withSameValues = INDEXES.filter(({ collection, unique }) => collection === 'leads' && unique).map(({ key }) =>
    Object.fromEntries(Object.keys(key).map((field) => [field, sameAs(lead, field)])),
  );
  const found = await call(() =>
    leads
      .find({ studioId: lead.studioId, $or: withSameValues }, { ...READ, projection: { _id: 1 } })
      .limit(2)
      .toArray(),
  );
  return found.length === 1;
}

/** Guards the writes of API keys that rely on unique indexes: those that take a slot or store a secret. */
export function guardApiKeys(store: ApiKeyStore, connection: Connection): ApiKeyStore {
  const guard = indexGuard('apiKeys', connection);
  const guarded = <Result>(work: () => Promise<Result>): Promise<Result> =>
    connection.calls(async (deadline) => {
      const before = guard.lastFault();
      if (before !== undefined) throw creationsRefused([before]);
      const result = await work();
      const fault = await guard.fault(deadline);
      if (fault !== undefined) throw creationsRefused([fault]);
      return result;
    });
  return {
    ...store,
    createApiKey: (...creation) => guarded(() => store.createApiKey(...creation)),
    replaceApiKey: (replacement) => guarded(() => store.replaceApiKey(replacement)),
  };
}

function indexGuard(collection: Indexed, { indexes }: Connection) {
  return {
    lastFault: () => indexes.lastFault(collection),
    /** Retries the check until the deadline. */
    fault: async (deadline: AbortSignal) =>
      (await untilKnown(deadline, async () => ({ fault: await indexes.fault(collection) }))).fault,
  };
}

/** A condition for documents with one of this document's values in a field. */
function sameAs(document: Document, field: string): unknown {
  const value = field.split('.').reduce((inner, name) => inner?.[name], document);
  return Array.isArray(value) ? { $in: value } : value;
}
