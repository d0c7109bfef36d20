import type { Filter, UpdateFilter } from 'mongodb';
import { type ChangeMark, marked, resentTo } from '../../domain/lead-change.ts';
import { isIn } from '../../domain/lead-filter.ts';
import { StoreUnavailable, UnreadableRecord } from '../port/faults.ts';
import type { ResendStore } from '../port/resending.ts';
import type { Connection } from './connection.ts';
import { type ChangesDocument, isPlainObject, type LeadDocument, markFromDocument } from './lead-documents.ts';
import { among, filterSome, keyText, lastIdOfFull, READ } from './queries.ts';
import { updateEach } from './write-each.ts';

/** Reads only a lead's mark, and what that needs. */
export const MARK = { ...READ, projection: { studioId: 1, changes: 1, createdAt: 1, updatedAt: 1 } } as const;

/** The maximum number of attempts to mark leads that keep changing. */
const MAX_ATTEMPTS = 5;

/** The marks of the change feed, in MongoDB. A lead's mark is part of its document. */
export function mongoLeadChanges({ leads, call, report }: Connection): ResendStore {
  /** Marks leads as read; returns the number of refused ones, and the leads that have changed meanwhile. */
  async function markAll(found: readonly LeadDocument[], mark: (lead: LeadDocument) => ChangeMark) {
    const marks = new Map(found.map((lead) => [keyText(lead._id), mark(lead)]));
    // One update each, because the mark depends on the lead.
    const updates = found.map((lead) => {
      const update = { $set: { changes: marks.get(keyText(lead._id)) } } as UpdateFilter<LeadDocument>;
      return {
        updateOne: { filter: { studioId: lead.studioId, _id: lead._id, ...unmarkedSince(lead.changes) }, update },
      };
    });
    const { found: matched, refused } = await updateEach(leads, updates);
    if (matched === found.length) return { refused: 0, changed: [] };
    for (const { studioId, _id } of found.filter((_, index) => refused.has(index)))
      report(new UnreadableRecord('lead', { studioId, id: _id.id.toString() }, 'changes'));
    const others = found.filter((_, index) => !refused.has(index)).map(({ _id }) => _id);
    const read = await leads.find(among(others), MARK).toArray();
    const changed = read.filter((lead) => markFromDocument(lead).revision !== marks.get(keyText(lead._id))?.revision);
    return { refused: refused.size, changed };
  }

  return {
    resendLeads: (some, now, { lowest, consumer } = {}) =>
      call(async () => {
        const kind = consumer === undefined ? 'resent' : resentTo(consumer);
        const limit = 'limit' in some ? some.limit : 0;
        const read = await leads.find(filterSome(some), { ...MARK, sort: { _id: 1 }, limit }).toArray();
        const found = read.filter(({ updatedAt }) => isIn(updatedAt, some.updated));
        let skipped = 0;
        // A lead that has changed meanwhile may be marked only for another consumer.
        let rest: readonly LeadDocument[] = found;
        for (let attempt = 0; rest.length > 0; attempt += 1) {
          if (attempt === MAX_ATTEMPTS) throw new StoreUnavailable('leads change while they are sent again');
          const { refused, changed } = await markAll(rest, (lead) => marked(markFromDocument(lead), kind, now, lowest));
          skipped += refused;
          rest = changed;
        }
        return { leads: found.length - skipped, skipped, next: lastIdOfFull(read, limit) };
      }),
  };
}

/**
 * Returns a condition that this service has not marked the lead since it was read: its revision is the same. If the
 * lead was acknowledged since, its next mark names too many kinds, never too few. An invalid revision may not equal
 * itself once read. The condition then accepts any revision that this service did not write.
 */
export function unmarkedSince(changes: ChangesDocument): object {
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
  ...unmarkedSince(found.changes),
});
