import { randomUUID } from 'node:crypto';
import { type Collection, type Document, type FindOptions, Long, MongoClient, MongoServerError, UUID } from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type AuditEvent, MAX_AUDIT_EVENTS } from '../../src/domain/audit.ts';
import type { Consumer } from '../../src/domain/consumer.ts';
import type { Lead } from '../../src/domain/lead.ts';
import { newId } from '../../src/domain/new-id.ts';
import { connect } from '../../src/store/mongo/connection.ts';
import {
  type ApiKeyDocument,
  apiKeyDocument,
  type ConsumersDocument,
  type StudioDocument,
} from '../../src/store/mongo/documents.ts';
import { MOVED_AT_ONCE, type OldEventsDocument, oldEventsId } from '../../src/store/mongo/history.ts';
import { type LeadDocument, leadDocument } from '../../src/store/mongo/lead-documents.ts';
import { storeOn } from '../../src/store/mongo/mongo-store.ts';
import { leadKey } from '../../src/store/mongo/queries.ts';
import type { AuditPart } from '../../src/store/port/audit.ts';
import { StoreUnavailable, type UnreadableRecord } from '../../src/store/port/faults.ts';
import type { StoreObserver } from '../../src/store/port/listeners.ts';
import type { Store } from '../../src/store/store.ts';
import { aConsumer, aLead, aStudio, BY, keysFor, NOW, plus, STUDIO_ID, times } from '../support/builders.ts';
import { openedStore, patiently } from '../support/patience.ts';
import type { Damage, OpenedStore } from './opened-store.ts';
import { correctLead, createdConsumer, moveLead, toAcknowledgement } from './store-actions.ts';
import { type Extent, storeContract } from './store-contract.ts';

/** The collection of each kind of record. */
const COLLECTIONS = {
  lead: 'leads',
  creation: 'leads',
  original: 'leads',
  enquiries: 'leads',
  'uniqueness key': 'leads',
  'pending change': 'leads',
  'part of a pending change': 'leads',
  'pending change of 1.0': 'leads',
  key: 'apiKeys',
  studio: 'studios',
  region: 'studios',
  member: 'studios',
  source: 'studios',
  event: 'studios',
  consumer: 'feed',
  delivery: 'deliveries',
  epoch: 'feed',
  request: 'requests',
  'lead with events': 'leads',
  'key with events': 'apiKeys',
};

/** One value of each kind that a field can hold and that its reader distinguishes; undefined removes the field. */
const DAMAGES: readonly Damage[] = (
  [
    ['lead', 'stage', 'qualified'],
    ['lead', 'createdAt', 'yesterday'],
    ['lead', 'updatedAt', new Date(8.64e15)],
    ['lead', 'displayName', ''],
    ['lead', 'displayName', undefined],
    ['lead', 'contact', null],
    ['lead', 'contact.type', 'toString'],
    ['lead', 'contact.value', undefined],
    ['lead', 'sourceId', undefined],
    ['lead', 'note', 'x'.repeat(10_000)],
    ['creation', 'idempotency.fingerprint', null],
    ['creation', 'idempotency.fingerprintVersion', 99],
    ['original', 'original', { displayName: '', sourceId: null, note: null }],
    ['enquiries', 'original.enquiries', { kept: 'x', keys: {} }],
    [
      'enquiries',
      'original.enquiries',
      { kept: [null, { time: 'soon', displayName: 'Ada', sourceId: null, note: 'x' }], keys: [5] },
    ],
    ...[
      undefined,
      null,
      'yesterday',
      [],
      { revision: Long.MAX_VALUE },
      // These have a time, so they are distributed once.
      { since: NOW, revision: 'first' },
      { since: NOW, revision: 1.5 },
      { since: NOW, kinds: 5 },
      { since: [NOW] },
      [{ since: NOW, revision: 5 }],
    ].map((value) => ['pending change', 'changes', value] as const),
    ['part of a pending change', 'changes.kinds', 'x'],
    ['part of a pending change', 'changes.kinds', { updated: 'x', sold: 5 }],
    ['pending change of 1.0', 'changes', { since: new Date(0) }],
    ['key', 'name', undefined],
    ['key', 'scopes', [null, 'leads.export', 'toString', ...times(1000, () => 'leads.read')]],
    ['key', 'scopes', 'leads.read'],
    ['key', 'memberId', 'x'.repeat(10_000)],
    ['key', 'createdAt', undefined],
    ['key', 'expiresAt', '2099-01-01'],
    ['key', 'revokedAt', 'no'],
    ['key', 'secretHint', ''],
    ['key', 'lastUsedAt', 5],
    ['key', 'quotaLimit', '5'],
    ['studio', 'status', undefined],
    ['studio', 'regionCode', 49],
    ['studio', 'quotaLimit', 0],
    ['studio', 'keepEnquiries', 'no'],
    ['studio', 'retention', { days: 30 }],
    ['uniqueness key', 'contactRule', {}],
    ['uniqueness key', 'contactRule.version', 2],
    ['region', 'formerRegions', 'DE'],
    ['region', 'formerRegions', [['DE']]],
    ['member', 'role', null],
    ['source', 'source', null],
    ['source', 'source', { name: 5, enabled: true }],
    ['event', 'history', 'none'],
    ['event', 'history', [null]],
    ['event', 'history', [{ action: 'studio-sold', memberId: null, time: new Date() }]],
    ['consumer', 'studioIds', ['a.b']],
    ['consumer', 'includesTests', 'no'],
    ['consumer', 'start', 'soon'],
    ['consumer', 'createdAt', 'yesterday'],
    ['consumer', 'backfills', [{ studioId: 5 }]],
    ['delivery', 'kinds', null],
    ['delivery', 'kinds', { updated: 'x', sold: 5 }],
    ['epoch', 'epoch', 'x'],
    ['epoch', 'epoch', 2 ** 60],
    ['epoch', 'restoredTo', undefined],
    ['epoch', 'restoredTo', new Date(8.64e15)],
    ['request', 'operation', 'sell'],
    ['request', 'secretHint', undefined],
    ['request', 'code', 'x'.repeat(10_000)],
    ['request', 'faultyFields', null],
    ...(['lead with events', 'key with events'] as const).flatMap((kind) =>
      ['history', 'appliedRequests'].map((field) => [kind, field, 'none'] as const),
    ),
  ] as const
).map(([kind, field, value]) => ({ kind, field, value }));

function findId(kind: Damage['kind'], { studioId, id }: { readonly studioId: string; readonly id: string }) {
  if (['leads', 'requests'].includes(COLLECTIONS[kind])) return leadKey(studioId, id);
  return COLLECTIONS[kind] === 'apiKeys' ? new UUID(id) : studioId;
}

/**
 * Runs the store contract on MongoDB, and tests what only MongoDB has.
 *
 * @param toUrl returns the address of a database by its name
 */
export function mongoStoreContract(toUrl: (database: string) => string, extent: Extent): void {
  // Each test empties the database for the next, because creating collections and indexes is slow.
  const name = `test-${randomUUID()}`;
  let client: MongoClient;
  /** A store that tests share, because opening one takes longer than most tests, and its current report function. */
  let shared: { readonly store: Store; report: (record: UnreadableRecord) => void } | undefined;
  beforeAll(() => {
    client = new MongoClient(toUrl(name));
  });
  afterAll(async () => {
    await shared?.store.close();
    await client.db().dropDatabase();
    await client.close();
  });

  async function sharedStore(report: (record: UnreadableRecord) => void): Promise<Store> {
    if (!shared) {
      const store = await openedStore(toUrl(name), { report: (record) => opened.report(record) });
      const close = () => {
        if (shared === opened) shared = undefined;
        return store.close();
      };
      const opened = { store: { ...store, close }, report };
      shared = opened;
    }
    shared.report = report;
    return shared.store;
  }

  /** Returns the empty database: its address, a way to open stores on it, and its cleanup. */
  function aDatabase() {
    const url = toUrl(name);
    const stores: Store[] = [];
    return {
      url,
      async open(onUnreadable?: (record: UnreadableRecord) => void, observer?: StoreObserver): Promise<Store> {
        const store = await openedStore(url, { observer, report: onUnreadable });
        stores.push(store);
        return store;
      },
      async dispose(): Promise<void> {
        for (const each of stores) await each.close();
        const collections = new Set([...Object.values(COLLECTIONS), 'oldEvents']);
        await Promise.all([...collections].map((each) => client.db().collection(each).deleteMany()));
      },
    };
  }

  /** Fills a document up to MongoDB's limit. */
  async function fillDocument(collection: Collection<Document>, filter: Document): Promise<void> {
    const size = ((await collection.findOne(filter, { raw: true })) as Buffer | null)?.length ?? 0;
    const fill = (length: number) => collection.updateOne(filter, { $set: { filler: 'x'.repeat(length) } });
    // Besides its text, a field has its type, its name, its length and two zeros.
    const length = 16 * 1024 ** 2 - size - (1 + 'filler'.length + 4 + 2);
    await fill(length);
    await expect(fill(length + 1)).rejects.toThrow();
  }

  describe('a studio whose document is full', () => {
    const studioId = STUDIO_ID;
    let store: Store;

    async function fillUp() {
      const studios = client.db().collection<StudioDocument>('studios');
      const sources = Object.fromEntries(times(15_000, () => [newId(), { name: '🦉'.repeat(160), enabled: true }]));
      await studios.updateOne({ _id: studioId }, { $set: { sources } });
      await fillDocument(studios as unknown as Collection<Document>, { _id: studioId });
    }

    // With such a document, a busy server may exceed a call's deadline.
    const suspend = () => patiently(() => store.putStudio(aStudio({ status: 'suspended' }), BY));
    const found = () => patiently(() => store.findStudio(studioId));

    beforeEach(async () => {
      const database = aDatabase();
      store = await database.open();
      await store.putStudio(aStudio(), BY);
      return database.dispose;
    });

    // @proves limits-8
    test('a studio with a full document can be suspended, and the event replaces earlier ones', async () => {
      for (const status of ['suspended', 'active'] as const) await store.putStudio(aStudio({ status }), BY);
      await fillUp();

      expect(await suspend()).toMatchObject({ studio: { status: 'suspended' } });

      expect(await found()).toEqual(aStudio({ status: 'suspended' }));
      const events = await patiently(() => store.listAuditEvents(studioId, null));
      expect(events).toMatchObject([{ from: 'active', to: 'suspended' }]);
    });

    // @proves limits-8
    test('a studio with a full document can be suspended even if no event fits', async () => {
      await fillUp();

      expect(await suspend()).toMatchObject({ studio: { status: 'suspended' } });

      expect(await found()).toEqual(aStudio({ status: 'suspended' }));
      const { records, next } = await patiently(() => store.listLeadSources(studioId, null, 1000));
      expect([records.length, next]).toEqual([1000, records.at(-1)?.id]);
    });
  });

  describe('a history that is full', () => {
    const entry = (number: number) => ({
      action: 'leads-resent' as const,
      memberId: `m-${number}`,
      time: plus(NOW, number),
    });
    const by = (number: number) => ({ memberId: `m-${number}`, now: plus(NOW, number) });
    const range = { start: NOW, end: new Date(Date.now() + 3_600_000) };
    let store: Store;
    beforeEach(async () => {
      const database = aDatabase();
      store = await database.open();
      await store.putStudio(aStudio(), { ...BY, now: plus(NOW, -1) });
      return database.dispose;
    });
    const studios = () => client.db().collection<StudioDocument>('studios');
    const fill = (to: number) =>
      studios().updateOne({ _id: STUDIO_ID }, { $set: { history: times(to, (index) => entry(index)) } });
    const findNumber = ({ memberId }: { readonly memberId: string | null }) => Number(memberId?.slice(2));
    /** Returns all events of a record, in the order of a walk. */
    async function walked(of = STUDIO_ID): Promise<number[]> {
      const found: AuditEvent[] = [];
      for (let after: string | null = null; ; ) {
        const { events, next }: AuditPart = await store.walkAuditEvents(range, after);
        found.push(...events);
        if (next === null) return found.filter((each) => (each.leadId ?? each.studioId) === of).map(findNumber);
        after = next;
      }
    }
    const record = (number: number) => store.recordAct(STUDIO_ID, { action: 'leads-resent' }, by(number));
    const upTo = (count: number) => times(count, (index) => index);

    // @proves audit-5
    test('a full history loses no event: the oldest are moved out, the newest are listed', async () => {
      await fill(1095);
      for (const number of times(115, (index) => 1095 + index)) await record(number);
      await Promise.all(
        times(8, () => store.putStudio(aStudio({ status: 'suspended' }), { memberId: 'm-1210', now: plus(NOW, 1210) })),
      );
      expect(await walked()).toEqual(upTo(1211));
      const listed = (await store.listAuditEvents(STUDIO_ID, null)).map(findNumber);
      expect(listed).toEqual(upTo(1211).toReversed().slice(0, 1000));
      expect(await studios().findOne({ _id: STUDIO_ID })).toMatchObject({ moved: 200 });
      expect(
        (await store.walkAuditEvents({ start: plus(NOW, 150), end: plus(NOW, 152) }, '1 ')).events.map(findNumber),
      ).toEqual([150, 151]);
    });

    // @proves audit-5
    test('moving old events resumes where a process died after copying them', async () => {
      const _id = oldEventsId('studios', STUDIO_ID, 0);
      const oldEvents = client.db().collection<OldEventsDocument>('oldEvents');
      await fill(1100);
      await oldEvents.insertOne({ _id, history: times(100, (index) => entry(index)) });
      expect(await walked()).toEqual(upTo(1100));
      await record(1100);
      expect(await walked()).toEqual(upTo(1101));
    });

    // @proves audit-5
    test('a moved part of a history is deleted with its lead', async () => {
      const lead = aLead();
      await store.createLead(lead, keysFor(lead));
      const leads = client.db().collection<LeadDocument>('leads');
      await leads.updateOne({ studioId: STUDIO_ID }, { $set: { history: times(1100, (index) => entry(index)) } });
      await moveLead(store, lead, 'won', by(1100));
      expect(await walked(lead.id)).toEqual(upTo(1101));
      const oldEvents = client.db().collection('oldEvents');
      expect(await oldEvents.countDocuments()).toBe(1);
      const at = plus(new Date(), 60_000);
      await store.eraseLead({ studioId: STUDIO_ID, leadId: lead.id, memberId: null, now: at });
      expect(await store.deleteErasedLeads(STUDIO_ID, [lead.id], at)).toBe(1);
      expect(await oldEvents.countDocuments()).toBe(0);
    });
  });

  const openContractStore = async (): Promise<OpenedStore> => {
    const { open, dispose, url } = aDatabase();
    const reported: UnreadableRecord[] = [];
    const another = () => open((record) => reported.push(record));
    const store = await sharedStore((record) => reported.push(record));
    /** Overwrites a field of a consumer, which is an element of the one document of all consumers. */
    async function damageConsumer(name: string, field: string, value: unknown): Promise<void> {
      const feed = client.db().collection<ConsumersDocument>('feed');
      const { list = [] } = (await feed.findOne({ _id: 'consumers' })) ?? {};
      const damaged = list.map((each) => (each.name === name ? { ...each, [field]: value } : each)) as Consumer[];
      await feed.updateOne({ _id: 'consumers' }, { $set: { list: damaged } });
    }
    return {
      store,
      async reopen() {
        await store.close();
        return another();
      },
      another,
      reported,
      async damage({ kind, field, value }, ...records) {
        const id = records[0]?.id ?? '';
        if (kind === 'consumer') return damageConsumer(id, field, value);
        const path = { member: `members.${id}`, source: `sources.${id}` }[kind as string] ?? field;
        const _id: Document = { $in: records.map((record) => findId(kind, record)) };
        const deliveryFilter = () => ({ '_id.id': new UUID(id) });
        const filter: Document = kind === 'delivery' ? deliveryFilter() : { _id: kind === 'epoch' ? 'consumers' : _id };
        const change: Document = value === undefined ? { $unset: { [path]: 1 } } : { $set: { [path]: value } };
        await client.db().collection<Document>(COLLECTIONS[kind]).updateMany(filter, change);
      },
      databaseUrl: url,
      async fill({ members = [], sources = [], keys = [], events = [] }) {
        const oldEvents: OldEventsDocument[] = [];
        /** Like the store, moves the oldest events out where a history has too many. */
        const makeHistory = (apiKeyId: string | null, collection: string, _id: unknown) => {
          const history = events
            .filter((event) => event.apiKeyId === apiKeyId)
            .map(({ action, memberId, time }) => ({ action, memberId, time }));
          let moved = 0;
          for (; history.length > MAX_AUDIT_EVENTS + 2 * MOVED_AT_ONCE; moved += MOVED_AT_ONCE) {
            const oldest = history.splice(0, MOVED_AT_ONCE);
            oldEvents.push({ _id: oldEventsId(collection, _id, moved), history: oldest });
          }
          return { history, ...(moved > 0 && { moved }) };
        };
        if (keys.length > 0) {
          const documents = keys.map((key) => {
            const document = apiKeyDocument(key, key.id);
            return { ...document, ...makeHistory(key.id, 'apiKeys', document._id) };
          });
          await client.db().collection<ApiKeyDocument>('apiKeys').insertMany(documents);
        }
        const change = {
          ...(events.length > 0 && makeHistory(null, 'studios', STUDIO_ID)),
          members: Object.fromEntries(members.map(({ id, role }) => [id, role])),
          sources: Object.fromEntries(sources.map(({ id, name, enabled }) => [id, { name, enabled }])),
        };
        await client.db().collection<StudioDocument>('studios').updateOne({ _id: STUDIO_ID }, { $set: change });
        if (oldEvents.length > 0) {
          await client.db().collection<OldEventsDocument>('oldEvents').insertMany(oldEvents);
        }
      },
      async makeLeads(...leads) {
        const documents = leads.map((lead) => leadDocument(lead, keysFor(lead)));
        await client.db().collection<LeadDocument>('leads').insertMany(documents);
      },
      async makeStudios(...ids) {
        const studios = ids.map((_id) => ({ _id, status: 'active', regionCode: null }) as StudioDocument);
        await client.db().collection<StudioDocument>('studios').insertMany(studios);
      },
      dispose,
    };
  };

  test('consumers that ask at once share the distribution and insert each delivery once', async () => {
    const { open, dispose } = aDatabase();
    onTestFinished(dispose);
    let inserted = 0;
    const store = await open(undefined, ({ name, size }) => {
      if (name === 'insert') inserted += size;
      return () => {};
    });
    await store.putStudio(aStudio(), BY);
    const named = times(4, (index) => index + 1);
    for (const number of named) await store.createConsumer(aConsumer({ name: `copy-${number}` }), BY);
    for (const lead of times(60, () => aLead())) await store.createLead(lead, keysFor(lead));
    inserted = 0;
    const lists = await Promise.all(named.map((number) => store.listDeliveries(number, 10)));
    expect(lists.map((list) => list?.changes.length)).toEqual(named.map(() => 10));
    // Including those of the default consumer.
    expect(inserted).toBe((named.length + 1) * 60);
  });

  // @proves feed-1
  test.each([
    ['writes deliveries', 'deliveries', 'insertMany'],
    ['raises deliveries', 'deliveries', 'bulkWrite'],
    ['reads the leads of deliveries', 'leads', 'find'],
  ] as const)('a revision is never sent with two contents while another core %s', async (_, collection, method) => {
    const { open, dispose } = aDatabase();
    onTestFinished(dispose);
    const other = await open();
    const connection = await connect(toUrl(name));
    onTestFinished(connection.close);
    let meanwhile: (() => Promise<unknown>) | undefined;
    /** Lets the other core act once, before the first call of the method. */
    const interrupt = async () => {
      const action = meanwhile;
      meanwhile = undefined;
      await action?.();
    };
    const interrupted = new Proxy(connection[collection], {
      get(target, property) {
        const called = Reflect.get(target, property) as (...args: unknown[]) => unknown;
        if (property !== method) return called;
        if (method !== 'find') return (...args: unknown[]) => interrupt().then(() => called.apply(target, args));
        return (...args: [filter: unknown, options: FindOptions]) => {
          const cursor = called.apply(target, args) as { toArray(): Promise<unknown> };
          // Only reads of changes are sorted, and those of deliveries' leads are not.
          return args[1].sort ? cursor : { toArray: () => interrupt().then(() => cursor.toArray()) };
        };
      },
    });
    const slow = storeOn({ ...connection, [collection]: interrupted });
    await other.putStudio(aStudio(), BY);
    const { number } = await createdConsumer(other);
    const received = new Map<string, unknown>();
    const listed = async (store: Pick<Store, 'listDeliveries'>) => {
      const { changes = [] } = (await store.listDeliveries(number, 10)) ?? {};
      for (const { lead, revision, kinds } of changes) {
        const key = `${lead.id} ${revision}`;
        expect({ lead, kinds }).toEqual(received.get(key) ?? { lead, kinds });
        received.set(key, { lead, kinds });
      }
      return changes;
    };
    const acknowledged = async () => other.acknowledgeDeliveries(number, (await listed(other)).map(toAcknowledgement));
    const lead = aLead();
    await other.createLead(lead, keysFor(lead));
    if (method !== 'insertMany') await listed(other);
    const change = (seconds: number) =>
      correctLead(other, lead, { note: `${seconds}` }, { now: plus(lead.createdAt, 1000 * seconds) });
    if (method === 'bulkWrite') await change(1);
    meanwhile = method === 'find' ? () => change(2).then(() => other.measureDeliveries(number, 10)) : acknowledged;

    await listed(slow);
    expect(meanwhile).toBeUndefined();
    expect((await listed(other)).map(({ kinds }) => kinds.length)).toEqual(method === 'find' ? [2] : []);
    await acknowledged();
    expect(await listed(other)).toEqual([]);
  });

  describe('while leads are deleted', () => {
    let at: Date;
    let other: Store;
    let connection: Awaited<ReturnType<typeof connect>>;
    beforeEach(async () => {
      at = plus(new Date(), 60_000);
      const database = aDatabase();
      other = await database.open();
      connection = await connect(toUrl(name));
      for (const isTest of [false, true]) await other.putStudio(aStudio({ id: createStudio(isTest), isTest }), BY);
      return async () => {
        await connection.close();
        await database.dispose();
      };
    });
    const createStudio = (isTest: boolean) => (isTest ? 'trial' : STUDIO_ID);

    /** A store that calls `before`, which may throw, with the number of each of its commands. */
    function interrupted(before: (command: number) => Promise<unknown>): Omit<Store, 'check' | 'close'> {
      let commands = 0;
      const next = () => before(++commands);
      const watched = <Documents extends object>(collection: Documents): Documents =>
        new Proxy(collection, {
          get(target, property) {
            const method = Reflect.get(target, property) as (...args: unknown[]) => { toArray(): unknown };
            if (property === 'find')
              return (...args: unknown[]) => {
                const cursor = method.apply(target, args);
                const toArray = cursor.toArray.bind(cursor);
                return Object.assign(cursor, { toArray: () => next().then(toArray) });
              };
            if (!['findOne', 'updateOne', 'deleteMany'].includes(String(property))) return method;
            return async (...args: unknown[]) => next().then(() => method.apply(target, args));
          },
        });
      const { leads, deliveries, feed, studios, oldEvents } = connection;
      const each = { leads, deliveries, feed, studios, oldEvents };
      const all = Object.entries(each).map(([key, collection]) => [key, watched(collection)]);
      return storeOn({ ...connection, ...Object.fromEntries(all) });
    }

    /** Creates a lead with enough events to move some out of its history; erases it unless it is in the test studio. */
    async function aLeadWithOldEvents(isTest: boolean): Promise<Lead> {
      const lead = aLead({ studioId: createStudio(isTest) });
      await other.createLead(lead, keysFor(lead));
      const _id = leadKey(lead.studioId, lead.id);
      const entry = { action: 'leads-resent', memberId: null, time: NOW } as const;
      const leads = client.db().collection<LeadDocument>('leads');
      await leads.updateOne({ _id }, { $set: { history: times(1100, () => entry) } });
      await moveLead(other, lead, 'won', BY);
      if (!isTest) await other.eraseLead({ studioId: lead.studioId, leadId: lead.id, memberId: null, now: at });
      return lead;
    }
    async function listEvents({ id }: Lead): Promise<number> {
      const range = { start: new Date(0), end: plus(at, 1) };
      let events = 0;
      for (let after: string | null = null; ; ) {
        const part: AuditPart = await other.walkAuditEvents(range, after);
        events += part.events.filter(({ leadId }) => leadId === id).length;
        if (part.next === null) return events;
        after = part.next;
      }
    }
    const oldEvents = () => client.db().collection('oldEvents').countDocuments();
    const deletion = (store: Pick<Store, 'deleteLeads' | 'deleteErasedLeads'>, { studioId, id }: Lead) =>
      studioId === STUDIO_ID ? store.deleteErasedLeads(studioId, [id], at) : store.deleteLeads(studioId, 10, BY);

    // @proves erasure-17
    test('an erased lead is never deleted before every consumer saw it, under any interleaving', async () => {
      await other.createConsumer(aConsumer(), BY);
      const rivals: ((lead: Lead) => Promise<unknown>)[] = [
        () => other.distributeLeadChanges(),
        ({ id }) => other.resendLeads({ studioId: STUDIO_ID, leadIds: [id] }, at),
      ];
      for (const rival of rivals) {
        for (let command = 1, hasActed = true; hasActed; command += 1) {
          const lead = aLead();
          await other.createLead(lead, keysFor(lead));
          await other.eraseLead({ studioId: STUDIO_ID, leadId: lead.id, memberId: null, now: at });
          hasActed = false;
          const store = interrupted(async (each) => {
            if (each !== command) return;
            hasActed = true;
            await rival(lead);
          });
          expect(await deletion(store, lead), `${rival}, before command ${command}`).toBe(0);
          expect(await other.presenceOfLead(STUDIO_ID, lead.id)).toBe('erased');
        }
      }
    });

    // @proves audit-5 erasure-17
    test.each(extent === 'readable' ? [false] : [false, true])(
      'a deletion that dies midway loses no event of a surviving lead, and the next cleans up: %s',
      async (isTest) => {
        for (let command = 1, hasDied = true; hasDied; command += process.env.SOAK ? 1 : 2) {
          const lead = await aLeadWithOldEvents(isTest);
          const events = await listEvents(lead);
          hasDied = false;
          const store = interrupted(async (each) => {
            hasDied ||= each >= command;
            if (hasDied) throw new MongoServerError({ message: 'died', code: 13 });
          });
          await deletion(store, lead).catch((error) => expect(error).toBeInstanceOf(StoreUnavailable));
          const isThere = (await other.presenceOfLead(lead.studioId, lead.id)) !== null;
          if (isThere) expect(await listEvents(lead), `before command ${command}`).toBe(events);
          const another = await aLeadWithOldEvents(!isTest);
          await deletion(other, another);
          expect(await oldEvents(), `before command ${command}`).toBe(isThere ? 1 : 0);
          if (isThere) await deletion(other, lead);
          expect(await oldEvents()).toBe(0);
        }
      },
    );
  });

  // A core may add a delivery of a lead that another core is deleting.
  test('a delivery whose lead is gone disappears with the next poll', async () => {
    const { open, dispose } = aDatabase();
    onTestFinished(dispose);
    const store = await open();
    await store.putStudio(aStudio(), BY);
    await store.createConsumer(aConsumer(), BY);
    const lead = aLead();
    await store.createLead(lead, keysFor(lead));
    expect((await store.listDeliveries(1, 10))?.changes).toHaveLength(1);
    await client.db().collection('leads').deleteMany();
    expect((await store.listDeliveries(1, 10))?.changes).toEqual([]);
    expect(await store.measureDeliveries(1, 10)).toMatchObject({ waiting: { leads: 0, since: null } });
  });

  test('an erased document has no personal data', async () => {
    const { open, dispose } = aDatabase();
    onTestFinished(dispose);
    const store = await open();
    await store.putStudio(aStudio(), BY);
    const lead = aLead({ displayName: 'Ada Lovelace', note: 'Calls back.', sourceId: randomUUID() });
    const keys = keysFor(lead);
    await store.createLead(lead, keys);
    const { studioId, id: leadId, contact } = lead;
    await correctLead(store, lead, { displayName: 'Ada King' });
    await store.eraseLead({ studioId, leadId, memberId: null, now: new Date() });

    const document = JSON.stringify(await client.db().collection('leads').findOne({}));
    const personal = ['Ada', 'Calls', contact.value, lead.sourceId, keys.fingerprint.sha256, ...keys.contactKeys];
    for (const text of personal) expect(document).not.toContain(text);
    expect(document).toContain(leadId);
    expect(document).toContain(keys.idempotencyKey);
  });

  // @proves leads-1 mongodb-14
  storeContract('MongoDB', DAMAGES, openContractStore, extent);
}
