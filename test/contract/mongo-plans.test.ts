import { randomUUID } from 'node:crypto';
import { type CommandStartedEvent, type Document, MongoClient, type Sort, UUID } from 'mongodb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DEFAULT_CONSUMER } from '../../src/domain/consumer.ts';
import { newId } from '../../src/domain/new-id.ts';
import { expiredLeads } from '../../src/domain/retention.ts';
import { createCollections } from '../../src/store/mongo/collections.ts';
import type { Connection } from '../../src/store/mongo/connection.ts';
import { deliveryDocument } from '../../src/store/mongo/distribution.ts';
import { type ApiKeyDocument, apiKeyDocument, type DeliveryDocument } from '../../src/store/mongo/documents.ts';
import { type HistoryEntry, oldEventsId } from '../../src/store/mongo/history.ts';
import { createIndex, INDEXES } from '../../src/store/mongo/indexes.ts';
import { ACKNOWLEDGED, type LeadDocument, leadDocument } from '../../src/store/mongo/lead-documents.ts';
import { storeOn } from '../../src/store/mongo/mongo-store.ts';
import { leadKey } from '../../src/store/mongo/queries.ts';
import { causalSessions } from '../../src/store/mongo/reconnecting-client.ts';
import type { Store } from '../../src/store/store.ts';
import {
  aConsumer,
  aLead,
  aLoggedRequest,
  aMember,
  anApiKey,
  aSecretHash,
  aStudio,
  BY,
  keysFor,
  NOW,
  plus,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { testSize } from '../tools/test-size.ts';
import { aReplacement, moveLead, toAcknowledgement } from './store-actions.ts';

/** Enough records to show in the plan when it scans a collection or a studio. */
const STUDIOS = testSize('PLANNED_STUDIOS', { usual: 100, soak: 5000 });
const BUSY_STUDIOS = 4;
const LEADS_PER_BUSY_STUDIO = testSize('PLANNED_LEADS', { usual: 1000, soak: 250_000 });
const DELIVERED_LEADS = 1000;
const RECORDED = 200;
const STUDIOS_WITH_KEYS = 100;
const LIVE_KEYS = 10;
const REVOKED_KEYS = 10;

/** The usual page size. The store reads one more lead, which tells whether another page follows. */
const PAGE = 25;

/** The time between two changes of leads. */
const CHANGE_EVERY_MS = 60_000;
const HOUR_MS = 3_600_000;

const ANY_TIME = { start: null, end: null };
const ANY = { stages: [], sourceIds: [], created: ANY_TIME, updated: ANY_TIME };
const START = new Date();
const AN_HOUR = { start: plus(START, -2 * HOUR_MS), end: plus(START, -HOUR_MS) };

type PlannedStore = Omit<Store, 'check' | 'close'>;

/** A query of the adapter. */
interface Query {
  readonly collection: string;
  readonly filter: Document;
  readonly sort: Sort | undefined;
  readonly limit: number | undefined;
}

/** How the engine executes a query. */
interface Plan {
  readonly indexes: string[];
  /** Whether it scans the whole collection. */
  readonly scans: boolean;
  /** Whether it sorts its results, so that a page costs as much as all pages. */
  readonly sorts: boolean;
  /** The index entries or documents examined, whichever are more; only MongoDB reports it. */
  readonly examined: number | undefined;
}

describeWithMongo('MongoDB query plans', (mongoUrl) => {
  let client: MongoClient;
  let store: PlannedStore;
  let sent: Query[];
  let received: Document[];
  /** The highest number of updates in one command. */
  let mostUpdates = 0;

  const database = () => client.db();
  // Writes directly, because on a busy machine a thousand inserts may exceed the product's deadline.
  const leads = () => database().collection<LeadDocument>('leads');
  const lead = aLead();
  const leadKeys = keysFor(lead);
  const closedLead = aLead({ stage: 'lost' });
  const closedKeys = keysFor(closedLead);
  const openLead = aLead();
  const erasedLead = aLead({ studioId: 'studio-erased' });
  const key = anApiKey();
  const history: HistoryEntry[] = [{ action: 'lead-stage-changed', memberId: null, time: NOW, from: 'new', to: 'won' }];
  const findStudio = (index: number) => (index === 0 ? STUDIO_ID : `studio-${index + 1}`);

  beforeAll(async () => {
    client = new MongoClient(new URL(`/test-${randomUUID()}`, mongoUrl()).href, { monitorCommands: true });
    sent = [];
    received = [];
    client.on('commandStarted', (event) => sent.push(...listQueries(event)));
    client.on('commandStarted', ({ command }) => {
      mostUpdates = Math.max(mostUpdates, command.updates?.length ?? 0);
    });
    client.on('commandSucceeded', ({ reply }) => received.push(...((reply as Document).cursor?.firstBatch ?? [])));
    for (const index of INDEXES) await createIndex(database(), index);
    const collections = createCollections(database(), causalSessions(client, database()).run);
    const connection: Connection = {
      ...collections,
      indexes: { expectValid: async () => {} },
      report: () => {},
      call: (body) => body(new AbortController().signal),
    };
    store = storeOn(connection);

    for (const studio of times(STUDIOS, (index) => aStudio({ id: findStudio(index) })))
      await store.putStudio(studio, BY);
    await store.putMember(aMember(), BY);
    // The leads of the busy studios are interleaved.
    for (let batch = 0; batch < LEADS_PER_BUSY_STUDIO; batch += 250) {
      const documents = times(250 * BUSY_STUDIOS, (index) => {
        const each = aLead({ studioId: findStudio(index % BUSY_STUDIOS) });
        const updatedAt = plus(START, -(batch * BUSY_STUDIOS + index) * CHANGE_EVERY_MS);
        return { ...leadDocument(each, keysFor(each)), updatedAt, changes: { since: ACKNOWLEDGED } };
      });
      await leads().insertMany(documents, { ordered: false });
    }
    await leads().insertMany([
      { ...leadDocument(lead, leadKeys), history },
      { ...leadDocument(closedLead, closedKeys), history },
      { ...leadDocument(openLead, keysFor(openLead)), history },
      { ...leadDocument(erasedLead, keysFor(erasedLead)), erasedAt: NOW },
    ]);
    await collections.oldEvents.insertOne({ _id: oldEventsId('leads', leadKey(STUDIO_ID, lead.id), 0), history });
    const keys = times(STUDIOS_WITH_KEYS * (LIVE_KEYS + REVOKED_KEYS), (index) => {
      const each = index === 0 ? key : anApiKey({ studioId: findStudio(index % STUDIOS_WITH_KEYS) });
      const slot = Math.floor(index / STUDIOS_WITH_KEYS);
      const document = apiKeyDocument(
        slot < LIVE_KEYS ? each : { ...each, revokedAt: NOW },
        slot < LIVE_KEYS ? `${slot}` : each.id,
      );
      return { ...document, history };
    });
    await database().collection<ApiKeyDocument>('apiKeys').insertMany(keys, { ordered: false });
    await store.createConsumer(aConsumer(), BY);
    await store.removeConsumer(1, BY);
    const delivery = { revision: 1, since: NOW, kinds: {} };
    const delivered = times(2 * DELIVERED_LEADS, (index) =>
      deliveryDocument(
        1 + (index % 2),
        { studioId: STUDIO_ID, id: new UUID(newId()) },
        { ...delivery, since: plus(NOW, index) },
      ),
    );
    await database().collection<DeliveryDocument>('deliveries').insertMany(delivered, { ordered: false });
    await store.recordRequests(
      times(BUSY_STUDIOS * RECORDED, (index) => aLoggedRequest({ studioId: findStudio(index % BUSY_STUDIOS) })),
    );
    // A million leads take ten minutes on FerretDB.
  }, 3_600_000);
  afterAll(async () => {
    await database().dropDatabase();
    await client.close();
  });

  /** Returns the plans of all queries of a call, in the order in which they were sent. */
  async function explain(call: () => Promise<unknown>): Promise<Plan[]> {
    sent = [];
    await call();
    const plans: Plan[] = [];
    for (const { collection: find, ...query } of [...sent]) {
      const command = { explain: { find, ...withoutAbsent(query) }, verbosity: 'executionStats' };
      plans.push(findPlan(await database().command(command)));
    }
    return plans;
  }

  const { studioId, id: leadId, contact } = lead;
  /** Calls that send each shape of query, with the index that each query must use and how much it may examine. */
  const calls: Record<string, readonly [by: string[], atMost: number, call: () => Promise<unknown>]> = {
    'a creation for a contact with an open lead': [
      ['idempotencyKey', 'openContact', 'idempotencyKey'],
      1,
      () => store.createLead(aLead({ contact }), keysFor(lead)),
    ],
    'the recorded requests of a studio': [['_id_'], PAGE + 2, () => store.listRequests(studioId, null, PAGE)],
    'deleting old recorded requests': [
      // Finds the oldest one to keep, and deletes those before it.
      ['_id_', '_id_'],
      RECORDED / 2 + 2,
      () => store.removeRequests(studioId, { since: newId(), newest: RECORDED / 2 }),
    ],
    'the first page': [['_id_'], PAGE + 2, () => store.listLeads(studioId, null, PAGE)],
    'the leads of a contact, open and closed': [
      ['openContact'],
      4,
      () => store.findLeadsOfContact(studioId, [...leadKeys.contactKeys, ...closedKeys.contactKeys]),
    ],
    'a later page': [
      ['_id_'],
      PAGE + 2,
      async () => {
        const seen = await store.listLeads(studioId, null, 500);
        sent = [];
        return store.listLeads(studioId, seen.records.at(-1)?.id ?? null, PAGE);
      },
    ],
    'the leads of a stage that changed last': [
      times(7, () => 'stage'),
      PAGE + 2,
      () => store.listLeads(studioId, null, PAGE, { ...ANY, stages: ['lost'] }),
    ],
    'the leads of a frequent stage that changed last': [
      times(3, () => 'stage'),
      HOUR_MS / CHANGE_EVERY_MS,
      () => store.listLeads(studioId, null, PAGE / 5, { ...ANY, stages: ['new'] }),
    ],
    'the leads past their retention': [
      times(7, () => 'stage'),
      PAGE + 2,
      () => store.walkLeads(studioId, null, PAGE, expiredLeads(30, new Date())),
    ],
    'the first page of an hour of creations': [
      ['_id_'],
      PAGE + 2,
      () => store.listLeads(studioId, null, PAGE, { ...ANY, created: { start: NOW, end: new Date() } }),
    ],
    'a part of a count of leads': [['_id_'], PAGE, () => store.listLeadsToCount(studioId, null, PAGE)],
    'a change of stage that another open lead forbids': [
      ['_id_', '_id_', 'openContact'],
      1,
      () => moveLead(store as Store, closedLead, 'new', { keys: { ...leadKeys, contact: closedLead.contact } }),
    ],
    "a key's creation": [['slot'], 50, () => store.createApiKey(anApiKey(), NOW)],
    'the newest of the other keys of a studio': [
      ['slot'],
      PAGE + LIVE_KEYS + 2,
      () => store.listFormerApiKeys(studioId, null, PAGE),
    ],
    "a key's replacement": [['_id_', '_id_|secret'], 1, () => store.replaceApiKey(aReplacement(key))],
    'the audit events of a lead': [['_id_'], 1, () => store.listAuditEvents(studioId, leadId)],
    'the audit events of a studio and its keys': [
      ['_id_', 'slot'],
      LIVE_KEYS + REVOKED_KEYS + 2,
      () => store.listAuditEvents(studioId, null),
    ],
    'the change feed': [
      ['changedSince', '_id_', 'consumer', '_id_'],
      PAGE + 2,
      () => store.listDeliveries(DEFAULT_CONSUMER.number, PAGE),
    ],
    'resending leads': [['_id_', '_id_'], 2, () => store.resendLeads({ studioId, after: leadId, limit: 1 }, NOW)],
    'the backlog of a named consumer': [
      ['changedSince', '_id_', 'consumer', 'consumer'],
      PAGE,
      () => store.measureDeliveries(1, PAGE),
    ],
    'an acknowledgement of a named consumer': [
      ['_id_', 'consumer', '_id_', '_id_'],
      2,
      () => store.acknowledgeDeliveries(1, [{ studioId, leadId, revision: 1 }]),
    ],
    'setting deliveries aside and taking them back': [
      ['_id_', '_id_', '_id_', '_id_'],
      2,
      async () => {
        const aside = [{ studioId, leadId, revision: 1, reason: 'ANY', retryAt: null }];
        await store.setAsideDeliveries(1, aside, NOW);
        await store.takeBackDeliveries(1, aside);
      },
    ],
    'returning deferred deliveries': [['consumer'], 0, () => store.returnDeferredDeliveries(1, NOW)],
    'the deliveries set aside': [['consumer'], 0, () => store.listDeliveriesSetAside(1, null, PAGE)],
    'deleting erased leads': [
      times(6, () => '_id_'),
      2,
      () => store.deleteErasedLeads(erasedLead.studioId, [erasedLead.id, newId()], NOW),
    ],
    'concurrent reads of leads by id, in several studios': [
      ['_id_'],
      6,
      () => Promise.all([lead.id, closedLead.id, newId()].map((id, index) => store.findLead(findStudio(index), id))),
    ],
    'concurrent reads of keys by the hashes of their secrets': [
      ['secret'],
      6,
      () => Promise.all(times(3, () => store.findCredential(aSecretHash()))),
    ],
    'a later page of studios': [['_id_'], PAGE + 2, () => store.listStudios('studio-50', PAGE)],
  };

  // @proves audit-5 mongodb-20 mongodb-21 leads-34
  test.for(Object.entries(calls))(
    '%s uses an index, sorts no pages, and fetches the history only for audit events',
    async ([name, [by, atMost, call]]) => {
      // Otherwise the call would also distribute the changes of earlier calls.
      while (!(await store.distributeLeadChanges()));
      received = [];
      const plans = await explain(call);
      expect(received.some((document) => 'history' in document)).toBe(name.startsWith('the audit events'));
      if (name.includes('page')) expect(plans).toMatchObject([{ sorts: false }]);
      // The name matters: another index that starts with the studio would need a scan of the whole studio.
      const expected = by.map((name) => ({ scans: false, indexes: [expect.stringMatching(`^(?:${name})$`)] }));
      expect(plans).toMatchObject(expected);
      for (const { examined } of plans) expect(examined ?? 0).toBeLessThanOrEqual(atMost);
    },
  );

  // Some engines sort everything that a query matches.
  // @proves leads-34
  test('after an import, only the first query for pages of changes matches most of its leads', async () => {
    const [dense, count] = ['studio-dense', 4000];
    const documents = times(count, (index) => {
      const each = aLead({ studioId: dense, stage: 'contacted' });
      return { ...leadDocument(each, keysFor(each)), updatedAt: plus(START, index - 2 * HOUR_MS) };
    });
    await leads().insertMany(documents, { ordered: false });

    const rare = { ...ANY, sourceIds: [newId()] };
    for (const [read, filter] of [
      ['listLeads', { ...ANY, stages: ['contacted'] }],
      ['walkLeads', { ...ANY, updated: AN_HOUR }],
      ['listLeads', { ...rare, stages: ['contacted'] }],
      ['walkLeads', { ...rare, updated: AN_HOUR }],
    ] as const) {
      sent = [];
      const { next } = await store[read](dense, null, PAGE, filter);
      if (next) await store[read](dense, next, PAGE, filter);
      const queries = [...sent];
      const matches = await Promise.all(queries.map((query) => leads().countDocuments(query.filter)));
      // Later queries start where the first one found the leads.
      const [, second = 0] = matches.toSorted((one, other) => other - one);
      expect(second, JSON.stringify(filter)).toBeLessThanOrEqual(count / 2);
      expect(queries.length).toBeLessThanOrEqual(30);
    }
  });

  // @proves crashes-30
  test('no command has more than a hundred updates, however many leads wait', async () => {
    const [busy, count] = ['studio-of-many', 600];
    const made = times(count, () => aLead({ studioId: busy }));
    await leads().insertMany(made.map((each) => leadDocument(each, keysFor(each))));
    const { number } = DEFAULT_CONSUMER;
    const listWaiting = async () => (await store.listDeliveries(number, 500))?.changes.map(toAcknowledgement) ?? [];
    mostUpdates = 0;

    while (!(await store.distributeLeadChanges()));
    const aside = (await listWaiting()).map((each) => ({ ...each, reason: 'LATER', retryAt: null }));
    expect(await store.setAsideDeliveries(number, aside, NOW)).toMatchObject({ applied: 500 });
    await store.takeBackDeliveries(number, aside);
    expect(await store.resendLeads({ studioId: busy, after: leadId, limit: 500 }, NOW)).toMatchObject({ leads: 500 });
    while (!(await store.distributeLeadChanges()));
    expect(await store.acknowledgeDeliveries(number, await listWaiting())).toMatchObject({ applied: 500 });

    expect(mostUpdates).toBe(100);
  });
});

/** Returns the queries of a command; for a write its filters, because some engines explain only those. */
function listQueries({ commandName, command }: CommandStartedEvent): Query[] {
  const query = { collection: command[commandName], sort: undefined, limit: undefined };
  switch (commandName) {
    case 'find':
      return [{ ...query, filter: command.filter, sort: command.sort, limit: command.limit }];
    case 'update':
      return command.updates.map((update: Document) => ({ ...query, filter: update.q }));
    case 'delete':
      return command.deletes.map((removal: Document) => ({ ...query, filter: removal.q }));
    case 'findAndModify':
      return [{ ...query, filter: command.query }];
    default:
      return [];
  }
}

/** Reads the plan of MongoDB, or that of DocumentDB, which is PostgreSQL's. */
function findPlan(explained: Document): Plan {
  const { winningPlan, Plan: postgresPlan } = explained.queryPlanner;
  const steps = listSteps(winningPlan ?? postgresPlan);
  const names = steps.map((step) => step.stage ?? step['Node Type']);
  const stats = explained.executionStats;
  return {
    indexes: [
      ...new Set(
        steps.flatMap((step) => (step.stage === 'IDHACK' ? '_id_' : (step.indexName ?? step['Index Name'] ?? []))),
      ),
    ],
    scans: names.some((name) => name === 'COLLSCAN' || name === 'Seq Scan') || steps.some(isWholeCollection),
    sorts: names.some((name) => /^(?:SORT|Sort|Incremental Sort)$/.test(name)),
    examined: stats && Math.max(stats.totalKeysExamined, stats.totalDocsExamined),
  };
}

/** DocumentDB may scan the index of a whole collection; then its condition names only the collection. */
function isWholeCollection(step: Document): boolean {
  const condition: string | undefined = step['Index Cond'];
  return condition !== undefined && !/\b(?:document|object_id)\b/.test(condition);
}

/** Returns the steps of a plan, from the last to the first. Both engines nest them, under different names. */
function listSteps(plan: Document): Document[] {
  const { queryPlan, inputStage, inputStages, Plans } = plan;
  const before: Document[] = [queryPlan, inputStage, inputStages, Plans].flat().filter(Boolean);
  return [plan, ...before.flatMap(listSteps)];
}

function withoutAbsent(query: object): Document {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
}
