import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { STORE_CALL_MS } from '../../common/deadlines.ts';
import { DEFAULT_CONSUMER } from '../../src/domain/consumer.ts';
import { type CoreMetrics, createCoreMetrics } from '../../src/rpc/metrics.ts';
import { callRunner, newCall } from '../../src/rpc/run-call.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { aConsumer, anApiKey, aStudio, BY, DAY_MS } from '../support/builders.ts';
import { temporaryFolder } from '../tools/processes.ts';

test('after a failed count, lead changes are counted again at the next scrape', async () => {
  const path = join(temporaryFolder(), 'leads.db');
  const store = openSqliteStore(path);
  onTestFinished(() => store.close());
  const { registry, watchLeadChanges } = createCoreMetrics();
  watchLeadChanges(store);
  const database = new DatabaseSync(path, { timeout: 100_000 });
  onTestFinished(() => database.close());

  database.exec('ALTER TABLE leads RENAME TO moved_leads');
  expect(await countIn(registry)).toBe('Nan');
  database.exec('ALTER TABLE moved_leads RENAME TO leads');

  expect(await countIn(registry)).toBe('0');
});

// @proves feed-8
test('a consumer that cannot be counted does not hide the backlog of another', async () => {
  const path = join(temporaryFolder(), 'leads.db');
  const store = openSqliteStore(path);
  onTestFinished(() => store.close());
  for (const name of ['first', 'second']) await store.createConsumer(aConsumer({ name }), BY);
  const { registry, watchLeadChanges } = createCoreMetrics();
  const database = new DatabaseSync(path, { timeout: 100_000 });
  onTestFinished(() => database.close());
  watchLeadChanges(store);
  // The time of this delivery exceeds any number.
  database.exec(
    "INSERT INTO deliveries (consumer, lead, revision, since, due, kinds) VALUES (1, 1, 1, 9223372036854775807, 5, '{}')",
  );

  const exported = await registry.metrics();

  expect(exported).toMatch(/^lead_intake_core_consumer_changes_waiting\{consumer="first"\} Nan$/m);
  expect(exported).toMatch(/^lead_intake_core_consumer_changes_oldest_seconds\{consumer="first"\} Nan$/m);
  expect(exported).toMatch(/^lead_intake_core_consumer_changes_set_aside\{consumer="first"\} Nan$/m);
  expect(exported).toMatch(/^lead_intake_core_consumer_changes_waiting\{consumer="second"\} 0$/m);
  expect(exported).toMatch(/^lead_intake_core_consumer_changes_set_aside\{consumer="second"\} 0$/m);
});

test('a scrape waits for at most two named consumers that cannot be counted in time', async () => {
  const store = openSqliteStore(join(temporaryFolder(), 'leads.db'));
  onTestFinished(() => store.close());
  const names = ['first', 'second', 'third', 'fourth'];
  for (const name of names) await store.createConsumer(aConsumer({ name }), BY);
  const { registry, watchLeadChanges } = createCoreMetrics();
  const asked: number[] = [];
  watchLeadChanges({
    ...store,
    measureDeliveries: async (number) => {
      asked.push(number);
      await sleep(STORE_CALL_MS / 2 + 50);
      throw new Error('a shard is away');
    },
  });

  const exported = await registry.metrics();

  expect(asked).toEqual([DEFAULT_CONSUMER.number, 1, 2]);
  for (const name of names) expect(exported).toContain(`consumer_changes_waiting{consumer="${name}"} Nan`);
});

// @proves feed-8
test('acknowledgements of the default consumer are counted separately', async () => {
  const metrics = createCoreMetrics();
  const run = callRunner(pino({ enabled: false }), metrics);
  const acknowledge = async (consumer: string, body = async () => ({})) =>
    run(
      { ...newCall(undefined, new Headers(), undefined), operation: 'AcknowledgeLeadChanges', request: { consumer } },
      body,
    );
  const counted = async () =>
    /^lead_intake_core_unnamed_acknowledgements_total (\d+)$/m.exec(await metrics.registry.metrics())?.[1];

  expect(await counted()).toBe('0');
  await acknowledge('');
  await acknowledge(DEFAULT_CONSUMER.name);
  await acknowledge('crm');
  await expect(acknowledge('', () => Promise.reject(new Error('not stored')))).rejects.toThrow();
  expect(await counted()).toBe('2');
});

// @proves monitoring-1
test('keys that expire soon are counted if they are in use, and a scrape waits for no count', async () => {
  const store = openSqliteStore(join(temporaryFolder(), 'leads.db'));
  onTestFinished(() => store.close());
  const now = new Date();
  const inDays = (days: number) => new Date(now.getTime() + days * DAY_MS);
  const keys = [
    { expiresAt: inDays(6), usedAt: inDays(-1) },
    { expiresAt: inDays(29), usedAt: inDays(-29) },
    { expiresAt: inDays(31), usedAt: now },
    { expiresAt: inDays(-1), usedAt: now },
    { expiresAt: inDays(5), usedAt: inDays(-31) },
    { expiresAt: inDays(5), usedAt: null },
  ];
  await store.putStudio(aStudio({ id: 's1' }), BY);
  for (const { expiresAt, usedAt } of keys) {
    const key = anApiKey({ studioId: 's1', expiresAt });
    await store.createApiKey(key, now);
    if (usedAt) await store.recordApiKeyUse({ studioId: 's1', keyId: key.id, now: usedAt, unlessSince: usedAt });
  }
  const { registry, watchKeys } = createCoreMetrics();
  watchKeys({ store, clock: () => now });
  const counted = async () => (await registry.metrics()).match(/(?<=^lead_intake_core_keys_ending).*$/gm);

  expect(await counted()).toEqual(['{days="7"} Nan', '{days="30"} Nan']);
  await expect.poll(counted).toEqual(['{days="7"} 1', '{days="30"} 2']);
});

async function countIn(registry: CoreMetrics['registry']): Promise<string | undefined> {
  return /^lead_intake_core_changes_waiting (\S+)$/m.exec(await registry.metrics())?.[1];
}
