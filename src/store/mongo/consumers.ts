import { isDeepStrictEqual } from 'node:util';
import type { Filter } from 'mongodb';
import { STORE_SILENCE_MS } from '../../../common/deadlines.ts';
import { type Consumer, ofEachConsumer } from '../../domain/consumer.ts';
import { type LeadChange, resentDelivery, SET_ASIDE } from '../../domain/lead-change.ts';
import { checkedLeadChange, readableOrNull } from '../checked.ts';
import { type DecidedEvent, decideConsumer, eventOfAct } from '../decisions.ts';
import { firstReadable } from '../pages.ts';
import {
  type ConsumerStore,
  type CreateConsumerOutcome,
  type ReportUnreadable,
  StoreUnavailable,
  UnreadableRecord,
} from '../store.ts';
import { makeRoom } from './apply-once.ts';
import { type ChangePosition, deliveriesByTime } from './by-time.ts';
import { leadChangeOf } from './change-feed.ts';
import { type Connection, untilKnown } from './connection.ts';
import { checkedConsumers, type Distribution, deliveryDocument } from './distribution.ts';
import {
  AFTER_ALL_STUDIOS,
  CONSUMERS,
  type ConsumersDocument,
  type DeliveryDocument,
  historyEntry,
  type LeadDocument,
  NO_CONSUMERS,
  nameOf,
  newest,
  READ,
  studiosOf,
  WITHOUT_HISTORY,
} from './documents.ts';
import { findSome, markOf } from './marks.ts';
import { isDuplicate } from './server-refusal.ts';
import { settlingMethods } from './settling.ts';

/** How often deliveries are made that are acknowledged while they are made. */
const MAX_ATTEMPTS = 3;

/** The maximum number of deliveries that a command removes. */
const MAX_REMOVED = 1000;

interface ConsumersChange<Outcome> {
  readonly outcome: Outcome;
  /** Absent: nothing changes. */
  readonly list?: readonly Consumer[];
  /** The number of the next consumer; absent: as before. */
  readonly next?: number;
  readonly event?: DecidedEvent;
}

/** A delivery with its lead; undefined: somebody has deleted the lead. */
interface Delivered {
  readonly delivery: DeliveryDocument;
  readonly lead: LeadDocument | undefined;
}

/** The named consumers of the change feed, in MongoDB. */
export function mongoConsumers(
  connection: Connection,
  distributing: Distribution,
  report: ReportUnreadable,
): ConsumerStore {
  return {
    ...consumerWrites(connection, distributing, report),
    ...deliveryMethods(connection, distributing, report),
    ...settlingMethods(connection),
  };
}

/** A consumer that is created meanwhile has a higher number than those that were given before. */
async function removeOrphans({ feed, deliveries }: Connection): Promise<boolean> {
  const { list, next } = (await feed.findOne({ _id: 'consumers' }, CONSUMERS)) ?? NO_CONSUMERS;
  const numbers = checkedConsumers(list, () => {}).map(({ number }) => number);
  const isOrphan = { consumer: { $nin: numbers, $lt: next } };
  const found = await deliveries
    .find(isOrphan, { ...READ, projection: { studioId: 1 } })
    .limit(MAX_REMOVED)
    .toArray();
  if (found.length === 0) return false;
  const studioId = studiosOf(found);
  const which = { ...isOrphan, _id: { $in: found.map(({ _id }) => _id) }, studioId };
  await deliveries.deleteMany(which, { maxTimeMS: STORE_SILENCE_MS });
  return found.length === MAX_REMOVED;
}

function consumerWrites(
  connection: Connection,
  { recipients }: Distribution,
  report: ReportUnreadable,
): Pick<
  ConsumerStore,
  'createConsumer' | 'listConsumers' | 'removeConsumer' | 'removeOrphans' | 'findStudioAfter' | 'putBackfills'
> {
  const { feed, studios, oldEvents, call } = connection;

  /**
   * Changes the consumers unless they have changed since they were read; then it is decided again.
   *
   * @param decide gets the number of the next consumer at the last attempt, if its outcome is unknown; returns undefined if that
   *   cannot be known
   */
  const change = <Outcome>(
    decide: (
      found: Pick<ConsumersDocument, 'list' | 'next'>,
      attempted: number | undefined,
    ) => ConsumersChange<Outcome> | undefined,
  ) =>
    call((deadline) => {
      let attempted: number | undefined;
      return untilKnown<{ readonly outcome: Outcome }>(deadline, async () => {
        const found = await feed.findOne({ _id: 'consumers' }, CONSUMERS);
        const { version, next, list } = found ?? NO_CONSUMERS;
        const consumers = checkedConsumers(list, report);
        const decided = decide({ list: consumers, next }, attempted);
        if (!decided?.list) return decided;
        // What cannot be read stays as it is stored.
        const stored = (each: Consumer) => (each.fault ? list[consumers.indexOf(each)] : each) as Consumer;
        const changed = { version: version + 1, next: decided.next ?? next, list: decided.list.map(stored) };
        const history = decided.event ? [historyEntry(decided.event)] : [];
        attempted = next;
        if (history.length > 0) await makeRoom(feed, oldEvents, { _id: 'consumers' });
        if (found) {
          const update = { $set: changed, ...(history.length > 0 && { $push: { history: newest(history) } }) };
          const { matchedCount } = await feed.updateOne({ _id: 'consumers', version }, update);
          if (matchedCount === 1) return decided;
        } else {
          try {
            await feed.insertOne({ _id: 'consumers', ...changed, history });
            return decided;
          } catch (error) {
            if (!isDuplicate(error)) throw error;
          }
        }
        attempted = undefined;
        return undefined;
      });
    }).then(({ outcome }) => outcome);

  return {
    createConsumer: (created, by) =>
      change<CreateConsumerOutcome>(({ list, next }, attempted = next) => {
        // It was created and removed, perhaps as that of another call: it must not come again.
        if (attempted < next && !list.some(({ number }) => number === attempted)) return undefined;
        const decision = decideConsumer(list, created);
        if (decision.kind !== 'new') return { outcome: decision };
        const consumer = { ...decision.consumer, number: next };
        const event = eventOfAct({ ...by, now: created.createdAt }, { action: 'consumer-changed', to: created.name });
        return { outcome: { kind: 'created', consumer }, list: [...list, consumer], next: next + 1, event };
      }),

    listConsumers: () => call(async () => [...(await recipients()).consumers]),

    removeConsumer: (number, by) =>
      change(({ list }) => {
        const removed = list.find((each) => each.number === number);
        if (!removed) return { outcome: undefined };
        const event = eventOfAct(by, { action: 'consumer-changed', from: removed.name });
        return { outcome: undefined, list: list.filter((each) => each !== removed), event };
      }),

    removeOrphans: () => call(() => removeOrphans(connection)),

    findStudioAfter: (studioId) =>
      call(async () => {
        const isAfter = { _id: { $gt: studioId, $lt: AFTER_ALL_STUDIOS } };
        const options = { ...READ, projection: { _id: 1 }, sort: { _id: 1 } } as const;
        return (await studios.findOne(isAfter, options))?._id ?? null;
      }),

    putBackfills: ({ number, backfills: before }, backfills) =>
      change(({ list }) => {
        const found = list.find((each) => each.number === number);
        if (!found || !isDeepStrictEqual(found.backfills, before)) return { outcome: false };
        const put = (each: Consumer) => (each === found ? { ...each, backfills } : each);
        return { outcome: true, list: list.map(put) };
      }),
  };
}

/** Returns a function that reads the deliveries of a consumer. */
function deliveryReader(connection: Connection, report: ReportUnreadable) {
  const { leads, deliveries } = connection;

  async function withLeads(found: readonly DeliveryDocument[]): Promise<Delivered[]> {
    if (found.length === 0) return [];
    const filter = {
      studioId: studiosOf(found),
      _id: { $in: found.map(({ _id: { studioId, id } }) => ({ studioId, id })) },
    } as Filter<LeadDocument>;
    const read = await leads.find(filter, WITHOUT_HISTORY).toArray();
    const byKey = new Map(read.map((lead) => [nameOf(lead._id), lead]));
    // Their leads were deleted, as those of a test studio are: nobody could acknowledge them.
    const lost = found.filter(({ _id }) => !byKey.has(nameOf(_id)));
    if (lost.length > 0) {
      const _id = { $in: lost.map((each) => each._id) };
      await deliveries.deleteMany({ _id, studioId: studiosOf(lost) }, { maxTimeMS: STORE_SILENCE_MS });
    }
    return found.map((delivery) => ({ delivery, lead: byKey.get(nameOf(delivery._id)) }));
  }

  return ofEachConsumer((number): ((limit: number) => Promise<LeadChange[]>) => {
    const queue = deliveriesByTime(connection, number);
    return firstReadable<Delivered, LeadChange, ChangePosition>({
      first: async (count) => withLeads(await queue.first(count)),
      behind: async (position, count) => withLeads(await queue.behind(position, count)),
      positionOf: ({ delivery }) => queue.positionOf(delivery),
      check: ({ delivery, lead }) => (lead ? readableOrNull(deliveredChange(lead, delivery), report) : null),
    });
  });
}

function deliveryMethods(
  connection: Connection,
  { deliver, distribute, distributeSome }: Distribution,
  report: ReportUnreadable,
) {
  const { leads, deliveries, call } = connection;
  const readerOf = deliveryReader(connection, report);
  // Apart from those that read: each has a ceiling of its own.
  const queuesOf = ofEachConsumer((number) => ({
    waiting: deliveriesByTime(connection, number),
    parked: deliveriesByTime(connection, number, { offset: SET_ASIDE }),
  }));
  return {
    distributeLeadChanges: () => call(distributeSome),

    backfillDeliveries: ({ number }, some, now) =>
      call(async () => {
        const { found, next } = await findSome(leads, some);
        let rest = found.map((lead) => deliveryDocument(number, lead._id, resentDelivery(markOf(lead), now)));
        for (let attempt = 0; rest.length > 0; attempt += 1) {
          if (attempt === MAX_ATTEMPTS) throw new StoreUnavailable('deliveries are acknowledged while they are made');
          const stored = await deliver(rest);
          rest = rest.filter((each) => !stored.has(each));
        }
        return { leads: found.length, next };
      }),

    listDeliveries: (number, limit) =>
      call(async () => {
        const { consumers, isComplete } = await distribute();
        const consumer = consumers.find((each) => each.number === number);
        return consumer ? { consumer, changes: await readerOf(number)(limit), isComplete } : null;
      }),

    measureDeliveries: (number, bound) =>
      call(async () => {
        const { isComplete } = await distribute();
        const { waiting, parked } = queuesOf(number);
        const [[first], [firstParked]] = [await waiting.first(1), await parked.first(1)];
        const count = (due: object) => deliveries.countDocuments({ consumer: number, due }, { limit: bound });
        return {
          waiting: { leads: await count({ $lt: new Date(SET_ASIDE) }), since: first?.since ?? null },
          setAside: {
            leads: await count({ $gte: new Date(SET_ASIDE) }),
            since: firstParked ? new Date(firstParked.due.getTime() - SET_ASIDE) : null,
          },
          isComplete,
        };
      }),
  } satisfies Partial<ConsumerStore>;
}

/** The current state of a lead, with what a consumer has yet to handle of it. */
function deliveredChange(lead: LeadDocument, { since, kinds, attempts: stored }: DeliveryDocument) {
  const current = leadChangeOf(lead);
  if (current instanceof UnreadableRecord) return current;
  const attempts = Number.isSafeInteger(stored) ? (stored as number) : 0;
  return checkedLeadChange(current.lead, { revision: current.revision, since, kinds: Object(kinds), attempts });
}
