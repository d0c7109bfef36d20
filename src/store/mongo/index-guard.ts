import { type Document, UUID } from 'mongodb';
import { correctedFields } from '../../domain/correction.ts';
import { isOpen, type Lead } from '../../domain/lead.ts';
import { creationsRefused } from '../index-faults.ts';
import { replayOutcome } from '../replay-outcome.ts';
import type { ApiKeyStore, ClaimRenewalStore, LeadStore } from '../store.ts';
import { type Connection, untilKnown } from './connection.ts';
import { creationOf, type LeadDocument, leadKey, READ, WITHOUT_HISTORY } from './documents.ts';
import { INDEXES, type Indexed } from './indexes.ts';

/**
 * Leads, answered as far as the unique indexes vouch for it. While one is known not to stand, nothing that needs it is
 * written. That it stood when a write was made, nobody can know before: somebody may drop it in that moment. So what needs it
 * is answered only after a look that began when it was written: an index that stands then stands on that write, too. What was
 * written in that moment remains, unanswered; should it be one too many, the index cannot be made, and says so.
 */
export function guardLeads(store: LeadStore, connection: Connection): LeadStore {
  const { leads, call, calls } = connection;
  const vouching = vouchingFor('leads', connection);

  /** The one lead with a key; none of its claims may be another's as well. */
  async function soleLead(studioId: string, idempotencyKey: string, fault: string): Promise<LeadDocument | null> {
    const found = await call(() =>
      leads.findOne({ studioId, 'idempotency.key': new UUID(idempotencyKey) }, WITHOUT_HISTORY),
    );
    if (found && !(await standsAlone(found, connection))) throw creationsRefused([fault]);
    return found;
  }

  /** A change by which a lead may take claims. */
  const changeVouchedFor = <Outcome extends { readonly kind: string }>(
    { studioId, leadId }: { readonly studioId: string; readonly leadId: string },
    takesClaims: (lead: Lead) => boolean,
    change: () => Promise<Outcome>,
  ): Promise<Outcome> =>
    calls(async (deadline) => {
      const before = vouching.lastFault();
      if (before !== undefined) {
        const lead = await store.findLead(studioId, leadId);
        if (lead && takesClaims(lead)) throw creationsRefused([before]);
      }
      const outcome = await change();
      const isWritten = outcome.kind === 'changed' || outcome.kind === 'updated';
      const fault = isWritten && (await vouching.fault(deadline));
      if (!fault) return outcome;
      const changed = await call(() => leads.findOne({ studioId, _id: leadKey(studioId, leadId) }, WITHOUT_HISTORY));
      if (!changed || !(await standsAlone(changed, connection))) throw creationsRefused([fault]);
      return outcome;
    });

  return {
    ...store,

    createLead: (lead, claims, now) =>
      calls(async (deadline) => {
        let fault = vouching.lastFault();
        if (fault === undefined) {
          const outcome = await store.createLead(lead, claims, now);
          // What was read is so, with or without an index, and nothing was written.
          if (outcome.kind === 'already-open') return outcome;
          fault = await vouching.fault(deadline);
          if (fault === undefined) return outcome;
        }
        const earlier = await soleLead(lead.studioId, claims.idempotencyKey, fault);
        if (!earlier || earlier._id.id.toString() === lead.id) throw creationsRefused([fault]);
        return replayOutcome(creationOf(earlier), claims.fingerprint);
      }),

    findLeadByIdempotencyKey: (studioId, idempotencyKey) =>
      calls(async (deadline) => {
        const found = await store.findLeadByIdempotencyKey(studioId, idempotencyKey);
        const fault = found && (await vouching.fault(deadline));
        if (!fault) return found;
        const sole = await soleLead(studioId, idempotencyKey, fault);
        return sole && creationOf(sole);
      }),

    changeLeadStage: (change) => {
      // Whoever closes a lead claims nothing but its own id.
      if (!isOpen(change.stage)) return store.changeLeadStage(change);
      const takesClaims = (lead: Lead) => !isOpen(lead.stage);
      return changeVouchedFor(change, takesClaims, () => store.changeLeadStage(change));
    },

    updateLead: (change) => {
      const { correction } = change;
      if (correction.contact === undefined) return store.updateLead(change);
      const takesClaims = (lead: Lead) => isOpen(lead.stage) && correctedFields(lead, correction).includes('contact');
      return changeVouchedFor(change, takesClaims, () => store.updateLead(change));
    },
  };
}

/** Whether no other lead has a claim of this one's, or its key. */
async function standsAlone(lead: LeadDocument, { leads, call }: Connection): Promise<boolean> {
  const withAClaim = INDEXES.filter(({ collection, unique }) => collection === 'leads' && unique).map(({ key }) =>
    Object.fromEntries(Object.keys(key).map((field) => [field, sameAs(lead, field)])),
  );
  const found = await call(() =>
    leads
      .find({ studioId: lead.studioId, $or: withAClaim }, { ...READ, projection: { _id: 1 } })
      .limit(2)
      .toArray(),
  );
  return found.length === 1;
}

/** Keys, as far as the unique indexes vouch for them: only a key that takes a slot or brings a secret needs them. */
export function guardApiKeys(store: ApiKeyStore, connection: Connection): ApiKeyStore {
  const vouching = vouchingFor('apiKeys', connection);
  const vouchedFor = <Result>(work: () => Promise<Result>): Promise<Result> =>
    connection.calls(async (deadline) => {
      const before = vouching.lastFault();
      if (before !== undefined) throw creationsRefused([before]);
      const result = await work();
      const fault = await vouching.fault(deadline);
      if (fault !== undefined) throw creationsRefused([fault]);
      return result;
    });
  return {
    ...store,
    createApiKey: (...creation) => vouchedFor(() => store.createApiKey(...creation)),
    replaceApiKey: (replacement) => vouchedFor(() => store.replaceApiKey(replacement)),
  };
}

/** Claims that are made anew, while the index stands that keeps a lead from what is another's. */
export function guardClaimRenewals(store: ClaimRenewalStore, connection: Connection): ClaimRenewalStore {
  const vouching = vouchingFor('leads', connection);
  return {
    ...store,
    async renewClaims(...renewal) {
      const fault = vouching.lastFault();
      if (fault !== undefined) throw creationsRefused([fault]);
      return store.renewClaims(...renewal);
    },
  };
}

function vouchingFor(collection: Indexed, { indexes }: Connection) {
  return {
    lastFault: () => indexes.lastFault(collection),
    /** Looks until it has seen; within the deadline. */
    fault: async (deadline: AbortSignal) =>
      (await untilKnown(deadline, async () => ({ fault: await indexes.fault(collection) }))).fault,
  };
}

/** What finds those that have a value of this document's in a field, which may hold several. */
function sameAs(document: Document, field: string): unknown {
  const value = field.split('.').reduce((inner, name) => inner?.[name], document);
  return Array.isArray(value) ? { $in: value } : value;
}
