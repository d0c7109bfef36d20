import type { Document } from 'mongodb';
import { beforeEach, describe, expect, test } from 'vitest';
import { StoreUnavailable } from '../../src/store/port/faults.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead, keysFor } from '../support/builders.ts';
import { aStoreOnAFake, type FakeMongoDb, findName, refusal } from '../support/fake-mongodb.ts';

/** Replies to a failed write while every read succeeds. */
const FAILURES: Record<string, Document> = {
  'a majority that did not confirm': {
    ...{ ok: 1, n: 1, nModified: 1 },
    writeConcernError: { code: 64, codeName: 'WriteConcernTimeout', errmsg: 'waiting for replication timed out' },
  },
  'a majority that does not exist': {
    ...{ ok: 1, n: 0, nModified: 0 },
    writeConcernError: { code: 100, codeName: 'UnsatisfiableWriteConcern', errmsg: 'not enough members' },
  },
  'a role that may not write': refusal(13, 'Unauthorized'),
  'a full disk': refusal(14031, 'OutOfDiskSpace'),
  'a primary that stepped down': refusal(10107, 'NotWritablePrimary'),
};

// @proves crashes-15
describe('the check of MongoDB, whose reads all succeed', () => {
  let fake: FakeMongoDb;
  let store: Store;

  beforeEach(async () => {
    ({ fake, store } = await aStoreOnAFake());
  });

  const writes = () => fake.commands.filter((command) => command.update === 'readiness');
  const create = () => {
    const lead = aLead();
    return store.createLead(lead, keysFor(lead));
  };

  test.each(Object.entries(FAILURES))('the readiness check fails while no write succeeds: %s', async (_, failure) => {
    fake.answer = (command) => (['insert', 'update'].includes(findName(command)) ? failure : undefined);
    await expect(store.check()).rejects.toBeInstanceOf(StoreUnavailable);
    await expect(create()).rejects.toBeInstanceOf(StoreUnavailable);
    await expect(store.check()).rejects.toBeInstanceOf(StoreUnavailable);

    fake.answer = () => undefined;
    await expect.poll(() => store.check().then(() => 'ready', String)).toBe('ready');
  });

  test('the readiness check is one write by a majority to one document of its own collection', async () => {
    await store.check();
    await store.check();

    expect(writes()).toHaveLength(2);
    for (const { $db, writeConcern, updates } of writes()) {
      expect({ $db, writeConcern, updates }).toMatchObject({
        $db: 'leads',
        writeConcern: { w: 'majority', j: true },
        updates: [{ q: { _id: 'core' }, upsert: true }],
      });
    }
  });

  test('the readiness check writes nothing after a created lead, but does after a failed write', async () => {
    await create();
    await store.check();
    expect(writes()).toHaveLength(0);

    await create();
    fake.answer = (command) => (command.update ? refusal(1, 'InternalError') : undefined);
    await store.acknowledgeDeliveries(1, [{ studioId: 'a', leadId: aLead().id, revision: 1 }]).catch(() => {});
    fake.answer = () => undefined;
    await store.check();
    expect(writes()).toHaveLength(1);
  });

  test('the readiness check needs no right to list delivery indexes, and recreates others', async () => {
    let [isMissing, isSeen] = [true, false];
    fake.answer = (command) => {
      if (command.listIndexes === 'deliveries') return refusal(13, 'Unauthorized');
      if (command.createIndexes === 'leads') {
        if (!isSeen) return refusal(1, 'InternalError');
        isMissing = false;
      }
      if (command.listIndexes !== 'leads' || !isMissing) return undefined;
      return { cursor: { id: 0n, ns: 'leads.leads', firstBatch: [] }, ok: 1 };
    };
    await expect.poll(() => store.check().then(() => 'ready', String)).toMatch(/is missing/);
    isSeen = true;
    await expect.poll(() => store.check().then(() => 'ready', String)).toBe('ready');
  });

  // @proves feed-8
  test('measures the backlog of an idle consumer without sorting all of it again', async () => {
    const delivery = { _id: { consumer: 1, studioId: 'a', id: 1 }, since: new Date(1000), due: new Date(1000) };
    fake.answer = ({ find, $db }) =>
      find === 'deliveries'
        ? { cursor: { id: 0n, ns: `${$db}.deliveries`, firstBatch: [delivery] }, ok: 1 }
        : undefined;
    for (let times = 0; times < 2; times += 1) await store.measureDeliveries(1, 10);
    const ceilings = fake.commands.flatMap(({ find, filter }) =>
      find === 'deliveries' && !filter.due.$gte ? filter.due.$lt : [],
    );
    expect(ceilings).toHaveLength(2);
    expect(ceilings[1]).toEqual(new Date(1001));
  });

  test('two cores that create the readiness document at once both stay available', async () => {
    let refusals = 1;
    fake.answer = (command) => {
      if (command.update !== 'readiness' || refusals === 0) return undefined;
      refusals -= 1;
      return { ok: 1, n: 0, writeErrors: [{ index: 0, code: 11000, errmsg: 'duplicate key' }] };
    };

    await store.check();
    expect(writes()).toHaveLength(2);
  });
});
