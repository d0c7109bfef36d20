import type { AnyBulkWriteOperation } from 'mongodb';
import { ofEachConsumer } from '../../domain/consumer.ts';
import {
  type Acknowledgement,
  asideBefore,
  DEFERRED,
  dueOf,
  HANDLED,
  retryTimeOf,
  type Settled,
  settledOf,
} from '../../domain/lead-change.ts';
import type { DeliveryStore, LeadOfStudio } from '../port/deliveries.ts';
import { deliveriesByTime } from './by-time.ts';
import type { Connection } from './connection.ts';
import type { DeliveryDocument } from './documents.ts';
import { updateEach } from './marks.ts';
import { among, deliveryKey, ID_ONLY, leadKey, nameOf, READ } from './queries.ts';

/** The maximum number of deliveries that come again at a time. */
const MAX_RETURNED = 100;

/**
 * How long an acknowledged delivery is kept; milliseconds. A distribution that began before the acknowledgement finds it, and
 * does not deliver the same change again. No call of the store takes as long.
 */
const KEPT_MS = 60_000;

/** A condition for deliveries that were not acknowledged, also if their times cannot be read. */
const IS_UNHANDLED = { $not: { $gte: new Date(HANDLED) } } as const;

/** A condition for the deliveries of some leads. */
const namedOf = (consumer: number, leads: readonly LeadOfStudio[]) =>
  among(leads.map(({ studioId, leadId }) => deliveryKey(consumer, leadKey(studioId, leadId))));

/** What consumers make of their deliveries, in MongoDB. */
export function settlingMethods(connection: Connection) {
  const { leads: stored, deliveries, call } = connection;
  const aside = { offset: DEFERRED, end: new Date(HANDLED) };
  const asideOf = ofEachConsumer((number) => deliveriesByTime(connection, number, aside));
  return {
    acknowledgeDeliveries: (number, acknowledgements) =>
      call(() => {
        const byRevision = Map.groupBy(acknowledgements, ({ revision }) => revision);
        const handled = HANDLED + Date.now();
        const updates = [...byRevision].map(([revision, seen]) => ({
          updateMany: {
            filter: { ...namedOf(number, seen), revision: { $lte: revision }, due: IS_UNHANDLED },
            update: { $set: { revision, due: new Date(handled) } },
          },
        }));
        const due = { $gte: new Date(HANDLED), $lt: new Date(handled - KEPT_MS) };
        return settle(number, acknowledgements, [...updates, { deleteMany: { filter: { consumer: number, due } } }]);
      }),

    setAsideDeliveries: (number, leads, now) =>
      call(() => {
        const updates = leads.map((lead) => {
          const { revision, reason } = lead;
          const due = { $lt: new Date(asideBefore(lead)) };
          const filter = { ...namedOf(number, [lead]), revision: { $lte: revision }, due };
          return { updateOne: { filter, update: { $set: { due: dueOf(lead, now), reason }, $inc: { attempts: 1 } } } };
        });
        return settle(number, leads, updates);
      }),

    returnDeferredDeliveries: (number, now) =>
      call(async () => {
        const due = { $gte: new Date(DEFERRED), $lte: new Date(DEFERRED + now.getTime()) };
        await takeBack(await deliveries.find({ consumer: number, due }, { ...READ, limit: MAX_RETURNED }).toArray());
      }),

    takeBackDeliveries: (number, leads) =>
      call(async () => {
        const isAside = { ...namedOf(number, leads), due: { $gte: new Date(DEFERRED), $lt: new Date(HANDLED) } };
        return takeBack(await deliveries.find(isAside, READ).toArray());
      }),

    listDeliveriesSetAside: (number, after, limit) =>
      call(async () => {
        const position = after && { since: after.due, _id: deliveryKey(number, leadKey(after.studioId, after.leadId)) };
        const found = await asideOf(number).behind(position, limit);
        return found.map(({ _id: { studioId, id }, revision, reason = '', attempts = 0, due }) => {
          const lead = { studioId, leadId: id.toString(), revision };
          return { ...lead, reason, attempts, due, retryAt: retryTimeOf(due) };
        });
      }),
  } satisfies Partial<DeliveryStore>;

  /** Changes the deliveries of leads that a consumer names, and says what became of them; within a call. */
  async function settle(
    number: number,
    leads: readonly Acknowledgement[],
    changes: readonly AnyBulkWriteOperation<DeliveryDocument>[],
  ): Promise<Settled> {
    if (leads.length === 0) return settledOf(0, [], () => null);
    const { changed: settled } = await updateEach(deliveries, changes);
    const isWhole = settled === leads.length;
    const keys = leads.map(({ studioId, leadId }) => leadKey(studioId, leadId));
    const existing = isWhole ? [] : await stored.find(among(keys), ID_ONLY).toArray();
    const unhandled = { ...namedOf(number, leads), due: IS_UNHANDLED };
    const found = isWhole ? [] : await deliveries.find(unhandled, READ).toArray();
    const waiting = new Map<string, number | null>(existing.map(({ _id }) => [nameOf(_id), null]));
    for (const { _id, revision } of found) waiting.set(nameOf(_id), revision);
    return settledOf(settled, leads, ({ studioId, leadId }) => waiting.get(nameOf(leadKey(studioId, leadId))));
  }

  /** Has deliveries wait again, unless they have changed since they were read. Returns their number. */
  async function takeBack(found: readonly DeliveryDocument[]): Promise<number> {
    const updates = found.map(({ _id, studioId, due, since }) => ({
      updateOne: { filter: { _id, studioId, due }, update: { $set: { due: since } } },
    }));
    return (await updateEach(deliveries, updates)).changed;
  }
}
