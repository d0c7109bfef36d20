import { BSON, type Document, Long, MongoClient, Timestamp } from 'mongodb';
import { describe, expect, onTestFinished, test } from 'vitest';
import { STORE_CALL_MS } from '../../common/deadlines.ts';
import { MAX_ACKNOWLEDGEMENTS } from '../../src/domain/lead-change.ts';
import { newId } from '../../src/domain/new-id.ts';
import { closeClient } from '../../src/store/mongo/reconnecting-client.ts';
import { aMember, BY, NOW, STUDIO_ID, times } from '../support/builders.ts';
import { aStoreOnAFake, findName, PRIMARY, refusal, startFakeMongoDb, timesAt } from '../support/fake-mongodb.ts';
import { key, READS, WRITES } from './every-call.ts';

const at = (seconds: number) => new Timestamp({ t: seconds, i: 1 });

const member = aMember();

const reads = (commands: readonly Document[]) =>
  commands.filter((command) => ['find', 'aggregate', 'count', 'distinct'].includes(findName(command)));

// @proves crashes-34 mongodb-6
describe('after a reply of a replica set', () => {
  test('no method reads data older than a reply received before', async () => {
    const { fake, store } = await aStoreOnAFake(at(1000));
    await store.putMember(member, BY);
    // A newly elected primary whose majority lags behind.
    fake.operationTime = at(900);

    for (const { name, kind, call } of [...READS, ...WRITES]) {
      fake.commands.length = 0;
      await call(store).catch(() => {});
      if (kind === 'reads' && name !== 'check') expect(reads(fake.commands), name).not.toEqual([]);
      for (const { readConcern, $clusterTime } of reads(fake.commands)) {
        expect(readConcern, name).toEqual({ level: 'majority', afterClusterTime: at(1000) });
        expect($clusterTime.clusterTime).toEqual(at(1000));
      }
    }
  });

  test('a read is never older than any earlier reply, even a refusal or over another connection', async () => {
    const { fake, store } = await aStoreOnAFake();
    fake.operationTime = at(1000);
    await store.findStudio('a');
    fake.operationTime = at(2000);
    fake.answer = (command) => (command.update ? refusal(13, 'Unauthorized') : undefined);
    await store.removeMember('a', 'b', BY).catch(() => {});
    await store.recordApiKeyUse({ studioId: STUDIO_ID, keyId: key.id, now: NOW, unlessSince: NOW }).catch(() => {});
    fake.operationTime = at(900);
    fake.disconnect();
    fake.commands.length = 0;

    await expect.poll(() => store.findStudio('a').catch(String)).toBeNull();
    expect(reads(fake.commands).map(({ readConcern }) => readConcern.afterClusterTime)).toContainEqual(at(2000));
    expect(reads(fake.commands).map(({ readConcern }) => readConcern.afterClusterTime)).not.toContainEqual(at(1000));
  });

  test('a read from a new primary is no older than its log, whatever other cores were told', async () => {
    const { fake, store } = await aStoreOnAFake();
    const afterTimes = () => reads(fake.commands).map(({ readConcern }) => readConcern.afterClusterTime);
    /** Elects the member. Only its `hello` has the time of its log; commands return an older one. */
    const elect = (seconds: number) => {
      const electionId = new BSON.ObjectId(seconds.toString(16).padStart(24, '0'));
      fake.hello = { ...PRIMARY, electionId, ...timesAt(at(seconds)) };
    };
    // The member is elected during the read.
    fake.answer = () => {
      fake.answer = () => undefined;
      elect(1000);
      return refusal(10107, 'NotWritablePrimary');
    };

    expect(await store.findStudio('a')).toBeNull();
    expect(afterTimes()).toEqual([undefined, at(1000)]);

    // It is elected again, and this core sees no time without a primary.
    elect(2000);
    await expect.poll(() => store.findStudio('a').then(() => afterTimes().at(-1))).toEqual(at(2000));
  });

  test('concurrent commands use separate sessions', async () => {
    const { fake, store } = await aStoreOnAFake();
    await Promise.all([
      ...['a', 'b', 'c'].map((id) => store.putMember(aMember({ id }), BY)),
      store.createApiKey(key, NOW),
      store.listLeads(STUDIO_ID, null, 1),
    ]);

    // Each call begins with one `find`.
    const sent = fake.commands.filter(({ find }) => find);
    expect(new Set(sent.map(({ lsid }) => BSON.EJSON.stringify(lsid))).size).toBe(5);
  });

  // @proves mongodb-7
  test('the time of a replaced cluster is forgotten', async () => {
    const { fake, store } = await aStoreOnAFake();
    fake.operationTime = at(1000);
    await store.findStudio('a');

    // A restored backup is another cluster behind the same address.
    fake.operationTime = undefined;
    fake.answer = ({ $clusterTime, readConcern }) =>
      $clusterTime || readConcern?.afterClusterTime ? refusal(211, 'KeyNotFound') : undefined;

    await expect.poll(() => store.findStudio('a').catch(String)).toBeNull();
  });
});

// @proves crashes-34
test('a server that sends no cluster times gets commands without them', async () => {
  const { fake, store } = await aStoreOnAFake();
  await store.putMember(member, BY);
  await store.findStudio('a');
  for (const command of fake.commands) expect(command).not.toHaveProperty('$clusterTime');
  for (const { readConcern } of reads(fake.commands)) expect(readConcern).toEqual({ level: 'majority' });
});

// @proves crashes-7 mongodb-9
test('closing a client whose server no longer answers leaves no connection', async () => {
  const fake = await startFakeMongoDb();
  onTestFinished(() => fake.stop());
  fake.answer = (command) =>
    command.find && { ok: 1, cursor: { id: Long.ONE, ns: 'leads.leads', firstBatch: [{ _id: 1 }] } };
  // Without a timeout the driver waits for ever for the reply to its last command, which closes the cursor.
  const client = new MongoClient(fake.url, { socketTimeoutMS: 0 });
  await client.db('leads').collection('leads').find().next();
  fake.silence();

  await closeClient(client);

  await expect.poll(() => fake.connections()).toBe(0);
});

test("the server ends each command of the largest acknowledgement before the call's deadline", async () => {
  const { fake, store } = await aStoreOnAFake();
  const acknowledgements = times(MAX_ACKNOWLEDGEMENTS, (index) => ({
    studioId: STUDIO_ID,
    leadId: newId(),
    revision: index + 1,
  }));

  expect(await store.acknowledgeDeliveries(1, acknowledgements)).toMatchObject({ applied: MAX_ACKNOWLEDGEMENTS });
  expect(await store.acknowledgeDeliveries(1, [])).toMatchObject({ applied: 0 });

  const sent = fake.commands.filter(({ update }) => update === 'deliveries');
  expect(sent.flatMap(({ updates }) => updates)).toHaveLength(MAX_ACKNOWLEDGEMENTS);
  for (const { maxTimeMS } of sent) expect(maxTimeMS).toBeLessThan(STORE_CALL_MS);
});
