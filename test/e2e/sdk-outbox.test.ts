import { randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { createLeadIntakeClient, type LeadCapture } from '../../sdk/index.ts';
import { createOutbox, keyFor, OutboxError } from '../../sdk/outbox/index.ts';
import { aService } from '../support/service.ts';

const service = aService();

const capture = (value: string): LeadCapture => ({ displayName: 'Zoë', contact: { type: 'email', value } });

test('no key is derived from an empty form key, which all forms would share', () => {
  expect(() => keyFor('', capture('zoe@example.com'))).toThrow(TypeError);
  expect(() => keyFor(undefined as unknown as string, capture('zoe@example.com'))).toThrow(TypeError);
  expect(() => keyFor('page', [] as unknown as LeadCapture)).toThrow(TypeError);
});

test('a connection that returns rows as arrays is refused, and nothing is sent', async () => {
  const { studioId, secret } = await service.aStudioWithKey();
  const client = createLeadIntakeClient({ baseUrl: service.url, apiKey: secret });
  const database = new DatabaseSync(':memory:', { returnArrays: true });
  const outbox = createOutbox();
  await outbox.setUp(database);
  expect(() => outbox.add(database, capture(`${randomUUID()}@example.com`))).toThrow(OutboxError);
  await expect(outbox.deliver(database, client)).rejects.toThrow(OutboxError);
  expect(await service.countLeads(studioId)).toBe(0);
});

/** A driver that returns the same, whatever it is asked. */
const sqliteDriver = (result: unknown) => ({ prepare: () => ({ run: () => result, all: () => result }) });
const statement = { run: () => statement, all: () => statement };

const UNSUITABLE: Readonly<Record<string, unknown>> = {
  'whose statements are promised': { prepare: async () => statement },
  'whose statements cannot be prepared': { prepare: () => Promise.reject(new Error('closed')) },
  'whose results are promised': sqliteDriver(Promise.resolve({ changes: 1 })),
  'whose results fail later': { prepare: () => sqliteDriver(Promise.reject(new Error('locked'))).prepare() },
  'that calls back': { prepare: () => statement },
  'without a result': sqliteDriver(undefined),
  'that counts nothing': sqliteDriver({ changes: Number.NaN }),
  'with other methods': { prepare: () => ({}) },
  'for PostgreSQL without a result': { query: async () => undefined },
  'for PostgreSQL that counts nothing': { query: async () => ({ rows: undefined, rowCount: Number.NaN }) },
  'for PostgreSQL that returns lists': { query: async () => [[], []] },
};

test.each(Object.entries(UNSUITABLE))(
  'a driver %s is refused by each operation, and no lead seems stored',
  async (_, driver) => {
    const connection = driver as DatabaseSync;
    const outbox = createOutbox();
    const client = createLeadIntakeClient({ baseUrl: service.url, apiKey: newKeySecret() });
    const operations = {
      setUp: () => outbox.setUp(connection),
      add: () => outbox.add(connection, capture('zoe@example.com')),
      deliver: () => outbox.deliver(connection, client),
      needsAttention: () => outbox.needsAttention(connection),
      retry: () => outbox.retry(connection, randomUUID()),
      discard: () => outbox.discard(connection, randomUUID()),
    };
    for (const [name, operation] of Object.entries(operations)) {
      await expect((async () => operation())(), name).rejects.toThrow(/^The database connection has not returned /);
    }
  },
);

test('a driver that has written nothing, although it says so, is refused', () => {
  const empty = { prepare: () => ({ run: () => ({ changes: 1 }), all: () => [] }) };
  expect(() => createOutbox().add(empty, capture('zoe@example.com'))).toThrow(/has not stored the lead/);
});
