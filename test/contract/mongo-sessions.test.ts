import { BSON, type Document, Long, MongoClient, Timestamp } from 'mongodb';
import { describe, expect, onTestFinished, test } from 'vitest';
import { closeClient } from '../../src/store/mongo/client.ts';
import { openMongoStore } from '../../src/store/mongo/mongo-store.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead, aLeadSource, aMember, anApiKey, aStudio, BY, claimsOf, NOW } from '../support/builders.ts';
import { type FakeMongoDb, nameOf, refusal, startFakeMongoDb } from '../support/fake-mongodb.ts';
import { replacementOf } from './store-actions.ts';

const at = (seconds: number) => new Timestamp({ t: seconds, i: 1 });

async function aStoreOnAFake(): Promise<{ readonly fake: FakeMongoDb; readonly store: Store }> {
  const fake = await startFakeMongoDb();
  const store = await openMongoStore(`${fake.url}/leads`);
  onTestFinished(async () => {
    await store.close();
    await fake.stop();
  });
  fake.commands.length = 0;
  return { fake, store };
}

const [lead, key, studio, member, source] = [aLead(), anApiKey(), aStudio(), aMember(), aLeadSource()];
const { studioId } = lead;
const claims = claimsOf(lead);

/** A call of every method of the store that reads stored data. */
const READS: Record<string, (store: Store) => Promise<unknown>> = {
  createLead: (store) => store.createLead(lead, claims).then(() => store.createLead(lead, claims)),
  findLeadByIdempotencyKey: (store) => store.findLeadByIdempotencyKey(studioId, claims.idempotencyKey),
  findLead: (store) => store.findLead(studioId, lead.id),
  isLeadChangeApplied: (store) => store.isLeadChangeApplied(studioId, lead.id, lead.id),
  presenceOfLead: (store) => store.presenceOfLead(studioId, lead.id),
  listLeads: (store) => store.listLeads(studioId, null, 1),
  walkLeads: (store) => store.walkLeads(studioId, null, 1),
  findLeadsOfContact: (store) => store.findLeadsOfContact(studioId, claims.contactKeys),
  changeLeadStage: (store) => store.changeLeadStage({ studioId, leadId: lead.id, stage: 'won', claims, ...BY }),
  updateLead: (store) =>
    store.updateLead({ studioId, leadId: lead.id, correction: { note: 'x' }, claims, expectedUpdatedAt: null, ...BY }),
  listLeadChanges: (store) => store.listLeadChanges(1),
  resendLeads: (store) => store.resendLeads(studioId, null, 1, NOW),
  measureLeadChanges: (store) => store.measureLeadChanges(1),
  walkErasedLeads: (store) => store.walkErasedLeads(studioId, null, 1),
  eraseLead: (store) => store.eraseLead({ studioId, leadId: lead.id, ...BY }),
  createApiKey: (store) => store.createApiKey(key, NOW),
  listLiveApiKeys: (store) => store.listLiveApiKeys(studioId),
  listFormerApiKeys: (store) => store.listFormerApiKeys(studioId, null, 1),
  replaceApiKey: (store) => store.replaceApiKey(replacementOf(key)),
  revokeApiKey: (store) => store.revokeApiKey(studioId, key.id, BY),
  putApiKeyQuota: (store) => store.putApiKeyQuota(studioId, key.id, 5, BY),
  findCredential: (store) => store.findCredential(key.secretSha256),
  putStudio: (store) => store.putStudio(studio, BY),
  findStudio: (store) => store.findStudio(studioId),
  listStudios: (store) => store.listStudios(null, 1),
  findMember: (store) => store.findMember(studioId, member.id),
  findLeadSource: (store) => store.findLeadSource(studioId, source.id),
  listLeadSources: (store) => store.listLeadSources(studioId, null, 1),
  listAuditEvents: (store) => store.listAuditEvents(studioId, null),
};

/** Methods that only write, or that do not depend on what is stored. */
const OTHERS = ['acknowledgeLeadChanges', 'recordApiKeyUse', 'putMember', 'removeMember'];
const ANSWERS_NOTHING = ['putLeadSource', 'removeLeadSource', 'check', 'close'];

const reads = (commands: readonly Document[]) =>
  commands.filter((command) => ['find', 'aggregate', 'count', 'distinct'].includes(nameOf(command)));

test('every method of the store is in one of the tables', async () => {
  const { store } = await aStoreOnAFake();
  expect([...Object.keys(READS), ...OTHERS, ...ANSWERS_NOTHING].toSorted()).toEqual(Object.keys(store).toSorted());
});

// @proves crashes-34 mongodb-6
describe('after a reply of a replica set', () => {
  test.each(Object.entries(READS))('%s reads nothing that is older', async (_, read) => {
    const { fake, store } = await aStoreOnAFake();
    fake.operationTime = at(1000);
    await store.putMember(member, BY);
    fake.commands.length = 0;
    // A primary that was just elected, and whose majority lags behind.
    fake.operationTime = at(900);
    await read(store).catch(() => {});

    expect(reads(fake.commands).length).toBeGreaterThan(0);
    for (const { readConcern, $clusterTime } of reads(fake.commands)) {
      expect(readConcern).toEqual({ level: 'majority', afterClusterTime: at(1000) });
      expect($clusterTime.clusterTime).toEqual(at(1000));
    }
  });

  test('also to another call, to a refused one, and over a new connection, a read is not older', async () => {
    const { fake, store } = await aStoreOnAFake();
    fake.operationTime = at(1000);
    await store.findStudio('a');
    fake.operationTime = at(2000);
    fake.answer = (command) => (command.update ? refusal(13, 'Unauthorized') : undefined);
    await store.removeMember('a', 'b', BY).catch(() => {});
    await store.recordApiKeyUse({ studioId, keyId: key.id, now: NOW, unlessSince: NOW }).catch(() => {});
    fake.operationTime = at(900);
    fake.disconnect();
    fake.commands.length = 0;

    await expect.poll(() => store.findStudio('a').catch(String)).toBeNull();
    expect(reads(fake.commands).map(({ readConcern }) => readConcern.afterClusterTime)).toContainEqual(at(2000));
    expect(reads(fake.commands).map(({ readConcern }) => readConcern.afterClusterTime)).not.toContainEqual(at(1000));
  });

  test('concurrent commands have sessions of their own', async () => {
    const { fake, store } = await aStoreOnAFake();
    await Promise.all([
      ...['a', 'b', 'c'].map((id) => store.putMember(aMember({ id }), BY)),
      store.createApiKey(key, NOW),
      store.listLeads(studioId, null, 1),
    ]);

    // Each begins with one.
    const sent = fake.commands.filter(({ find }) => find);
    expect(new Set(sent.map(({ lsid }) => BSON.EJSON.stringify(lsid))).size).toBe(5);
  });

  // @proves mongodb-7
  test('of a cluster that is no longer there, its time is forgotten', async () => {
    const { fake, store } = await aStoreOnAFake();
    fake.operationTime = at(1000);
    await store.findStudio('a');

    // Another cluster at the address, such as a restored backup.
    fake.operationTime = undefined;
    fake.answer = ({ $clusterTime, readConcern }) =>
      $clusterTime || readConcern?.afterClusterTime ? refusal(211, 'KeyNotFound') : undefined;

    await expect.poll(() => store.findStudio('a').catch(String)).toBeNull();
  });
});

// @proves crashes-34
test('a server that sends no times gets the commands without any', async () => {
  const { fake, store } = await aStoreOnAFake();
  await store.putMember(member, BY);
  await store.findStudio('a');
  for (const command of fake.commands) expect(command).not.toHaveProperty('$clusterTime');
  for (const { readConcern } of reads(fake.commands)) expect(readConcern).toEqual({ level: 'majority' });
});

// @proves crashes-37 mongodb-9
test('a client whose server no longer answers is closed, and leaves no connection', async () => {
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
