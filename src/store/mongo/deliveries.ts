import type { AnyBulkWriteOperation } from 'mongodb';
import { cachedByConsumer } from '../../domain/consumer.ts';
import type { Lead, LeadOfStudio } from '../../domain/lead.ts';
import {
  type Acknowledgement,
  countStates,
  DEFERRED,
  HANDLED,
  type LeadChange,
  SET_ASIDE,
  type StateCounts,
  toDueTime,
  toRetryTime,
  waitingBefore,
} from '../../domain/lead-change.ts';
import { type Checked, checkedLeadChange, readableOrNull } from '../checked.ts';
import { firstReadable } from '../pages.ts';
import type { DeliveryStore } from '../port/deliveries.ts';
import { type ChangePosition, deliveriesByTime } from './by-time.ts';
import type { Connection } from './connection.ts';
import type { Distribution } from './distribution.ts';
import type { DeliveryDocument } from './documents.ts';
import {
  enquiredLeadFromDocument,
  erasedLeadFromDocument,
  isErased,
  type LeadDocument,
  pendingFromDocument,
} from './lead-documents.ts';
import { among, BULK_OPTIONS, deliveryKey, ID_ONLY, keyText, leadKey, READ, WITHOUT_HISTORY } from './queries.ts';
import { updateEach } from './write-each.ts';

/** A delivery with its lead; undefined: the lead was deleted. */
interface Delivered {
  readonly delivery: DeliveryDocument;
  readonly lead: LeadDocument | undefined;
  /** Whether the delivery has all changes of the lead as read. */
  readonly isCurrent: boolean;
}

/** The maximum number of deferred deliveries that are requeued at a time. */
const MAX_RETURNED = 100;

/**
 * How long an acknowledged delivery stays; milliseconds. A distribution that began before the acknowledgement finds it,
 * and does not deliver the same change again. No call of the store takes this long.
 */
const KEPT_MS = 60_000;

/** A condition for deliveries that were not acknowledged, including those with unreadable times. */
const IS_UNHANDLED = { $not: { $gte: new Date(HANDLED) } } as const;

/** Returns a condition for the deliveries of some leads. */
const filterNamed = (consumer: number, leads: readonly LeadOfStudio[]) =>
  among(leads.map(({ studioId, leadId }) => deliveryKey(consumer, leadKey(studioId, leadId))));

function deliveryReader(connection: Connection) {
  const { leads, deliveries, report } = connection;

  async function withLeads(found: readonly DeliveryDocument[]): Promise<Delivered[]> {
    if (found.length === 0) return [];
    const keys = found.map(({ _id: { studioId, id } }) => ({ studioId, id }));
    const read = await leads.find(among(keys), WITHOUT_HISTORY).toArray();
    const byKey = new Map(read.map((lead) => [keyText(lead._id), lead]));
    // Their leads were deleted, for example from a test studio, so nobody could acknowledge them.
    const lost = found.filter(({ _id }) => !byKey.has(keyText(_id)));
    if (lost.length > 0) await deliveries.deleteMany(among(lost.map(({ _id }) => _id)), BULK_OPTIONS);
    return current(found.map((delivery) => ({ delivery, lead: byKey.get(keyText(delivery._id)) })));
  }

  /**
   * Determines which deliveries have all changes of their leads. A lead with an undistributed change has more changes.
   * Otherwise a delivery with the lead's revision has all. A delivery with another revision is read again, because a
   * distribution may have raised it before its lead was read.
   */
  async function current(found: readonly Omit<Delivered, 'isCurrent'>[]): Promise<Delivered[]> {
    const withPending = found.map((each) => ({ ...each, pending: each.lead && pendingFromDocument(each.lead) }));
    const others = withPending.filter(({ delivery, pending }) => pending && delivery.revision !== pending.revision);
    const keys = others.map(({ delivery }) => delivery._id);
    const options = { ...READ, projection: { revision: 1 } } as const;
    const read = keys.length > 0 ? await deliveries.find(among(keys), options).toArray() : [];
    const revisions = new Map(read.map(({ _id, revision }) => [keyText(_id), revision]));
    return withPending.map(({ pending, ...each }) => {
      const { _id, revision } = each.delivery;
      const isSame = revision === pending?.revision || revision === revisions.get(keyText(_id));
      return { ...each, isCurrent: isSame && !pending?.since };
    });
  }

  return cachedByConsumer((number): ((limit: number) => Promise<LeadChange[]>) => {
    const queue = deliveriesByTime(connection, number);
    return firstReadable<Delivered, LeadChange, ChangePosition>({
      first: async (count) => withLeads(await queue.first(count)),
      behind: async (position, count) => withLeads(await queue.behind(position, count)),
      toPosition: ({ delivery }) => queue.toPosition(delivery),
      check({ delivery, lead, isCurrent }) {
        if (!lead) return null;
        return isCurrent ? readableOrNull(deliveredChange(lead, delivery), report) : undefined;
      },
    });
  });
}

function deliveryChanger({ leads: stored, deliveries }: Connection) {
  return { applyTo, takeBack };

  /** Changes the deliveries of leads that a consumer names, and counts the results. Must be called within a call. */
  async function applyTo(
    number: number,
    leads: readonly Acknowledgement[],
    changes: readonly AnyBulkWriteOperation<DeliveryDocument>[],
  ): Promise<StateCounts> {
    if (leads.length === 0) return countStates(0, [], () => null);
    const { changed: applied } = await updateEach(deliveries, changes);
    const isWhole = applied === leads.length;
    const keys = leads.map(({ studioId, leadId }) => leadKey(studioId, leadId));
    const existing = isWhole ? [] : await stored.find(among(keys), ID_ONLY).toArray();
    const unhandled = { ...filterNamed(number, leads), due: IS_UNHANDLED };
    const found = isWhole ? [] : await deliveries.find(unhandled, READ).toArray();
    const waiting = new Map<string, number | null>(existing.map(({ _id }) => [keyText(_id), null]));
    for (const { _id, revision } of found) waiting.set(keyText(_id), revision);
    return countStates(applied, leads, ({ studioId, leadId }) => waiting.get(keyText(leadKey(studioId, leadId))));
  }

  /** Requeues deliveries, unless they have changed since they were read. Returns their number. */
  async function takeBack(found: readonly DeliveryDocument[]): Promise<number> {
    const updates = found.map(({ _id, studioId, due, since }) => ({
      updateOne: { filter: { _id, studioId, due }, update: { $set: { due: since } } },
    }));
    return (await updateEach(deliveries, updates)).changed;
  }
}

export function mongoDeliveries(connection: Connection, { distribute, distributeSome }: Distribution): DeliveryStore {
  const { deliveries, call } = connection;
  const { applyTo, takeBack } = deliveryChanger(connection);
  const findReader = deliveryReader(connection);
  // Separate from the readers' queues, because each queue has its own ceiling.
  const findQueues = cachedByConsumer((number) => ({
    waiting: deliveriesByTime(connection, number),
    withoutRetry: deliveriesByTime(connection, number, { offset: SET_ASIDE, end: new Date(HANDLED) }),
    setAside: deliveriesByTime(connection, number, { offset: DEFERRED, end: new Date(HANDLED) }),
  }));
  return {
    distributeLeadChanges: () => call(distributeSome),

    listDeliveries: (number, limit) =>
      call(async () => {
        const { consumers, isComplete } = await distribute();
        const consumer = consumers.find((each) => each.number === number);
        return consumer ? { consumer, changes: await findReader(number)(limit), isComplete } : null;
      }),

    measureDeliveries: (number, bound) =>
      call(async () => {
        const { isComplete } = await distribute();
        const { waiting, withoutRetry } = findQueues(number);
        const [[first], [firstSetAside]] = [await waiting.first(1), await withoutRetry.first(1)];
        const count = (due: object) => deliveries.countDocuments({ consumer: number, due }, { limit: bound });
        return {
          waiting: { leads: await count({ $lt: new Date(SET_ASIDE) }), since: first?.since ?? null },
          setAside: {
            leads: await count({ $gte: new Date(SET_ASIDE), $lt: new Date(HANDLED) }),
            since: firstSetAside ? new Date(firstSetAside.due.getTime() - SET_ASIDE) : null,
          },
          isComplete,
        };
      }),

    acknowledgeDeliveries: (number, acknowledgements) =>
      call(() => {
        const byRevision = Map.groupBy(acknowledgements, ({ revision }) => revision);
        const handled = HANDLED + Date.now();
        const updates = [...byRevision].map(([revision, seen]) => ({
          updateMany: {
            filter: { ...filterNamed(number, seen), revision: { $lte: revision }, due: IS_UNHANDLED },
            update: { $set: { revision, due: new Date(handled) } },
          },
        }));
        const due = { $gte: new Date(HANDLED), $lt: new Date(handled - KEPT_MS) };
        return applyTo(number, acknowledgements, [...updates, { deleteMany: { filter: { consumer: number, due } } }]);
      }),

    setAsideDeliveries: (number, leads, now) =>
      call(() => {
        const updates = leads.map((lead) => {
          const { revision, reason, retryAt } = lead;
          const due = { $lt: new Date(waitingBefore(retryAt)) };
          const filter = { ...filterNamed(number, [lead]), revision: { $lte: revision }, due };
          return {
            updateOne: { filter, update: { $set: { due: toDueTime(retryAt, now), reason }, $inc: { attempts: 1 } } },
          };
        });
        return applyTo(number, leads, updates);
      }),

    returnDeferredDeliveries: (number, now) =>
      call(async () => {
        const due = { $gte: new Date(DEFERRED), $lte: new Date(DEFERRED + now.getTime()) };
        await takeBack(await deliveries.find({ consumer: number, due }, { ...READ, limit: MAX_RETURNED }).toArray());
      }),

    takeBackDeliveries: (number, leads) =>
      call(async () => {
        const setAside = { ...filterNamed(number, leads), due: { $gte: new Date(DEFERRED), $lt: new Date(HANDLED) } };
        return takeBack(await deliveries.find(setAside, READ).toArray());
      }),

    listDeliveriesSetAside: (number, after, limit) =>
      call(async () => {
        const position = after && { since: after.due, _id: deliveryKey(number, leadKey(after.studioId, after.leadId)) };
        const found = await findQueues(number).setAside.behind(position, limit);
        return found.map(({ _id: { studioId, id }, revision, reason = '', attempts = 0, due }) => {
          const lead = { studioId, leadId: id.toString(), revision };
          return { ...lead, reason, attempts, due, retryAt: toRetryTime(due) };
        });
      }),
  };
}

/** Returns the current state of a lead, with the changes that a consumer has not handled. */
function deliveredChange(document: LeadDocument, { since, kinds, attempts: stored }: DeliveryDocument) {
  const lead = isErased(document)
    ? erasedLeadFromDocument(document)
    : (enquiredLeadFromDocument(document) as Checked<Lead>);
  const { revision = 0 } = Object(document.changes);
  const attempts = Number.isSafeInteger(stored) ? (stored as number) : 0;
  return checkedLeadChange(lead, { revision, since, kinds: Object(kinds), attempts });
}
