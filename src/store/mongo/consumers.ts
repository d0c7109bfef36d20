import { isDeepStrictEqual } from 'node:util';
import type { Consumer } from '../../domain/consumer.ts';
import { decideConsumer } from '../decisions/consumers.ts';
import { type DecidedEvent, eventOfAct } from '../decisions/decision.ts';
import type { ConsumerStore, CreateConsumerOutcome } from '../port/consumers.ts';
import { type ReportUnreadable, UnreadableRecord } from '../port/faults.ts';
import { checkedConsumer } from '../records.ts';
import { changer } from './apply-once.ts';
import type { Connection } from './connection.ts';
import { AFTER_ALL_STUDIOS, type ConsumersDocument, NO_CONSUMERS } from './documents.ts';
import { among, BULK_OPTIONS, ID_ONLY, READ, WITHOUT_HISTORY } from './queries.ts';

/** The maximum number of deliveries that a command removes. */
const MAX_REMOVED = 1000;

interface ConsumersChange<Outcome> {
  readonly outcome: Outcome;
  /** Absent: nothing changes. */
  readonly list?: readonly Consumer[];
  /** The number of the next consumer; absent: unchanged. */
  readonly next?: number;
  readonly event?: DecidedEvent;
}

/** Checks the list of consumers. @throws UnreadableRecord if it is not a list */
export function checkedConsumers(list: unknown, report: ReportUnreadable): readonly Consumer[] {
  if (!Array.isArray(list)) throw new UnreadableRecord('consumer', { studioId: '?', id: '?' }, 'list');
  return list.map((each) => checkedConsumer(Object(each), report));
}

/** Returns the stored consumers. @param report default: unreadable ones are not reported */
export const consumersIn = async (
  { feed }: Connection,
  report: ReportUnreadable = () => {},
): Promise<readonly Consumer[]> =>
  checkedConsumers(((await feed.findOne({ _id: 'consumers' }, WITHOUT_HISTORY)) ?? NO_CONSUMERS).list, report);

/** Returns a function that changes the list of consumers. Unreadable ones stay as stored. */
function consumersChanger(connection: Connection) {
  const change = changer(connection, connection.feed);
  return <Outcome>(
    decide: (found: Pick<ConsumersDocument, 'list' | 'next'>) => ConsumersChange<Outcome>,
  ): Promise<Outcome> => {
    let outcome: Outcome;
    return change<Outcome>({
      which: { _id: 'consumers' },
      fields: { version: 1, next: 1, list: 1 },
      async decide(found, isApplied) {
        // The attempt that took effect set the outcome, whatever others have done since.
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

export function mongoConsumers(connection: Connection): ConsumerStore {
  const { feed, studios, deliveries, call, report } = connection;
  const change = consumersChanger(connection);
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
        // A consumer created meanwhile has a higher number than all earlier ones.
        const isOrphan = { consumer: { $nin: numbers, $lt: next } };
        const options = { ...READ, projection: { studioId: 1 }, limit: MAX_REMOVED } as const;
        const found = await deliveries.find(isOrphan, options).toArray();
        if (found.length === 0) return false;
        await deliveries.deleteMany({ ...isOrphan, ...among(found.map(({ _id }) => _id)) }, BULK_OPTIONS);
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
  };
}
