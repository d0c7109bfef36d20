import { DEFAULT_CONSUMER } from '../../domain/consumer.ts';
import { DEFERRED, SET_ASIDE } from '../../domain/lead-change.ts';
import { decideConsumer } from '../decisions/consumers.ts';
import { deploymentEvent } from '../decisions/decision.ts';
import type { ConsumerStore } from '../port/consumers.ts';
import type { DeliveryStore } from '../port/deliveries.ts';
import { deliveriesIn } from './change-feed.ts';
import type { Connection } from './connection.ts';
import type { Distribution } from './distribution.ts';
import { CONSUMERS } from './record-rows.ts';
import { prepareLists } from './rows.ts';
import { settlingMethods } from './settling.ts';

/** The maximum number of deliveries that a transaction removes. */
const MAX_REMOVED = 1000;

export const sqliteConsumers = (connection: Connection, distributing: Distribution): ConsumerStore & DeliveryStore => ({
  ...consumerRecords(connection, distributing),
  ...deliveryMethods(connection, distributing),
  ...settlingMethods(connection),
});

function consumerRecords({ database, plainCommits, recordEvent }: Connection, { stored }: Distribution) {
  const insert = database.prepare(`INSERT ${CONSUMERS.into()}`);
  const remove = database.prepare('DELETE FROM consumers WHERE number = ? RETURNING name');
  const removeBetween = database.prepare(`
    DELETE FROM deliveries WHERE (consumer, lead) IN (
      SELECT consumer, lead FROM deliveries WHERE consumer > ? AND consumer < ? LIMIT ${MAX_REMOVED}
    )`);
  const selectStudioAfter = database.prepare('SELECT id FROM studios WHERE id > ? ORDER BY id LIMIT 1');
  const putBackfills = database.prepare('UPDATE consumers SET backfills = ? WHERE number = ? AND backfills = ?');

  return {
    createConsumer: (created, by) =>
      plainCommits.write(() => {
        const decision = decideConsumer(stored(), created);
        if (decision.kind !== 'new') return decision;
        const { consumer } = decision;
        // The database gives it a number.
        const { lastInsertRowid } = insert.run({ ...CONSUMERS.written(consumer).values, number: null });
        const { name, createdAt } = consumer;
        recordEvent(deploymentEvent({ ...by, now: createdAt }, { action: 'consumer-changed', to: name }));
        return { kind: 'created', consumer: { ...consumer, number: Number(lastInsertRowid) } };
      }),

    listConsumers: async () => stored(),

    removeConsumer: (number, by) =>
      plainCommits.write(() => {
        const removed = remove.get(number);
        if (!removed) return;
        recordEvent(deploymentEvent(by, { action: 'consumer-changed', from: removed.name as string }));
      }),

    removeOrphans: () =>
      plainCommits.write(() => {
        const numbers = stored().map(({ number }) => number);
        // Between two consumers that there are, the index has only those of others.
        return [...numbers, DEFAULT_CONSUMER.number].some(
          (number, index) => removeBetween.run(numbers[index - 1] ?? 0, number).changes > 0,
        );
      }),

    findStudioAfter: async (studioId) => (selectStudioAfter.get(studioId)?.id as string | undefined) ?? null,

    putBackfills: ({ number, backfills: before }, backfills) =>
      plainCommits.write(
        () => putBackfills.run(JSON.stringify(backfills), number, JSON.stringify(before)).changes === 1,
      ),
  } satisfies ConsumerStore;
}

function deliveryMethods(connection: Connection, { distribute, distributeSome }: Distribution) {
  const { database } = connection;
  const readDeliveries = deliveriesIn(connection);
  const count = prepareLists(
    database,
    `SELECT count(*), min(due), since FROM (
      SELECT due, since FROM deliveries WHERE consumer = ? AND due >= ? AND due < ? ORDER BY due LIMIT ? + 0)`,
  );

  return {
    distributeLeadChanges: distributeSome,

    async listDeliveries(number, limit) {
      const { consumers, isComplete } = await distribute();
      const consumer = consumers.find((each) => each.number === number);
      return consumer ? { consumer, changes: await readDeliveries(number)(limit), isComplete } : null;
    },

    async measureDeliveries(number, bound) {
      const { isComplete } = await distribute();
      const measured = (from: number, to: number) =>
        count.get(number, from, to, bound) as [leads: number, due: number | null, since: number];
      const [leads, due, since] = measured(0, SET_ASIDE);
      const [setAside, first] = measured(SET_ASIDE, Number.MAX_SAFE_INTEGER);
      return {
        waiting: { leads, since: due === null || due >= DEFERRED ? null : new Date(since) },
        setAside: { leads: setAside, since: first === null ? null : new Date(first - SET_ASIDE) },
        isComplete,
      };
    },
  } satisfies Partial<DeliveryStore>;
}
