import { type Consumer, DEFAULT_CONSUMER } from '../../domain/consumer.ts';
import { decideConsumer } from '../decisions/consumers.ts';
import { deploymentEvent } from '../decisions/decision.ts';
import type { ConsumerStore } from '../port/consumers.ts';
import { checkedConsumer } from '../records.ts';
import type { Connection } from './connection.ts';
import { CONSUMERS } from './record-rows.ts';

/** The maximum number of deliveries that a transaction removes. */
const MAX_REMOVED = 1000;

export function storedConsumers({ prepare, report }: Connection): () => Consumer[] {
  const select = CONSUMERS.query(prepare, 'ORDER BY number');
  return () => select.all().map((read) => checkedConsumer(read, report));
}

export function sqliteConsumers(connection: Connection): ConsumerStore {
  const { prepare, plainCommits, recordEvent } = connection;
  const stored = storedConsumers(connection);
  const insert = prepare(`INSERT ${CONSUMERS.into()}`);
  const remove = prepare<[name: string]>('DELETE FROM consumers WHERE number = ? RETURNING name');
  const removeBetween = prepare(`
    DELETE FROM deliveries WHERE (consumer, lead) IN (
      SELECT consumer, lead FROM deliveries WHERE consumer > ? AND consumer < ? LIMIT ${MAX_REMOVED}
    )`);
  const selectStudioAfter = prepare<[id: string]>('SELECT id FROM studios WHERE id > ? ORDER BY id LIMIT 1');
  const putBackfills = prepare('UPDATE consumers SET backfills = ? WHERE number = ? AND backfills = ?');

  return {
    createConsumer: (created, by) =>
      plainCommits.write(() => {
        const decision = decideConsumer(stored(), created);
        if (decision.kind !== 'new') return decision;
        const { consumer } = decision;
        // The database assigns the number.
        const { lastInsertRowid } = insert.run({ ...CONSUMERS.written(consumer).values, number: null });
        const { name, createdAt } = consumer;
        recordEvent(deploymentEvent({ ...by, now: createdAt }, { action: 'consumer-changed', to: name }));
        return { kind: 'created', consumer: { ...consumer, number: Number(lastInsertRowid) } };
      }),

    listConsumers: async () => stored(),

    removeConsumer: (number, by) =>
      plainCommits.write(() => {
        const removed = remove.get(number);
        if (removed) recordEvent(deploymentEvent(by, { action: 'consumer-changed', from: removed[0] }));
      }),

    removeOrphans: () =>
      plainCommits.write(() => {
        const numbers = stored().map(({ number }) => number);
        // Index entries between two existing consumers belong to removed ones.
        return [...numbers, DEFAULT_CONSUMER.number].some(
          (number, index) => removeBetween.run(numbers[index - 1] ?? 0, number).changes > 0,
        );
      }),

    findStudioAfter: async (studioId) => selectStudioAfter.get(studioId)?.[0] ?? null,

    putBackfills: ({ number, backfills: before }, backfills) =>
      plainCommits.write(
        () => putBackfills.run(JSON.stringify(backfills), number, JSON.stringify(before)).changes === 1,
      ),
  };
}
