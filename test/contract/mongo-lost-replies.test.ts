import { randomUUID } from 'node:crypto';
import { MongoClient, UUID } from 'mongodb';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { MAX_APPLIED_REQUESTS } from '../../src/domain/audit.ts';
import type { Lead } from '../../src/domain/lead.ts';
import { StoreUnavailable } from '../../src/store/port/faults.ts';
import type { Store } from '../../src/store/store.ts';
import { aConsumer, aLead, aMember, aStudio, BY, keysFor, STUDIO_ID, times } from '../support/builders.ts';
import { describeWithMongo, isCommand } from '../support/mongodb.ts';
import { openedStore } from '../support/patience.ts';
import { startProxy, type TcpProxy } from '../tools/tcp-proxy.ts';
import { EVERY_RIVALRY } from './repeated-changes-contract.ts';
import { moveLead } from './store-actions.ts';

const WRITING = EVERY_RIVALRY.filter(({ changesNothing }) => !changesNothing);

const isWrite = isCommand('insert', 'update', 'findAndModify', 'bulkWrite');

// @proves crashes-19
describeWithMongo('a change in MongoDB whose reply is lost', (mongoUrl) => {
  let proxy: TcpProxy;
  let url: (port?: number) => string;
  let store: Store;
  let other: Store;

  beforeAll(async () => {
    const { hostname, port } = new URL(mongoUrl());
    proxy = await startProxy(hostname, Number(port));
  });
  afterAll(() => proxy?.stop());
  beforeEach(async () => {
    const name = `test-${randomUUID()}`;
    const { host } = new URL(mongoUrl());
    url = (port) => `mongodb://${port === undefined ? host : `127.0.0.1:${port}`}/${name}`;
    // Opened one after another, because two concurrent builds of an index may deadlock the database.
    other = await openedStore(url());
    store = await openedStore(url(proxy.port));
    onTestFinished(async () => {
      proxy.heal();
      const client = new MongoClient(url());
      await Promise.all([store.close(), other.close(), client.db().dropDatabase()]);
      await client.close();
    });
    await other.putStudio(aStudio(), BY);
  });

  test.each(WRITING)(
    'a retry after a lost reply does not undo a later change: $method, $title',
    async ({ arrange, change, rival, state }) => {
      await arrange?.(other);
      const before = await state(other);
      let after: unknown;
      proxy.loseReplies({
        of: isWrite,
        meanwhile: async () => {
          expect(await state(other)).not.toEqual(before);
          await rival(other);
          after = await state(other);
        },
      });

      await change(store);

      expect(proxy.lost()).toBe(1);
      expect(await state(other)).toEqual(after);
      const events = await other.listAuditEvents(STUDIO_ID, null);
      expect(new Set(events.map((event) => JSON.stringify(event))).size).toBe(events.length);
    },
  );

  // @proves leads-32
  test.each([
    ['closed', true, (lead: Lead) => moveLead(other, lead, 'won')],
    ['erased', false, ({ id: leadId }: Lead) => other.eraseLead({ studioId: STUDIO_ID, leadId, ...BY })],
  ])('a retry after a lost reply stores no enquiry twice if its lead is %s meanwhile', async (_, isKept, rival) => {
    const lead = aLead();
    await other.createLead(lead, keysFor(lead));
    const again = aLead({ contact: lead.contact, note: 'again' });
    proxy.loseReplies({ of: isCommand('update'), meanwhile: () => rival(lead) });

    const outcome = await store.createLead(again, keysFor(again), { keepsEnquiry: true });

    expect(proxy.lost()).toBe(1);
    // An erased lead has no record of its enquiries, so the retry creates a lead.
    expect(outcome).toEqual(isKept ? { kind: 'already-open', leadId: lead.id } : { kind: 'created', lead: again });
    const enquiries = isKept ? [{ note: 'again', time: again.createdAt }] : undefined;
    const { records } = await other.walkLeads(STUDIO_ID, null, 10);
    expect(records).toMatchObject([isKept ? { id: lead.id, stage: 'won', enquiries } : { id: again.id }]);
  });

  // @proves leads-32
  test('an enquiry that waited for another creation is stored once despite a lost reply', async () => {
    const lead = aLead();
    const again = aLead({ contact: lead.contact, note: 'again' });
    proxy.loseReplies({ of: isCommand('update'), meanwhile: async () => {} });

    const outcomes = await Promise.all([
      store.createLead(lead, keysFor(lead)),
      store.createLead(again, keysFor(again), { keepsEnquiry: true }),
    ]);

    expect(proxy.lost()).toBe(1);
    expect(outcomes).toMatchObject([{ kind: 'created' }, { kind: 'already-open', leadId: lead.id }]);
    expect((await other.findLead(STUDIO_ID, lead.id))?.enquiries).toMatchObject([{ note: 'again' }]);
  });

  // @proves feed-8
  test('a retry after a lost reply does not recreate a consumer that was removed meanwhile', async () => {
    proxy.loseReplies({ of: isCommand('insert'), meanwhile: () => other.removeConsumer(1, BY) });
    expect(await store.createConsumer(aConsumer(), BY)).toMatchObject({ kind: 'created', consumer: { number: 1 } });
    expect(proxy.lost()).toBe(1);
    expect(await other.listConsumers()).toEqual([]);

    proxy.loseReplies({ of: isCommand('update'), meanwhile: async () => {} });
    const outcome = await store.createConsumer(aConsumer(), BY);
    expect(proxy.lost()).toBe(1);
    expect(outcome).toEqual({ kind: 'created', consumer: (await other.listConsumers())[0] });

    // The other store may take the number that this consumer would have had.
    proxy.loseReplies({ of: isCommand('update'), meanwhile: async () => {} });
    const rivals = [store, other].map((each, at) => each.createConsumer(aConsumer({ name: `rival-${at}` }), BY));
    expect((await Promise.all(rivals)).map(({ kind }) => kind)).toEqual(['created', 'created']);
    expect(new Set((await other.listConsumers()).map(({ name }) => name)).size).toBe(3);
  });

  test('a lost reply has an unknown outcome once later changes may have displaced its identity', async () => {
    await other.putMember(aMember({ id: 'earlier' }), BY);
    const identities = () => times(MAX_APPLIED_REQUESTS, () => new UUID());
    proxy.loseReplies({
      of: isWrite,
      meanwhile: async () => {
        await other.removeMember(STUDIO_ID, 'member-1', BY);
        // Simulates as many changes of other members as the bound allows.
        await withStudios((studios) =>
          studios.updateOne({ _id: STUDIO_ID }, { $set: { appliedRequests: identities() } }),
        );
      },
    });

    await expect(store.putMember(aMember(), BY)).rejects.toBeInstanceOf(StoreUnavailable);

    expect(await other.findMember(STUDIO_ID, 'member-1')).toBeNull();
  });

  // @proves bounds-43
  test('a record stores a bounded number of change identities', async () => {
    const identities = times(MAX_APPLIED_REQUESTS, () => new UUID());
    await withStudios((studios) => studios.updateOne({ _id: STUDIO_ID }, { $set: { appliedRequests: identities } }));
    await store.putMember(aMember(), BY);

    const stored = await withStudios((studios) => studios.findOne({ _id: STUDIO_ID }));
    expect(stored?.appliedRequests).toHaveLength(MAX_APPLIED_REQUESTS);
    expect(stored?.appliedRequests[0]).toEqual(identities[1]);
  });

  async function withStudios<Result>(
    work: (studios: ReturnType<typeof listStudios>) => Promise<Result>,
  ): Promise<Result> {
    const client = new MongoClient(url());
    try {
      return await work(listStudios(client));
    } finally {
      await client.close();
    }
  }
});

const listStudios = (client: MongoClient) =>
  client.db().collection<{ _id: string; appliedRequests: UUID[] }>('studios');
