import { createRequire } from 'node:module';
import type { Document } from 'mongodb';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { mongoUrlFault } from '../../src/store/mongo/database-name.ts';
import { openMongoStore } from '../../src/store/mongo/mongo-store.ts';
import { StoreUnavailable } from '../../src/store/port/faults.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead, aMember, anApiKey, aStudio, BY, keysFor, NOW } from '../support/builders.ts';
import { type FakeMongoDb, findName, PRIMARY, refusal, SECONDARY, startFakeMongoDb } from '../support/fake-mongodb.ts';
import { READS, WRITES } from './every-call.ts';

/** Commands that depend on stored data. */
const DATA = ['find', 'aggregate', 'count', 'insert', 'update', 'findAndModify', 'delete', 'createIndexes'];

/** All options that this release of the driver knows, with their types. */
const KNOWN: Record<string, { readonly type?: string }> = createRequire(import.meta.url)(
  'mongodb/lib/connection_string.js',
).OPTIONS;

/** Values to try for each type. */
const BY_TYPE: Record<string, readonly string[]> = {
  boolean: ['true', 'false'],
  uint: ['0', '1', '3600000'],
  int: ['0', '1'],
};

/** Values to try for options with values of their own. */
const BY_NAME: Record<string, readonly string[]> = {
  compressors: ['zlib'],
  dbName: ['other'],
  readConcern: ['local'],
  readConcernLevel: ['local', 'available', 'linearizable'],
  readPreference: ['primaryPreferred', 'secondary', 'secondaryPreferred', 'nearest'],
  replicaSet: ['rs0', 'another'],
  serverMonitoringMode: ['poll', 'stream'],
  w: ['0', '1', '2'],
  wtimeout: ['1'],
  wtimeoutMS: ['1'],
  j: ['false'],
  journal: ['false'],
  fsync: ['false'],
  timeoutMS: ['0', '1'],
};

/** Options that are valid only together. */
const TOGETHER = [
  'readPreference=secondary&maxStalenessSeconds=90',
  'readPreference=nearest&readPreferenceTags=dc:ny&readPreferenceTags=',
  'readConcernLevel=available&w=0&journal=false&retryWrites=false&retryReads=false',
];

const SINGLE = Object.entries(KNOWN).flatMap(([name, { type = '' }]) =>
  (BY_NAME[name] ?? BY_TYPE[type] ?? ['1', 'true', 'x']).map((value) => `${name}=${value}`),
);

/** The options that the driver accepts, alone and with a direct connection. */
const accepted = [...SINGLE, ...TOGETHER]
  .flatMap((option) =>
    option.startsWith('directConnection=') ? [option] : [option, `directConnection=true&${option}`],
  )
  .filter((options) => mongoUrlFault(`mongodb://127.0.0.1:1/?${options}`) === undefined);

// @proves crashes-32
describe('whatever the address says', () => {
  // The driver warns about deprecated options.
  beforeAll(() => {
    vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  });
  afterAll(() => {
    vi.restoreAllMocks();
  });

  // @proves mongodb-5
  test('a secondary is never read or reported as ready, whatever options the address has', async () => {
    const fake = await aFake(SECONDARY);

    await inGroups(accepted, 80, async (options, index) => {
      const store = await openMongoStore(`${fake.url}/option-${index}?${options}`);
      const outcomes = [
        store.check(),
        store.findStudio('a'),
        store.listLeads('a', null, 1),
        store.putStudio(aStudio(), BY),
      ];
      for (const outcome of await Promise.allSettled(outcomes)) {
        expect({ options, outcome }).toEqual({
          options,
          outcome: { status: 'rejected', reason: expect.any(StoreUnavailable) },
        });
      }
      await store.close();
    });

    const read = dataCommands(fake.commands);
    expect(
      read.map(({ $db, ...command }) => `${accepted[Number($db.replace('option-', ''))]}: ${findName(command)}`),
    ).toEqual([]);
  });

  // @proves crashes-32 mongodb-4
  test('no option in the address changes the write concern, read concern or read preference', async () => {
    const plain = await concernsWith('appName=plain');
    const [write, read] = [
      { writeConcern: { w: 'majority', j: true }, preference: 'primary' },
      { readConcern: { level: 'majority' }, preference: 'primary' },
    ];
    expect(plain).toEqual({ insert: write, update: write, delete: write, find: read, aggregate: read });

    await inGroups(accepted, 16, async (options) => {
      const fake = await aFake(PRIMARY);
      const store = await openMongoStore(`${fake.url}/leads?${options}`);
      // Some options, such as TLS or a login, prevent a connection.
      const isConnected = await store.check().then(
        () => true,
        () => false,
      );
      // A busy machine may answer after a call's deadline.
      if (isConnected) await vi.waitFor(() => useSome(store), { timeout: 100_000 });
      await store.close();
      const concerns = listConcerns(fake.commands);
      expect({ options, concerns: { ...plain, ...concerns } }).toEqual({ options, concerns: plain });
    });
  });
});

// @proves crashes-32 mongodb-5
describe('a server that the address leads to directly', () => {
  test('a directly addressed server is used only while it is the primary', async () => {
    const fake = await aFake(PRIMARY);
    const store = await anOpenStore(`${fake.url}/leads?directConnection=true`);
    await expect.poll(() => store.check().catch(String)).toBeUndefined();

    fake.hello = SECONDARY;
    fake.disconnect();
    await expect.poll(() => store.check().then(String, String)).toContain('is not the primary of its replica set');
    fake.commands.length = 0;
    await expect(store.findStudio('a')).rejects.toThrow('is not the primary of its replica set');
    expect(fake.commands.filter((command) => findName(command) === 'find')).toEqual([]);

    fake.hello = PRIMARY;
    fake.disconnect();
    await expect.poll(() => store.findStudio('a').catch(String)).toBeNull();
  });

  test('a directly addressed server is not used after it refuses a write as no longer primary', async () => {
    const fake = await aFake(PRIMARY);
    const store = await anOpenStore(`${fake.url}/leads?directConnection=true&heartbeatFrequencyMS=3600000`);
    await expect.poll(() => store.check().catch(String)).toBeUndefined();

    fake.hello = SECONDARY;
    fake.answer = (command) => (command.update ? refusal(10107, 'NotWritablePrimary') : undefined);
    await expect(store.check()).rejects.toThrow();

    await expect.poll(() => store.findStudio('a').catch(String)).toContain('is not the primary');
  });
});

async function aFake(hello: Document): Promise<FakeMongoDb> {
  const fake = await startFakeMongoDb(hello);
  onTestFinished(() => fake.stop());
  return fake;
}

async function anOpenStore(url: string): Promise<Store> {
  const store = await openMongoStore(url);
  onTestFinished(() => store.close());
  return store;
}

/** Processes a list, `size` entries at a time. */
async function inGroups<Each>(
  all: readonly Each[],
  size: number,
  work: (each: Each, index: number) => Promise<void>,
): Promise<void> {
  const entries = [...all.entries()].values();
  const worker = async () => {
    for (const [index, each] of entries) await work(each, index);
  };
  await Promise.all(Array.from({ length: size }, worker));
}

async function concernsWith(options: string) {
  const fake = await aFake(PRIMARY);
  const store = await openMongoStore(`${fake.url}/leads?${options}`);
  await store.check();
  await useAll(store);
  await store.close();
  const concerns = listConcerns(fake.commands);
  for (const command of fake.commands) expect(concerns).toMatchObject(listConcerns([command]));
  return concerns;
}

/** Calls every method. */
async function useAll(store: Store): Promise<void> {
  await useSome(store);
  for (const { call } of [...READS, ...WRITES]) await call(store).catch(() => {});
}

/** Sends a command of each kind. */
async function useSome(store: Store): Promise<void> {
  const [lead, key] = [aLead(), anApiKey()];
  await store.putStudio(aStudio(), BY);
  await store.createLead(lead, keysFor(lead));
  await store.recordApiKeyUse({ studioId: key.studioId, keyId: key.id, now: NOW, unlessSince: NOW });
  await store.removeMember(lead.studioId, aMember().id, BY);
  await store.measureDeliveries(1, 1);
}

const dataCommands = (commands: readonly Document[]) => commands.filter((command) => DATA.includes(findName(command)));

/** Returns the concerns and the read preference of each kind of command. */
function listConcerns(commands: readonly Document[]): Record<string, unknown> {
  return Object.fromEntries(
    dataCommands(commands).map((command) => {
      const { readConcern, writeConcern, $readPreference } = command;
      // On a direct connection the driver lets any server answer; the store has checked by then that it is the primary.
      const preference = /^primary/.test($readPreference?.mode ?? 'primary') ? 'primary' : $readPreference;
      return [findName(command), { readConcern, writeConcern, preference }];
    }),
  );
}
