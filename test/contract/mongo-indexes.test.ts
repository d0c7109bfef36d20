import { randomUUID } from 'node:crypto';
import { type Collection, type Db, type Document, type IndexSpecification, MongoClient, UUID } from 'mongodb';
import { describe, expect, onTestFinished, test } from 'vitest';
import { errorSummary } from '../../common/error-summary.ts';
import { examine } from '../../operator/doctor/examine.ts';
import { MAX_LIVE_KEYS } from '../../src/domain/api-key.ts';
import type { LeadKeys } from '../../src/domain/lead.ts';
import { INDEXES, type Index, indexFaults, indexKeeper } from '../../src/store/mongo/indexes.ts';
import { type LeadDocument, leadDocument } from '../../src/store/mongo/lead-documents.ts';
import { StoreUnavailable } from '../../src/store/port/faults.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead, aMember, anApiKey, aStudio, BY, keysFor, NOW, STUDIO_ID, times } from '../support/builders.ts';
import { aStoreOnAFake, findName, refusal } from '../support/fake-mongodb.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { openedStore } from '../support/patience.ts';
import { correctLead, moveLead } from './store-actions.ts';

describeWithMongo('the indexes in MongoDB', (mongoUrl) => {
  /** Creates a database. Returns its address, a direct connection, and a function that opens a store on it. */
  async function aDatabase() {
    const url = new URL(`/test-${randomUUID()}`, mongoUrl()).href;
    const client = await new MongoClient(url).connect();
    const database = client.db();
    const stores: Store[] = [];
    onTestFinished(async () => {
      for (const store of stores) await store.close();
      await database.dropDatabase();
      await client.close();
    });
    const open = async () => {
      const store = await openedStore(url);
      stores.push(store);
      return store;
    };
    return { url, database, leads: database.collection<LeadDocument>('leads'), open };
  }

  /** Creates a database without one unique index, and with two leads that it would not allow. */
  async function aDatabaseWithDuplicates(by: 'key' | 'contact') {
    const opened = await aDatabase();
    const store = await opened.open();
    const [alone, closed, first] = [aLead(), aLead(), aLead()];
    const firstKeys = keysFor(first);
    await store.createLead(alone, keysFor(alone));
    await store.createLead(closed, keysFor(closed));
    await moveLead(store, closed, 'lost');
    await store.createLead(first, firstKeys);
    await opened.leads.dropIndex(by === 'key' ? 'idempotencyKey' : 'openContact');
    const second = aLead();
    const { idempotencyKey, contactKeys } = firstKeys;
    const same = by === 'key' ? { idempotencyKey } : { contactKeys };
    await opened.leads.insertOne(leadDocument(second, keysFor(second, same)));
    await untilChecked(store, /cannot be built/);
    return { ...opened, store, alone, closed, first, second };
  }

  const create = (store: Store, lead = aLead(), keys: LeadKeys = keysFor(lead)) => store.createLead(lead, keys);

  /** Returns the message of a failed check, or "ok". */
  const checked = (store: Store) =>
    store.check().then(
      () => 'ok',
      (error) => {
        expect(error).toBeInstanceOf(StoreUnavailable);
        return errorSummary(error);
      },
    );
  const untilChecked = (store: Store, pattern: RegExp) => expect.poll(() => checked(store)).toMatch(pattern);

  // @proves crashes-29
  test.each([
    ['idempotencyKey', { studioId: 1, 'idempotency.key': 1 }],
    ['openContact', { studioId: 1, openContactKey: 1 }],
  ] as const)(
    'a core that finds another index in place of %s lets no lead take a key or contact',
    async (name, key) => {
      const { leads, open } = await aDatabase();
      const cores = [await open(), await open()];
      const [store] = cores as [Store];
      const [lead, closed] = [aLead(), aLead()];
      for (const each of [lead, closed]) await create(store, each);
      await moveLead(store, closed, 'lost');
      await replaceIndex(leads, name, key);

      for (const core of cores) {
        await untilChecked(core, /is not unique/);
        await expect(create(core)).rejects.toBeInstanceOf(StoreUnavailable);
        await expect(moveLead(core, closed, 'new')).rejects.toBeInstanceOf(StoreUnavailable);
        await expect(correctLead(core, lead, { contact: aLead().contact })).rejects.toBeInstanceOf(StoreUnavailable);
      }
      expect((await store.listLeads(STUDIO_ID, null, 10)).records).toEqual([
        expect.objectContaining({ id: closed.id, stage: 'lost' }),
        lead,
      ]);
    },
  );

  /** Replaces a unique index by one that is not unique. */
  async function replaceIndex(
    collection: Pick<Collection, 'dropIndex' | 'createIndex'>,
    name: string,
    key: IndexSpecification,
  ) {
    await collection.dropIndex(name);
    // A core may have recreated its own index meanwhile.
    while (!(await collection.createIndex(key, { name }).catch(() => undefined))) await collection.dropIndex(name);
  }

  // @proves crashes-29
  test('a dropped index is recreated automatically, and then creations succeed', async () => {
    const { leads, open } = await aDatabase();
    const store = await open();
    const lead = aLead();
    await create(store, lead);

    await leads.dropIndexes();

    const wanted = INDEXES.filter(({ collection }) => collection === 'leads').map(({ name }) => name);
    await expect
      .poll(async () => (await leads.indexes()).map(({ name }) => name))
      .toEqual(expect.arrayContaining(wanted));
    await untilChecked(store, /^ok$/);
    expect(await create(store, aLead({ contact: lead.contact }))).toMatchObject({ kind: 'already-open' });
  });

  // @proves crashes-29
  describe('with duplicates', () => {
    test.each(['key', 'contact'] as const)(
      'with a duplicate %s, core and doctor name only the lead ids until one lead is deleted',
      async (by) => {
        const { url, leads, store, first, second } = await aDatabaseWithDuplicates(by);

        const messages = [await checked(store), await create(store).catch(errorSummary), ...(await doctorFaults(url))];
        expect(messages).toHaveLength(3);
        for (const text of messages) {
          expect(text).toContain(`${STUDIO_ID}/${first.id} = ${STUDIO_ID}/${second.id}`);
          expect(text).not.toContain('open:');
          expect(text).not.toContain(first.contact.value);
        }

        await leads.deleteOne({ '_id.id': new UUID(second.id) });
        await untilChecked(store, /^ok$/);
        expect(await create(store)).toMatchObject({ kind: 'created' });
      },
    );

    test('with duplicates in the database, leads can be read, closed and corrected, but not created', async () => {
      const { store, alone, closed, first } = await aDatabaseWithDuplicates('key');
      const lead = aLead();

      await expect(store.createLead(lead, keysFor(lead))).rejects.toBeInstanceOf(StoreUnavailable);
      expect(await store.findLead(STUDIO_ID, alone.id)).toEqual(alone);
      expect((await store.listLeads(STUDIO_ID, null, 10)).records).toHaveLength(4);
      expect(await moveLead(store, alone, 'contacted')).toMatchObject({ kind: 'changed' });
      expect(await moveLead(store, first, 'won')).toMatchObject({ kind: 'changed' });
      expect(await correctLead(store, alone, { note: 'x' })).toMatchObject({ kind: 'changed' });
      expect(await correctLead(store, closed, { contact: lead.contact })).toMatchObject({ kind: 'changed' });
    });
  });

  test('without the slot index no key is created, but keys can be revoked', async () => {
    const { database, open } = await aDatabase();
    const cores = [await open(), await open()];
    const [store] = cores as [Store];
    await store.putStudio(aStudio(), BY);
    await store.putMember(aMember(), BY);
    const key = anApiKey();
    await store.createApiKey(key, NOW);
    await replaceIndex(database.collection('apiKeys'), 'slot', { studioId: 1, slot: 1 });
    for (const core of cores) await untilChecked(core, /apiKeys\.slot is invalid/);

    const creations = cores.flatMap((core) => times(MAX_LIVE_KEYS, () => core.createApiKey(anApiKey(), NOW)));
    const outcomes = await Promise.allSettled(creations);

    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toEqual([]);
    expect(await store.revokeApiKey(STUDIO_ID, key.id, BY)).toMatchObject({ revokedAt: NOW });
    expect((await store.findCredential(key.secretSha256))?.key.revokedAt).toEqual(NOW);
    // Leads have other indexes.
    expect(await create(store)).toMatchObject({ kind: 'created' });
  });

  async function doctorFaults(url: string): Promise<string[]> {
    const findings = await examine(['core'], { DATABASE_URL: url });
    return findings.filter(({ verdict }) => verdict === 'fault').map(({ says }) => says);
  }
});

// @proves crashes-29
describe('the checks of the indexes', () => {
  const create = (store: Store, lead = aLead()) => store.createLead(lead, keysFor(lead));

  test('index checks are limited by time and not repeated for each creation', async () => {
    const { fake, store } = await aStoreOnAFake();

    for (const lead of times(50, () => aLead())) await create(store, lead);

    const names = fake.commands.map(findName);
    expect(names.filter((name) => name === 'insert')).toHaveLength(50);
    expect(names.filter((name) => name === 'listIndexes').length).toBeLessThan(50);
  });

  test('the indexes are checked before the first creation after a reconnection', async () => {
    const { fake, store } = await aStoreOnAFake();
    fake.answer = (command) => (command.createIndexes ? refusal(85, 'IndexOptionsConflict') : WITHOUT_INDEXES(command));

    fake.disconnect();
    await store.findLead(STUDIO_ID, aLead().id);
    await expect(create(store)).rejects.toThrow(/leads\.openContact is missing/);
    expect(fake.commands.map(findName)).not.toContain('insert');
  });

  test('a failed check of the indexes prevents creations', async () => {
    const { fake, store } = await aStoreOnAFake();
    fake.answer = (command) => (command.listIndexes ? refusal(13, 'Unauthorized') : undefined);

    await expect.poll(() => create(store).then(() => 'created', String)).toMatch(/Unauthorized/);
  });

  test('index checks continue while an index is being built, however long that takes', async () => {
    const { promise: made, resolve } = Promise.withResolvers<undefined>();
    const missing: Index[] = INDEXES.filter(({ unique }) => !unique);
    const keeper = indexKeeper({
      check: async () => missing.map((index) => ({ index, fault: `${index.name} is missing` })),
      build: () => made,
    });
    const closing = new AbortController();
    keeper.start(closing.signal);
    await keeper.expectValid('leads');

    missing.push(...INDEXES);

    await expect.poll(() => keeper.expectValid('leads').catch(errorSummary)).toMatch(/openContact is missing/);
    closing.abort();
    resolve(undefined);
    await keeper.ended();
  });

  const WITHOUT_INDEXES = (command: Document): Document | undefined =>
    command.listIndexes
      ? { cursor: { id: 0n, ns: `${command.$db}.${command.listIndexes}`, firstBatch: [] }, ok: 1 }
      : undefined;
});

// @proves mongodb-22
describe('an index as MongoDB lists it', () => {
  const [openContact] = INDEXES;
  const listing = (more: Document): Document => ({ v: 2, key: openContact?.key, name: 'x', unique: true, ...more });
  /** Returns the faults of a listing. No server in tests can produce all of them. */
  const collectFaults = async (...listed: Document[]) => {
    const others = INDEXES.slice(1).map(({ key, name, unique }) => ({ v: 2, key, name, unique }));
    const command = async () => ({ cursor: { firstBatch: [...others, ...listed] } });
    return (await indexFaults({ command } as unknown as Db, 'leads')).map(({ fault }) => fault);
  };

  test.each([
    ['partial', listing({ partialFilterExpression: { stage: 'new' } }), 'is partial'],
    ['sparse', listing({ sparse: true }), 'is sparse'],
    ['of another key', listing({ name: openContact?.name, key: { studioId: 1, openContact: 1 } }), 'has the key'],
    ['in another order', listing({ name: openContact?.name, key: { openContactKey: 1, studioId: 1 } }), 'has the key'],
    ['hidden', listing({ hidden: true }), 'is hidden'],
    ['with a collation', listing({ collation: { locale: 'en', strength: 1 } }), 'has a collation'],
    ['with a TTL', listing({ expireAfterSeconds: 60 }), 'has a TTL'],
    // An index does not prevent duplicates until it is built.
    ['not built yet', { spec: listing({}), buildUUID: new UUID() }, 'is being built'],
  ])('an index does not count when it is %s', async (_what, listed, fault) => {
    expect(await collectFaults(listed)).toEqual([expect.stringContaining(fault)]);
    expect(await collectFaults(listed, listing({}))).toEqual([]);
  });
});
