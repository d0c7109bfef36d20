import { isDeepStrictEqual } from 'node:util';
import { type Consumer, ofEachConsumer } from '../../domain/consumer.ts';
import type { Lead } from '../../domain/lead.ts';
import { HANDLED, type LeadChange, SET_ASIDE } from '../../domain/lead-change.ts';
import { type Checked, checkedLeadChange, readableOrNull } from '../checked.ts';
import { decideConsumer } from '../decisions/consumers.ts';
import { type DecidedEvent, eventOfAct } from '../decisions/decision.ts';
import { firstReadable } from '../pages.ts';
import type { ConsumerStore, CreateConsumerOutcome } from '../port/consumers.ts';
import type { DeliveryStore } from '../port/deliveries.ts';
import { changer } from './apply-once.ts';
import { type ChangePosition, deliveriesByTime } from './by-time.ts';
import type { Connection } from './connection.ts';
import { checkedConsumers, consumersIn, type Distribution } from './distribution.ts';
import { AFTER_ALL_STUDIOS, type ConsumersDocument, type DeliveryDocument, NO_CONSUMERS } from './documents.ts';
import { enquiredLeadOf, erasedLeadOf, isErased, type LeadDocument, markOf } from './lead-documents.ts';
import { among, ID_ONLY, nameOf, OF_MANY, READ, WITHOUT_HISTORY } from './queries.ts';
import { settlingMethods } from './settling.ts';

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
  /** Whether the delivery has all changes of the lead as it was read. */
  readonly isCurrent: boolean;
}

export const mongoConsumers = (connection: Connection, distributing: Distribution): ConsumerStore & DeliveryStore => ({
  ...consumerRecords(connection),
  ...deliveryMethods(connection, distributing),
  ...settlingMethods(connection),
});

/** Returns a function that changes the list of consumers. One that cannot be read stays as it is stored. */
function changeOfConsumers(connection: Connection) {
  const change = changer(connection, connection.feed);
  return <Outcome>(
    decide: (found: Pick<ConsumersDocument, 'list' | 'next'>) => ConsumersChange<Outcome>,
  ): Promise<Outcome> => {
    let outcome: Outcome;
    return change<Outcome>({
      which: { _id: 'consumers' },
      fields: { version: 1, next: 1, list: 1 },
      async decide(found, isApplied) {
        // That of the attempt which took effect, whatever others have done since.
        if (isApplied) return { outcome };
        const { version, next, list } = found ?? NO_CONSUMERS;
        const consumers = checkedConsumers(list, connection.report);
        const decided = decide({ list: consumers, next });
        outcome = decided.outcome;
        if (!decided.list) return { outcome };
        const stored = (each: Consumer) => (each.fault ? list[consumers.indexOf(each)] : each) as Consumer;
        const changed = { version: version + 1, next: decided.next ?? next, list: decided.list.map(stored) };
        const events = decided.event && [decided.event];
        if (!found) return { outcome, insert: { _id: 'consumers', ...changed }, events };
        return { outcome, where: { version }, update: { $set: changed }, events };
      },
    });
  };
}

function consumerRecords(connection: Connection) {
  const { feed, studios, deliveries, call, report } = connection;
  const change = changeOfConsumers(connection);
  return {
    createConsumer: (created, by) =>
      change<CreateConsumerOutcome>(({ list, next }) => {
        const decision = decideConsumer(list, created);
        if (decision.kind !== 'new') return { outcome: decision };
        const consumer = { ...decision.consumer, number: next };
        const event = eventOfAct({ ...by, now: created.createdAt }, { action: 'consumer-changed', to: created.name });
        return { outcome: { kind: 'created', consumer }, list: [...list, consumer], next: next + 1, event };
      }),

    listConsumers: () => call(async () => [...(await consumersIn(connection, report))]),

    removeConsumer: (number, by) =>
      change<null>(({ list }) => {
        const removed = list.find((each) => each.number === number);
        if (!removed) return { outcome: null };
        const event = eventOfAct(by, { action: 'consumer-changed', from: removed.name });
        return { outcome: null, list: list.filter((each) => each !== removed), event };
      }).then(() => {}),

    removeOrphans: () =>
      call(async () => {
        const { list, next } = (await feed.findOne({ _id: 'consumers' }, WITHOUT_HISTORY)) ?? NO_CONSUMERS;
        const numbers = checkedConsumers(list, () => {}).map(({ number }) => number);
        // A consumer that is created meanwhile has a higher number than those that were given before.
        const isOrphan = { consumer: { $nin: numbers, $lt: next } };
        const options = { ...READ, projection: { studioId: 1 }, limit: MAX_REMOVED } as const;
        const found = await deliveries.find(isOrphan, options).toArray();
        if (found.length === 0) return false;
        await deliveries.deleteMany({ ...isOrphan, ...among(found.map(({ _id }) => _id)) }, OF_MANY);
        return found.length === MAX_REMOVED;
      }),

    findStudioAfter: (studioId) =>
      call(async () => {
        const isAfter = { _id: { $gt: studioId, $lt: AFTER_ALL_STUDIOS } };
        return (await studios.findOne(isAfter, { ...ID_ONLY, sort: { _id: 1 } }))?._id ?? null;
      }),

    putBackfills: ({ number, backfills: before }, backfills) =>
      change(({ list }) => {
        const found = list.find((each) => each.number === number);
        if (!found || !isDeepStrictEqual(found.backfills, before)) return { outcome: false };
        const put = (each: Consumer) => (each === found ? { ...each, backfills } : each);
        return { outcome: true, list: list.map(put) };
      }),
  } satisfies ConsumerStore;
}

function deliveryReader(connection: Connection) {
  const { leads, deliveries, report } = connection;

  async function withLeads(found: readonly DeliveryDocument[]): Promise<Delivered[]> {
    if (found.length === 0) return [];
    const keys = found.map(({ _id: { studioId, id } }) => ({ studioId, id }));
    const read = await leads.find(among(keys), WITHOUT_HISTORY).toArray();
    const byKey = new Map(read.map((lead) => [nameOf(lead._id), lead]));
    // Their leads were deleted, as those of a test studio are: nobody could acknowledge them.
    const lost = found.filter(({ _id }) => !byKey.has(nameOf(_id)));
    if (lost.length > 0) await deliveries.deleteMany(among(lost.map(({ _id }) => _id)), OF_MANY);
    return current(found.map((delivery) => ({ delivery, lead: byKey.get(nameOf(delivery._id)) })));
  }

  /**
   * Finds out which deliveries have all changes of their leads. A lead with an undistributed change has more. Otherwise a
   * delivery of the lead's revision has all. One of another revision may have been raised before its lead was read, so it is
   * read again.
   */
  async function current(found: readonly Omit<Delivered, 'isCurrent'>[]): Promise<Delivered[]> {
    const marked = found.map((each) => ({ ...each, mark: each.lead && markOf(each.lead) }));
    const others = marked.filter(({ delivery, mark }) => mark && delivery.revision !== mark.revision);
    const keys = others.map(({ delivery }) => delivery._id);
    const options = { ...READ, projection: { revision: 1 } } as const;
    const read = keys.length > 0 ? await deliveries.find(among(keys), options).toArray() : [];
    const revisions = new Map(read.map(({ _id, revision }) => [nameOf(_id), revision]));
    return marked.map(({ mark, ...each }) => {
      const { _id, revision } = each.delivery;
      const isSame = revision === mark?.revision || revision === revisions.get(nameOf(_id));
      return { ...each, isCurrent: isSame && !mark?.since };
    });
  }

  return ofEachConsumer((number): ((limit: number) => Promise<LeadChange[]>) => {
    const queue = deliveriesByTime(connection, number);
    return firstReadable<Delivered, LeadChange, ChangePosition>({
      first: async (count) => withLeads(await queue.first(count)),
      behind: async (position, count) => withLeads(await queue.behind(position, count)),
      positionOf: ({ delivery }) => queue.positionOf(delivery),
      check({ delivery, lead, isCurrent }) {
        if (!lead) return null;
        return isCurrent ? readableOrNull(deliveredChange(lead, delivery), report) : undefined;
      },
    });
  });
}

function deliveryMethods(connection: Connection, { distribute, distributeSome }: Distribution) {
  const { deliveries, call } = connection;
  const readerOf = deliveryReader(connection);
  // Apart from those that read: each has a ceiling of its own.
  const queuesOf = ofEachConsumer((number) => ({
    waiting: deliveriesByTime(connection, number),
    parked: deliveriesByTime(connection, number, { offset: SET_ASIDE, end: new Date(HANDLED) }),
  }));
  return {
    distributeLeadChanges: () => call(distributeSome),

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
            leads: await count({ $gte: new Date(SET_ASIDE), $lt: new Date(HANDLED) }),
            since: firstParked ? new Date(firstParked.due.getTime() - SET_ASIDE) : null,
          },
          isComplete,
        };
      }),
  } satisfies Partial<DeliveryStore>;
}

/** The current state of a lead, with what a consumer has yet to handle of it. */
function deliveredChange(document: LeadDocument, { since, kinds, attempts: stored }: DeliveryDocument) {
  const lead = isErased(document) ? erasedLeadOf(document) : (enquiredLeadOf(document) as Checked<Lead>);
  const { revision = 0 } = Object(document.changes);
  const attempts = Number.isSafeInteger(stored) ? (stored as number) : 0;
  return checkedLeadChange(lead, { revision, since, kinds: Object(kinds), attempts });
}
