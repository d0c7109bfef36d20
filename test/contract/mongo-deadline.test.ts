import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { Lead, LeadClaims } from '../../src/domain/lead.ts';
import { openMongoStore } from '../../src/store/mongo/mongo-store.ts';
import { type Store, StoreUnavailable } from '../../src/store/store.ts';
import {
  aLead,
  aMember,
  anApiKey,
  aSecretHash,
  aStudio,
  BY,
  claimsOf,
  NOW,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import { describeWithMongoServer, isCommand, type MongoWireServer, startWireServer } from '../support/mongodb.ts';
import { sizeOf } from '../support/size-of.ts';
import { startProxy, type TcpProxy } from '../support/tcp-proxy.ts';

// Without a deadline the calls would go on for half a minute, and a test is to see them end.
vi.setConfig({ testTimeout: 120_000 });

/** A call has 4 s, and without a deadline each of these would take more than 20 s: neither is near. */
const GIVEN_UP_WITHIN_MS = 10_000;

/** Within the time that the database may be silent, so that by itself no step of a call takes too long. */
const LATE_MS = 1200;

/** How long connections break, one by one; milliseconds. In some hundred cases the driver never ends a command. */
const BREAKING_MS = sizeOf('BREAKING_MS', { usual: 8000, soak: 60_000 });

/** After so long the driver looks for its server at once, instead of waiting for its time to do so. */
const LOOKS_AT_ONCE_MS = 700;

describeWithMongoServer('the deadline of a call to MongoDB', () => {
  let mongo: MongoWireServer;
  let proxy: TcpProxy;
  let store: Store;

  const lead = aLead();
  const claims = claimsOf(lead);
  const key = anApiKey();

  beforeAll(async () => {
    mongo = await startWireServer();
    const { hostname, port } = new URL(mongo.url);
    proxy = await startProxy(hostname, Number(port));
    store = await openMongoStore(`mongodb://127.0.0.1:${proxy.port}/test-${randomUUID()}`);
    await store.putStudio(aStudio(), BY);
    await store.putMember(aMember());
    await store.createLead(lead, claims);
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
    await expect.poll(() => store.check().then(() => 'answers'), { timeout: 15_000 }).toBe('answers');
  });

  const create = (another = aLead(), itsClaims: LeadClaims = claimsOf(another)) => store.createLead(another, itsClaims);
  const { studioId, id: leadId } = lead;

  /** Calls that repeat their steps until they know what became of them. */
  const calls: Record<string, () => Promise<unknown>> = {
    createLead: () => create(),
    changeLeadStage: () =>
      store.changeLeadStage({
        studioId,
        leadId,
        stage: 'won',
        claims,
        memberId: null,
        now: NOW,
      }),
    createApiKey: () => store.createApiKey(anApiKey(), NOW),
    replaceApiKey: () =>
      store.replaceApiKey({
        studioId,
        keyId: key.id,
        memberId: 'member-1',
        secretSha256: aSecretHash(),
        secretHint: 'zzzz',
        expiresAt: null,
        now: NOW,
      }),
  };

  test('a call whose steps are all late fails in time', async () => {
    proxy.loseReplies({ of: isCommand('find', 'insert', 'update'), count: Number.POSITIVE_INFINITY, afterMs: LATE_MS });

    await Promise.all(Object.entries(calls).map(([name, call]) => expectGivenUp(call(), name)));

    // Several steps of each came and went: it was not the silence of one that ended it.
    expect(proxy.lost()).toBeGreaterThan(Object.keys(calls).length);
  });

  test('so does a call to a silent database', async () => {
    mongo.pause();

    await Promise.all(Object.entries(calls).map(([name, call]) => expectGivenUp(call(), name)));
  });

  test('so does a call that waits behind another that does not end', async () => {
    mongo.pause();
    const contested = aLead();
    const itsClaims = claimsOf(contested);

    await Promise.all([
      // One key, then one contact, then one studio's keys: whoever comes first has the turn.
      ...times(20, () => expectGivenUp(create({ ...contested, id: randomUUID() }, itsClaims))),
      ...times(20, () => expectGivenUp(create(aLead({ contact: contested.contact })))),
      ...times(20, () => expectGivenUp(store.createApiKey(anApiKey(), NOW), 'createApiKey')),
    ]);
  });

  test('a call that was given up does not block others once the database replies again', async () => {
    const another = aLead();
    const itsClaims = claimsOf(another);
    mongo.pause();
    await Promise.all(times(20, () => expectGivenUp(create({ ...another, id: randomUUID() }, itsClaims))));
    mongo.resume();

    await expect.poll(() => store.check().then(() => 'answers'), { timeout: 15_000 }).toBe('answers');
    expect(['created', 'replayed']).toContain((await create(another, itsClaims)).kind);
    const found = await store.findLeadByIdempotencyKey(STUDIO_ID, itsClaims.idempotencyKey);
    expect(found).toMatchObject({ fingerprint: itsClaims.fingerprint });
  });

  test('after each of several losses of all connections under load, calls succeed again', async () => {
    for (const _ of times(4, () => 0)) {
      let isOver = false;
      const callers = times(32, async () => {
        while (!isOver) await store.findStudio(STUDIO_ID).catch(() => sleep(5));
      });
      await sleep(LOOKS_AT_ONCE_MS);

      proxy.refuse();
      await sleep(30);
      proxy.heal();

      await expect.poll(() => store.check().then(() => 'answers', String), { timeout: 15_000 }).toBe('answers');
      isOver = true;
      await Promise.all(callers);
    }
  });

  test('a creation that fails because its connection breaks can be repeated', async () => {
    proxy.breakAfterReplies(0.05);
    const failed: [Lead, LeadClaims][] = [];
    const over = performance.now() + BREAKING_MS;
    const callers = times(16, async () => {
      while (performance.now() < over) {
        const another = aLead();
        const itsClaims = claimsOf(another);
        await create(another, itsClaims).catch(() => failed.push([another, itsClaims]));
      }
    });
    await Promise.all(callers);
    proxy.heal();

    for (const [another, itsClaims] of failed) {
      expect((await create(another, itsClaims)).kind).toMatch(/^(created|replayed)$/);
    }
  });

  async function expectGivenUp(call: Promise<unknown>, name = 'createLead'): Promise<void> {
    const begun = performance.now();
    await expect(call, name).rejects.toBeInstanceOf(StoreUnavailable);
    expect(performance.now() - begun, name).toBeLessThan(GIVEN_UP_WITHIN_MS);
  }
});
