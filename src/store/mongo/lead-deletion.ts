import { UUID } from 'mongodb';
import { DEFAULT_CONSUMER } from '../../domain/consumer.ts';
import { HANDLED } from '../../domain/lead-change.ts';
import { eventOfAct } from '../decisions/decision.ts';
import type { LeadDeletionStore } from '../port/lead-erasure.ts';
import { applyOnce, recorded } from './apply-once.ts';
import type { Connection } from './connection.ts';
import { consumersIn } from './consumers.ts';
import type { StudioDocument } from './documents.ts';
import { oldEventsId, ownerOfOldEvents } from './history.ts';
import { ACKNOWLEDGED, type LeadDocument } from './lead-documents.ts';
import {
  among,
  BULK_OPTIONS,
  deliveryKey,
  ID_ONLY,
  keyText,
  type LeadKey,
  leadIdsBetween,
  leadKey,
  READ,
} from './queries.ts';

/** @param connection a connection whose calls may be retried */
export function mongoLeadDeletion(connection: Connection): LeadDeletionStore {
  const { leads, studios, deliveries, call } = connection;
  const remove = leadRemover(connection);
  return {
    /** Keys and events are parts of leads. The next poll removes deliveries created meanwhile, because it finds no lead. */
    deleteLeads(studioId, limit, by) {
      const identity = new UUID().toString();
      return call(async (deadline) => {
        const consumers = await consumersIn(connection);
        const all = { studioId, _id: leadIdsBetween(studioId) };
        const options = { ...READ, projection: { _id: 1, moved: 1 }, sort: { _id: 1 }, limit } as const;
        const found = await leads.find(all, options).toArray();
        if (found.length === 0) return 0;
        // Recorded before the deletion, and once, because different attempts may delete the leads.
        const emptied = eventOfAct(by, { action: 'studio-emptied', to: `${found.length}` });
        const act = recorded<StudioDocument>(emptied);
        await applyOnce(connection, studios, deadline, { which: { _id: studioId }, requestId: identity, ...act });
        const gone = await remove(found, { studioId });
        for (const { number } of consumers) {
          const _id = { $in: gone.map((id) => deliveryKey(number, id)) };
          await deliveries.deleteMany({ studioId, _id }, BULK_OPTIONS);
        }
        return found.length;
      });
    },

    /** If the lead is resent meanwhile, the next poll removes that delivery. */
    deleteErasedLeads: (studioId, leadIds, erasedUntil) =>
      call(async () => {
        const consumers = await consumersIn(connection);
        const isDistributed = [{ 'changes.since': null }, { 'changes.since': ACKNOWLEDGED }];
        const isErased = { studioId, erasedAt: { $lte: erasedUntil } };
        const condition = { ...isErased, ...(consumers.length > 0 && { $or: isDistributed }) };
        const some = { ...condition, _id: { $in: leadIds.map((leadId) => leadKey(studioId, leadId)) } };
        const found = await leads.find(some as object, { ...READ, projection: { moved: 1 } }).toArray();
        // Deliveries are read after the leads, because an undistributed lead could be distributed after a search for its deliveries.
        const $in = consumers.flatMap(({ number }) => found.map(({ _id }) => deliveryKey(number, _id)));
        const isUnhandled = { studioId, _id: { $in }, due: { $not: { $gte: new Date(HANDLED) } } };
        const waiting = $in.length > 0 ? await deliveries.find(isUnhandled, ID_ONLY).toArray() : [];
        const isWaiting = new Set(waiting.map(({ _id }) => keyText(_id)));
        const acknowledged = found.filter(({ _id }) => !isWaiting.has(keyText(_id)));
        const removed = await remove(acknowledged, condition);
        const ofDefault = { studioId, _id: { $in: removed.map((id) => deliveryKey(DEFAULT_CONSUMER.number, id)) } };
        if (removed.length > 0) await deliveries.deleteMany(ofDefault, BULK_OPTIONS);
        return removed.length;
      }),
  };
}

/** Deletes those of the given leads that meet a condition. Returns the ids of those that no longer exist. */
type LeadRemover = (found: readonly Pick<LeadDocument, '_id' | 'moved'>[], condition: object) => Promise<LeadKey[]>;

/** The number of documents with old events in which a call looks for leftovers of earlier calls. */
const MAX_EXAMINED = 100;

/** The `_id`s of events moved out of leads' histories. */
const OF_LEADS = { $gt: 'leads ', $lt: 'leads!' } as const;

/**
 * Deletes leads, and then the events moved out of their histories, so that a remaining lead loses none. An interrupted
 * call may leave some events. Later calls delete them; each continues where the one before ended.
 */
function leadRemover({ leads, oldEvents }: Connection): LeadRemover {
  let after: string = OF_LEADS.$gt;

  async function someWithOldEvents(): Promise<LeadKey[]> {
    const which = { _id: { ...OF_LEADS, $gt: after } };
    const found = await oldEvents.find(which, { ...ID_ONLY, sort: { _id: 1 }, limit: MAX_EXAMINED }).toArray();
    after = found[MAX_EXAMINED - 1]?._id ?? OF_LEADS.$gt;
    return found.map(({ _id }) => ownerOfOldEvents(_id) as LeadKey);
  }

  return async (found, condition) => {
    const ids = found.map(({ _id }) => _id);
    if (ids.length === 0) return [];
    await leads.deleteMany({ ...condition, _id: { $in: ids } } as object, BULK_OPTIONS);
    const withOldEvents = [
      ...found.flatMap(({ _id, moved }) => (moved === undefined ? [] : _id)),
      // If that fails, the events of these leads are deleted all the same.
      ...(await someWithOldEvents().catch(() => [])),
    ];
    const all = [...ids, ...withOldEvents];
    const left = await leads.find(among(all), ID_ONLY).toArray();
    const names = new Set(left.map(({ _id }) => keyText(_id)));
    const isGone = (id: LeadKey) => !names.has(keyText(id));
    for (const id of withOldEvents.filter(isGone)) {
      const [$gte, $lte] = [0, 999_999_999].map((moved) => oldEventsId('leads', id, moved));
      await oldEvents.deleteMany({ _id: { $gte, $lte } as object });
    }
    return ids.filter(isGone);
  };
}
