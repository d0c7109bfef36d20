import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { LeadKeys } from '../../src/domain/lead.ts';
import { StoreUnavailable } from '../../src/store/port/faults.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead, aMember, anApiKey, aStudio, BY, keysFor, NOW, STUDIO_ID, times } from '../support/builders.ts';
import { describeWithMongoServer, isCommand, type MongoWireServer, startWireServer } from '../support/mongodb.ts';
import { openedStore, untilChecked } from '../support/patience.ts';
import { startProxy, type TcpProxy } from '../tools/tcp-proxy.ts';
import { aReplacement, moveLead } from './store-actions.ts';

/** More than a call's deadline of 4 s, and less than the 20 s that these calls take without one. */
const MAX_CALL_MS = 10_000;

/** Less than the database may be silent, so that no single step of a call is too slow. */
const LATE_MS = 1200;

describeWithMongoServer('the deadline of a call to MongoDB', () => {
  let mongo: MongoWireServer;
  let proxy: TcpProxy;
  let store: Store;

  const lead = aLead();
  const keys = keysFor(lead);
  const key = anApiKey();

  beforeAll(async () => {
    mongo = await startWireServer();
    const { hostname, port } = new URL(mongo.url);
    proxy = await startProxy(hostname, Number(port));
    store = await openedStore(`mongodb://127.0.0.1:${proxy.port}/test-${randomUUID()}`);
    await store.putStudio(aStudio(), BY);
    await store.putMember(aMember(), BY);
    await store.createLead(lead, keys);
    await store.createApiKey(key, NOW);
  });
  afterAll(async () => {
    await store?.close();
    await proxy?.stop();
    await mongo?.stop();
  });
  afterEach(async () => {
    proxy.heal();
    mongo.resume();
    await untilChecked(store);
  });

  const create = (another = aLead(), itsKeys: LeadKeys = keysFor(another)) => store.createLead(another, itsKeys);

  /** Calls that repeat their steps until the outcome is certain. */
  const calls: Record<string, () => Promise<unknown>> = {
    createLead: () => create(),
    changeLeadStage: () => moveLead(store, lead, 'won'),
    createApiKey: () => store.createApiKey(anApiKey(), NOW),
    replaceApiKey: () => store.replaceApiKey(aReplacement(key)),
  };

  // @proves crashes-30 mongodb-1
  test('a call fails by its deadline when all its steps are slow', async () => {
    proxy.loseReplies({ of: isCommand('find', 'insert', 'update'), count: Number.POSITIVE_INFINITY, afterMs: LATE_MS });

    await Promise.all(Object.entries(calls).map(([name, call]) => expectUnavailable(call(), name)));

    // Each call had several steps, so no single silence ended it.
    expect(proxy.lost()).toBeGreaterThan(Object.keys(calls).length);
  });

  // @proves crashes-30
  test('a call blocked by one that never ends fails in time, and blocks none after recovery', async () => {
    mongo.pause();
    const [contested, other] = [aLead(), aLead()];
    const itsKeys = keysFor(contested);

    await Promise.all([
      // Calls for one idempotency key, one contact, and the keys of one studio; the first of each blocks the others.
      ...times(20, () => expectUnavailable(create({ ...contested, id: randomUUID() }, itsKeys))),
      ...times(20, () => expectUnavailable(create(aLead({ contact: other.contact })))),
      ...times(20, () => expectUnavailable(store.createApiKey(anApiKey(), NOW), 'createApiKey')),
    ]);

    mongo.resume();
    await untilChecked(store);
    expect(['created', 'replayed']).toContain((await create(contested, itsKeys)).kind);
    const found = await store.findLeadByIdempotencyKey(STUDIO_ID, itsKeys.idempotencyKey);
    expect(found).toMatchObject({ fingerprint: itsKeys.fingerprint });
  });

  async function expectUnavailable(call: Promise<unknown>, name = 'createLead'): Promise<void> {
    const startedAt = performance.now();
    await expect(call, name).rejects.toBeInstanceOf(StoreUnavailable);
    expect(performance.now() - startedAt, name).toBeLessThan(MAX_CALL_MS);
  }
});
