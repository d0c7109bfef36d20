import { randomUUID } from 'node:crypto';
import { type CommandStartedEvent, type Document, MongoClient, type Sort } from 'mongodb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '../../src/domain/new-id.ts';
import { causalSessions } from '../../src/store/mongo/client.ts';
import { collectionsOf } from '../../src/store/mongo/collections.ts';
import type { Connection } from '../../src/store/mongo/connection.ts';
import { apiKeyDocument, type HistoryEntry, leadDocument } from '../../src/store/mongo/documents.ts';
import { createIndex, INDEXES } from '../../src/store/mongo/indexes.ts';
import { storeOn } from '../../src/store/mongo/mongo-store.ts';
import type { Store } from '../../src/store/store.ts';
import {
  aLead,
  aLeadSource,
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
import { describeWithMongo } from '../support/mongodb.ts';

/** Enough that a scan of a collection, or of one studio, shows in the plan. */
const STUDIOS = 100;
const BUSY_STUDIOS = 4;
const LEADS_PER_BUSY_STUDIO = 1000;
const LIVE_KEYS = 10;
const REVOKED_KEYS = 10;

/** A studio whose leads are all older than those of the others, so that a scan from the newest lead reaches them last. */
const QUIET_STUDIO_ID = 'studio-50';
const QUIET_LEADS = 50;

/** The usual page size. One more lead is read, to know whether another page follows. */
const PAGE = 25;

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

  const database = () => client.db();
  const lead = aLead();
  const claims = claimsOf(lead);
  const closedLead = aLead({ stage: 'lost' });
  const closedClaims = claimsOf(closedLead);
  const openLead = aLead();
  const key = anApiKey();
  const history: HistoryEntry[] = [{ action: 'lead-stage-changed', memberId: null, time: NOW, from: 'new', to: 'won' }];
  const studioOf = (index: number) => (index === 0 ? STUDIO_ID : `studio-${index + 1}`);

  beforeAll(async () => {
    client = new MongoClient(new URL(`/test-${randomUUID()}`, mongoUrl()).href, { monitorCommands: true });
    sent = [];
    received = [];
    client.on('commandStarted', (event) => sent.push(...queriesOf(event)));
    client.on('commandSucceeded', ({ reply }) => received.push(...((reply as Document).cursor?.firstBatch ?? [])));
    for (const index of INDEXES) await createIndex(database(), index);
    const collections = collectionsOf(database(), causalSessions(client, database()).run);
    const { leads, apiKeys } = collections;
    const connection: Connection = {
      ...collections,
      indexes: { expectValid: async () => {} },
      call: (body) => body(new AbortController().signal),
      check: async () => {},
      close: async () => {},
    };
    store = storeOn(connection);

    for (const studio of times(STUDIOS, (index) => aStudio({ id: studioOf(index) }))) await store.putStudio(studio, BY);
    await store.putMember(aMember(), BY);
    const early = times(QUIET_LEADS, () => aLead({ studioId: QUIET_STUDIO_ID }));
    await leads.insertMany(early.map((each) => leadDocument(each, claimsOf(each))));
    // The leads of the busy studios are interleaved.
    for (let batch = 0; batch < LEADS_PER_BUSY_STUDIO; batch += 250) {
      const documents = times(250 * BUSY_STUDIOS, (index) => {
        const each = aLead({ studioId: studioOf(index % BUSY_STUDIOS) });
        return leadDocument(each, claimsOf(each));
      });
      await leads.insertMany(documents, { ordered: false });
    }
    await leads.insertMany([
      { ...leadDocument(lead, claims), history },
      { ...leadDocument(closedLead, closedClaims), history },
      { ...leadDocument(openLead, claimsOf(openLead)), history },
    ]);
    const keys = times(STUDIOS * (LIVE_KEYS + REVOKED_KEYS), (index) => {
      const each = index === 0 ? key : anApiKey({ studioId: studioOf(index % STUDIOS) });
      const slot = Math.floor(index / STUDIOS);
      const document = apiKeyDocument(
        slot < LIVE_KEYS ? each : { ...each, revokedAt: NOW },
        slot < LIVE_KEYS ? `${slot}` : each.id,
      );
      return { ...document, history };
    });
    await apiKeys.insertMany(keys, { ordered: false });
  });
  afterAll(async () => {
    await database().dropDatabase();
    await client.close();
  });

  /** Returns the plans of all queries of a call, in the order in which they were sent. */
  async function plansOf(call: () => Promise<unknown>): Promise<Plan[]> {
    sent = [];
    await call();
    const plans: Plan[] = [];
    for (const { collection: find, ...query } of [...sent]) {
      const command = { explain: { find, ...withoutAbsent(query) }, verbosity: 'executionStats' };
      plans.push(planOf(await database().command(command)));
    }
    return plans;
  }

  const { studioId, id: leadId, contact } = lead;
  const keyId = key.id;
  const correction = { studioId, claims, expectedUpdatedAt: null, memberId: null, now: NOW };
  /** Calls of all methods, with the index that each query must use and how much it may examine. */
  const calls: Record<string, { call: () => Promise<unknown>; by: string[]; atMost: number }> = {
    'a replay': {
      call: () => store.createLead(aLead({ contact }), claims),
      by: ['idempotencyKey'],
      atMost: 1,
    },
    'concurrent replays in several studios': {
      call: async () => {
        const create = (studioId: string) => store.createLead(aLead({ studioId, contact }), claims);
        const createInBoth = () => Promise.all([studioId, studioOf(1)].map(create));
        await createInBoth();
        sent = [];
        return createInBoth();
      },
      by: ['idempotencyKey'],
      atMost: 4,
    },
    'a creation for a contact with an open lead': {
      call: () => store.createLead(aLead({ contact }), claimsOf(lead)),
      by: ['idempotencyKey', 'openContact', 'idempotencyKey'],
      atMost: 1,
    },
    'a lead by its idempotency key': {
      call: () => store.findLeadByIdempotencyKey(studioId, claims.idempotencyKey),
      by: ['idempotencyKey'],
      atMost: 1,
    },
    'whether a change was applied to a lead': {
      call: () => store.isLeadChangeApplied(studioId, leadId, newId()),
      by: ['_id_'],
      atMost: 1,
    },
    'a lead by its id': { call: () => store.findLead(studioId, leadId), by: ['_id_'], atMost: 1 },
    'whether a lead is present': { call: () => store.presenceOfLead(studioId, leadId), by: ['_id_'], atMost: 1 },
    "another studio's lead by its id": { call: () => store.findLead('studio-2', leadId), by: ['_id_'], atMost: 1 },
    'the first page': { call: () => store.listLeads(studioId, null, PAGE), by: ['_id_'], atMost: PAGE + 2 },
    'the leads of a contact, open and closed': {
      call: () => store.findLeadsOfContact(studioId, [...claims.contactKeys, ...closedClaims.contactKeys]),
      by: ['openContact'],
      atMost: 4,
    },
    'a later page': {
      call: async () => {
        const seen = await store.listLeads(studioId, null, LEADS_PER_BUSY_STUDIO / 2);
        sent = [];
        return store.listLeads(studioId, seen.records.at(-1)?.id ?? null, PAGE);
      },
      by: ['_id_'],
      atMost: PAGE + 2,
    },
    'the first page of a walk': { call: () => store.walkLeads(studioId, null, PAGE), by: ['_id_'], atMost: PAGE + 2 },
    'a later page of a walk': {
      call: () => store.walkLeads(studioId, leadId, PAGE),
      by: ['_id_'],
      atMost: PAGE + 2,
    },
    'the first page of a studio with old leads only': {
      call: () => store.listLeads(QUIET_STUDIO_ID, null, PAGE),
      by: ['_id_'],
      atMost: PAGE + 2,
    },
    'a change of stage': {
      call: () =>
        store.changeLeadStage({
          studioId,
          leadId,
          stage: 'contacted',
          claims,
          memberId: null,
          now: NOW,
        }),
      by: ['_id_', '_id_'],
      atMost: 1,
    },
    'a change of stage that another open lead forbids': {
      call: () =>
        store.changeLeadStage({
          studioId,
          leadId: closedLead.id,
          stage: 'new',
          claims: { ...claims, contact: closedLead.contact },
          memberId: null,
          now: NOW,
        }),
      by: ['_id_', '_id_', 'openContact'],
      atMost: 1,
    },
    'a correction': {
      call: () => store.updateLead({ ...correction, leadId, correction: { note: newId() } }),
      by: ['_id_', '_id_'],
      atMost: 1,
    },
    'a correction that another open lead forbids': {
      call: () => store.updateLead({ ...correction, leadId: openLead.id, correction: { contact } }),
      by: ['_id_', '_id_', 'openContact'],
      atMost: 1,
    },
    "a key's creation": {
      call: () => store.createApiKey(anApiKey(), NOW),
      by: ['slot'],
      // One index entry for each slot, and one for the end.
      atMost: 50,
    },
    'the live keys of a studio': {
      call: () => store.listLiveApiKeys(studioId),
      by: ['slot'],
      // One index entry for each slot, and one for the end.
      atMost: 50,
    },
    'the newest of the other keys of a studio': {
      call: () => store.listFormerApiKeys(studioId, null, PAGE),
      by: ['slot'],
      atMost: PAGE + LIVE_KEYS + 2,
    },
    'later ones of the other keys of a studio': {
      call: () => store.listFormerApiKeys(studioId, keyId, PAGE),
      by: ['slot'],
      atMost: PAGE + LIVE_KEYS + 2,
    },
    "a key's replacement": {
      call: () =>
        store.replaceApiKey({
          studioId,
          keyId,
          memberId: 'member-1',
          secretSha256: aSecretHash(),
          secretHint: 'zzzz',
          expiresAt: null,
          now: NOW,
        }),
      by: ['_id_', '_id_|secret'],
      atMost: 1,
    },
    'a key by the hash of its secret': {
      call: async () => store.findCredential((await store.listLiveApiKeys(studioId))[0]?.secretSha256 ?? aSecretHash()),
      by: ['slot', 'secret', '_id_'],
      atMost: 50,
    },
    "a key's revocation": { call: () => store.revokeApiKey(studioId, keyId, BY), by: ['_id_', '_id_'], atMost: 1 },
    "a key's quota": {
      call: () => store.putApiKeyQuota(studioId, keyId, 5, BY),
      by: ['_id_', '_id_'],
      atMost: 1,
    },
    "a key's use": {
      call: () => store.recordApiKeyUse({ studioId, keyId, now: NOW, unlessSince: NOW }),
      by: ['_id_'],
      atMost: 1,
    },
    'the audit events of a lead': { call: () => store.listAuditEvents(studioId, leadId), by: ['_id_'], atMost: 1 },
    'the audit events of a studio and its keys': {
      call: () => store.listAuditEvents(studioId, null),
      by: ['_id_', 'slot'],
      atMost: LIVE_KEYS + REVOKED_KEYS + 2,
    },
    'the change feed': { call: () => store.listLeadChanges(PAGE), by: ['changedSince'], atMost: PAGE + 2 },
    'the length of the change feed': {
      call: () => store.measureLeadChanges(PAGE),
      by: ['changedSince'],
      atMost: PAGE + 2,
    },
    'an acknowledgement of changes': {
      call: () => store.acknowledgeLeadChanges([{ studioId, leadId, revision: 0 }]),
      by: ['_id_'],
      atMost: 1,
    },
    'resending leads': {
      call: () => store.resendLeads(studioId, leadId, 1, NOW),
      by: ['_id_', '_id_'],
      atMost: 2,
    },
    'erasing a lead': {
      call: () => store.eraseLead({ studioId, leadId: newId(), memberId: null, now: NOW }),
      by: ['_id_'],
      atMost: 1,
    },
    'erased leads': {
      call: () => store.walkErasedLeads(studioId, leadId, PAGE),
      by: ['_id_'],
      atMost: PAGE + 2,
    },
    'putting a studio': { call: () => store.putStudio(aStudio(), BY), by: ['_id_', '_id_'], atMost: 1 },
    'concurrent reads of leads by id, in several studios': {
      call: () =>
        Promise.all([lead.id, closedLead.id, newId()].map((id, index) => store.findLead(studioOf(index), id))),
      by: ['_id_'],
      atMost: 6,
    },
    'concurrent reads of keys by the hashes of their secrets': {
      call: () => Promise.all(times(3, () => store.findCredential(aSecretHash()))),
      by: ['secret'],
      atMost: 6,
    },
    'concurrent reads of several studios': {
      call: () => Promise.all(times(3, (index) => store.findLeadSource(studioOf(index), newId()))),
      by: ['_id_'],
      atMost: 6,
    },
    'the first page of studios': { call: () => store.listStudios(null, PAGE), by: ['_id_'], atMost: PAGE + 2 },
    'a later page of studios': { call: () => store.listStudios('studio-50', PAGE), by: ['_id_'], atMost: PAGE + 2 },
    'a studio': { call: () => store.findStudio(studioId), by: ['_id_'], atMost: 1 },
    'putting a member': { call: () => store.putMember(aMember(), BY), by: ['_id_', '_id_'], atMost: 1 },
    'a member': { call: () => store.findMember(studioId, 'member-1'), by: ['_id_'], atMost: 1 },
    'removing a member': { call: () => store.removeMember(studioId, 'member-1', BY), by: ['_id_', '_id_'], atMost: 1 },
    'removing a source': { call: () => store.removeLeadSource(studioId, newId()), by: ['_id_'], atMost: 1 },
    'putting a source': { call: () => store.putLeadSource(aLeadSource()), by: ['_id_', '_id_', '_id_'], atMost: 1 },
    'a source': { call: () => store.findLeadSource(studioId, newId()), by: ['_id_'], atMost: 1 },
    'the sources': { call: () => store.listLeadSources(studioId, null, PAGE), by: ['_id_'], atMost: 1 },
  };

  // @proves mongodb-21
  test.for(Object.entries(calls))('%s uses an index', async ([, { call, by, atMost }]) => {
    const plans = await plansOf(call);
    // The name matters: another index that starts with the studio would need a scan of the whole studio.
    const expected = by.map((name) => ({ scans: false, indexes: [expect.stringMatching(`^(?:${name})$`)] }));
    expect(plans).toMatchObject(expected);
    for (const { examined } of plans) expect(examined ?? 0).toBeLessThanOrEqual(atMost);
  });

  const others = Object.entries(calls).filter(([, { call }]) => !call.toString().includes('listAuditEvents'));
  // @proves limits-10
  test('only reads of audit events fetch the history', async () => {
    for (const [name, { call }] of others) {
      received = [];
      await call();
      const withHistory = received.filter((document) => 'history' in document).length;
      expect({ name, withHistory }).toEqual({ name, withHistory: 0 });
    }
    received = [];
    await store.listAuditEvents(studioId, leadId);
    expect(received.some((document) => 'history' in document)).toBe(true);
  });

  const pages = Object.entries(calls).filter(([name]) => name.includes('page'));
  // @proves mongodb-20
  test.for(pages)('%s is read in order, without a sort', async ([, { call }]) => {
    expect(await plansOf(call)).toMatchObject([{ sorts: false }]);
  });

  test('this suite covers every method of the store', () => {
    const called = Object.values(calls).flatMap(({ call }) =>
      [...call.toString().matchAll(/store\.(\w+)/g)].map(([, method]) => method),
    );
    expect(new Set(called)).toEqual(new Set(Object.keys(store)));
  });

  test('a query without an index is recognised', async () => {
    const leads = database().collection('leads');
    expect(await plansOf(() => leads.findOne({ displayName: 'Ada' }))).toMatchObject([{ scans: true }]);
    const sorted = leads.find({ studioId }).sort({ displayName: 1 }).limit(PAGE);
    expect(await plansOf(() => sorted.toArray())).toMatchObject([{ scans: false, sorts: true }]);
  });
});

/** Returns the queries of a command. Of a write it is the search for its documents: some engines explain only that. */
function queriesOf({ commandName, command }: CommandStartedEvent): Query[] {
  const query = { collection: command[commandName], sort: undefined, limit: undefined };
  switch (commandName) {
    case 'find':
      return [{ ...query, filter: command.filter, sort: command.sort, limit: command.limit }];
    case 'update':
      return command.updates.map((update: Document) => ({ ...query, filter: update.q }));
    case 'findAndModify':
      return [{ ...query, filter: command.query }];
    default:
      return [];
  }
}

/** Reads the plan of MongoDB, or that of DocumentDB, which is PostgreSQL's. */
function planOf(explained: Document): Plan {
  const { winningPlan, Plan: postgresPlan } = explained.queryPlanner;
  const steps = stepsOf(winningPlan ?? postgresPlan);
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

/** DocumentDB can also scan an index of a whole collection; then its condition has only the collection. */
function isWholeCollection(step: Document): boolean {
  const condition: string | undefined = step['Index Cond'];
  return condition !== undefined && !/\b(?:document|object_id)\b/.test(condition);
}

/** Returns the steps of a plan, from the last to the first. Both engines nest them, under different names. */
function stepsOf(plan: Document): Document[] {
  const { queryPlan, inputStage, inputStages, Plans } = plan;
  const before: Document[] = [queryPlan, inputStage, inputStages, Plans].flat().filter(Boolean);
  return [plan, ...before.flatMap(stepsOf)];
}

function withoutAbsent(query: object): Document {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
}
