import type { Filter, UpdateFilter } from 'mongodb';
import { addChange, type PendingChange, resentTo } from '../../domain/lead-change.ts';
import { isIn } from '../../domain/lead-filter.ts';
import { StoreUnavailable, UnreadableRecord } from '../port/faults.ts';
import type { ResendStore } from '../port/resending.ts';
import type { Connection } from './connection.ts';
import { type ChangesDocument, isPlainObject, type LeadDocument, pendingFromDocument } from './lead-documents.ts';
import { among, filterSome, keyText, lastIdOfFull, READ } from './queries.ts';
import { updateEach } from './write-each.ts';

/** Reads only a lead's pending change, and what that needs. */
export const PENDING = { ...READ, projection: { studioId: 1, changes: 1, createdAt: 1, updatedAt: 1 } } as const;

/** The maximum number of attempts to resend leads that keep changing. */
const MAX_ATTEMPTS = 5;

/** Resends leads, in MongoDB. A lead's pending change is part of its document. */
export function mongoLeadChanges({ leads, call, report }: Connection): ResendStore {
  /** Changes leads as read; returns the number of refused ones, and the leads that have changed meanwhile. */
  async function changeAll(found: readonly LeadDocument[], pending: (lead: LeadDocument) => PendingChange) {
    const pendingChanges = new Map(found.map((lead) => [keyText(lead._id), pending(lead)]));
    // One update each, because the pending change depends on the lead.
    const updates = found.map((lead) => {
      const update = { $set: { changes: pendingChanges.get(keyText(lead._id)) } } as UpdateFilter<LeadDocument>;
      return {
        updateOne: { filter: { studioId: lead.studioId, _id: lead._id, ...unchangedSince(lead.changes) }, update },
      };
    });
    const { found: matched, refused } = await updateEach(leads, updates);
    if (matched === found.length) return { refused: 0, changed: [] };
    for (const { studioId, _id } of found.filter((_, index) => refused.has(index)))
      report(new UnreadableRecord('lead', { studioId, id: _id.id.toString() }, 'changes'));
    const others = found.filter((_, index) => !refused.has(index)).map(({ _id }) => _id);
    const read = await leads.find(among(others), PENDING).toArray();
    const changed = read.filter(
      (lead) => pendingFromDocument(lead).revision !== pendingChanges.get(keyText(lead._id))?.revision,
    );
    return { refused: refused.size, changed };
  }

  return {
    resendLeads: (some, now, { lowest, consumer } = {}) =>
      call(async () => {
        const kind = consumer === undefined ? 'resent' : resentTo(consumer);
        const limit = 'limit' in some ? some.limit : 0;
        const read = await leads.find(filterSome(some), { ...PENDING, sort: { _id: 1 }, limit }).toArray();
        const found = read.filter(({ updatedAt }) => isIn(updatedAt, some.updated));
        let skipped = 0;
        // A lead that has changed meanwhile is tried again: the change may only have resent it to another consumer.
        let rest: readonly LeadDocument[] = found;
        for (let attempt = 0; rest.length > 0; attempt += 1) {
          if (attempt === MAX_ATTEMPTS) throw new StoreUnavailable('leads change while they are sent again');
          const { refused, changed } = await changeAll(rest, (lead) =>
            addChange(pendingFromDocument(lead), kind, now, lowest),
          );
          skipped += refused;
          rest = changed;
        }
        return { leads: found.length - skipped, skipped, next: lastIdOfFull(read, limit) };
      }),
  };
}

/**
 * Returns a condition that this service has not changed the lead since it was read: its revision is the same. If the lead
 * was acknowledged since, its next pending change names too many kinds, never too few. An invalid revision may not equal
 * itself once read, so any revision that this service did not write is then accepted.
 */
export function unchangedSince(changes: ChangesDocument): object {
  if (!isPlainObject(changes)) return {};
  const { revision = null } = changes;
  const isSame = { 'changes.revision': revision };
  if (revision === null || Number.isSafeInteger(revision)) return isSame;
  return { $or: [isSame, { 'changes.revision': { $not: { $gte: 0, $lte: Number.MAX_SAFE_INTEGER } } }] };
}

/** Returns a condition that the lead is still as read, whoever may have changed it. */
export const asRead = (found: LeadDocument): Filter<LeadDocument> => ({
  stage: found.stage,
  updatedAt: found.updatedAt,
  ...unchangedSince(found.changes),
});
