import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import type { Lead, LeadKeys } from '../../src/domain/lead.ts';
import type { CreateLeadOutcome } from '../../src/domain/lead-creation.ts';
import { newId } from '../../src/domain/new-id.ts';
import { StoreUnavailable } from '../../src/store/port/faults.ts';
import type { Store } from '../../src/store/store.ts';
import { moveLead } from '../contract/store-actions.ts';
import { aLead, aStudio, BY, keysFor, times } from '../support/builders.ts';
import { heapBytes } from '../support/heap.ts';
import { describeWithMongo, describeWithMongoServer, failure, isCommand, startWireServer } from '../support/mongodb.ts';
import { openedStore, untilChecked } from '../support/patience.ts';
import { startProxy, type TcpProxy } from '../tools/tcp-proxy.ts';

/** The maximum number of calls in flight, and their deadline; milliseconds. */
const MAX_CALLS = 2048;
const DEADLINE_MS = 4000;

/** The attempts after the first, which an insert makes if its id exists. */
const RETRIES_OF_A_TAKEN_ID = 7;

describeWithMongo('requests that go to MongoDB together', (mongoUrl) => {
  let proxy: TcpProxy;
  let databaseUrl: string;
  let store: Store;
  let studioId: string;

  beforeAll(async () => {
    const { hostname, port } = new URL(mongoUrl());
    proxy = await startProxy(hostname, Number(port));
    databaseUrl = `mongodb://127.0.0.1:${proxy.port}/test-${randomUUID()}`;
    store = await openedStore(databaseUrl);
  });
  afterAll(async () => {
    await store?.close();
    await proxy?.stop();
  });
  beforeEach(async () => {
    studioId = await aStudioIn(store);
  });
  afterEach(async () => {
    proxy.heal();
    await untilChecked(store);
  });

  // @proves exchange-1 mongodb-17
  test('creations in one insert have the same outcomes as single ones, whatever their neighbours', async () => {
    const together = await arrange();
    const inserts = countRequests('insert');
    const inOne = await Promise.all(together.map((creation) => findOutcome(store, creation)));
    // Less than one per creation; if inserts take long, the deadline ends the attempts.
    expect(inserts()).toBeLessThanOrEqual(1 + RETRIES_OF_A_TAKEN_ID);

    const alone: unknown[] = [];
    for (const creation of await arrange()) alone.push(await findOutcome(store, creation));

    expect(inOne).toEqual(alone);
    expect(inOne).toEqual([
      'created',
      'replayed',
      'idempotency-conflict',
      'already-open',
      'created',
      'unavailable',
      'idempotency-conflict',
      'created',
    ]);
  });

  // @proves exchange-1 crashes-5 mongodb-10 mongodb-11
  test.each([
    ['cut', 4],
    ['silence', 1],
  ] as const)('no lead is lost or doubled when replies to inserts get lost by %s, %i times', async (by, count) => {
    const creations = times(300, () => aCreation(studioId));
    proxy.loseReplies({ of: isCommand('insert'), from: 2, count, by });

    const outcomes = await Promise.all(creations.map(({ lead, keys }) => store.createLead(lead, keys)));

    expect(proxy.lost()).toBe(count);
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['created']));
    for (const { lead } of creations) expect(await store.findLead(studioId, lead.id)).toEqual(lead);
    expect(await countLeads()).toBe(creations.length);
  });

  test('an insert that fails as a whole is retried, and each creation is one lead', async () => {
    const creations = times(300, () => aCreation(studioId));
    let inserts = 0;
    const isSecond = (request: Buffer) => {
      if (isCommand('insert')(request)) inserts += 1;
      return inserts === 2;
    };
    proxy.replyTo(isSecond, failure);

    const outcomes = await Promise.all(creations.map(({ lead, keys }) => store.createLead(lead, keys)));

    expect(inserts).toBe(2);
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['created']));
    for (const { lead } of creations) expect(await store.findLead(studioId, lead.id)).toEqual(lead);
    expect(await countLeads()).toBe(creations.length);
  });

  /** Returns, in a separate studio, a creation for each possible conflict; none conflicts with another. */
  async function arrange(): Promise<Creation[]> {
    const of = await aStudioIn(store);
    const earlier = async (stage: 'new' | 'won'): Promise<Creation> => {
      const { lead, keys } = aCreation(of);
      await store.createLead(lead, keys);
      await moveLead(store, lead, stage);
      return { lead, keys };
    };
    const like = ({ lead }: Creation, overrides: Partial<Lead> = {}): Creation => {
      const another = { ...lead, id: newId(), ...overrides };
      return { lead: another, keys: keysFor(another) };
    };
    const withKey = ({ keys: { idempotencyKey } }: Creation, { lead, keys }: Creation): Creation => ({
      lead,
      keys: { ...keys, idempotencyKey },
    });
    const [closed, open] = [await earlier('won'), await earlier('new')];
    return [
      aCreation(of),
      // The key of an earlier creation, with the same data and with other data.
      withKey(closed, like(closed)),
      withKey(open, like(open, { note: 'other' })),
      // The contact of an open lead, and that of a closed one.
      like(await earlier('new')),
      like(await earlier('won')),
      // The id of another lead, which a new lead never has.
      like(aCreation(of), { id: (await earlier('new')).lead.id }),
      // The key of one lead and the contact of another: the key decides.
      withKey(await earlier('won'), like(await earlier('new'))),
      aCreation(of),
    ];
  }

  async function countLeads(): Promise<number> {
    return (await store.listLeads(studioId, null, 10_000)).records.length;
  }

  /** Counts the requests sent to the database from now on. */
  function countRequests(...names: readonly string[]): () => number {
    let count = 0;
    proxy.loseReplies({
      of: (request) => {
        if (isCommand(...names)(request)) count += 1;
        return false;
      },
    });
    return () => count;
  }
});

// @proves crashes-8
describeWithMongoServer('a store whose MongoDB does not reply', () => {
  // @proves bounds-45
  test('refuses excess calls at once and the others at their deadline, and bounds their memory', async () => {
    const mongo = await startWireServer();
    onTestFinished(() => mongo.stop());
    const store = await openedStore(`${mongo.url}test-${randomUUID()}`);
    onTestFinished(() => store.close());
    const studioId = await aStudioIn(store);
    await findOutcome(store, aCreation(studioId));
    const idle = heapBytes();
    mongo.pause();
    let settled = 0;
    const startedAt = performance.now();
    const calls = times(5000, () => {
      const { lead, keys } = aCreation(studioId);
      return store.createLead(lead, keys).finally(() => {
        settled += 1;
      });
    });

    for (const refused of await Promise.allSettled(calls.slice(MAX_CALLS))) expectUnavailable(refused);
    expect(settled).toBe(5000 - MAX_CALLS);
    for (const refused of await Promise.allSettled(calls)) expectUnavailable(refused);
    expect(performance.now() - startedAt).toBeLessThan(DEADLINE_MS + 6000);
    expect(heapBytes() - idle).toBeLessThan(100e6);

    mongo.resume();
    // Closing waits for everything in flight.
    await store.close();
    expect(heapBytes() - idle).toBeLessThan(30e6);
  });
});

interface Creation {
  readonly lead: Lead;
  readonly keys: LeadKeys;
}

function aCreation(studioId: string): Creation {
  const lead = aLead({ studioId });
  return { lead, keys: keysFor(lead) };
}

async function findOutcome(store: Store, { lead, keys }: Creation): Promise<CreateLeadOutcome['kind'] | 'unavailable'> {
  try {
    return (await store.createLead(lead, keys)).kind;
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    return 'unavailable';
  }
}

async function aStudioIn(store: Store): Promise<string> {
  const id = `studio-${newId()}`;
  await store.putStudio(aStudio({ id }), BY);
  return id;
}

function expectUnavailable(outcome: PromiseSettledResult<unknown>): void {
  expect(outcome).toMatchObject({ status: 'rejected', reason: { constructor: StoreUnavailable } });
}
