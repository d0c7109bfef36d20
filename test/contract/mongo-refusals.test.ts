import { BSON, type Document, Long } from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { apiKeyDocument } from '../../src/store/mongo/documents.ts';
import { leadDocument } from '../../src/store/mongo/lead-documents.ts';
import { openMongoStore } from '../../src/store/mongo/mongo-store.ts';
import { StoreUnavailable } from '../../src/store/port/faults.ts';
import type { Store } from '../../src/store/store.ts';
import { aConsumer, aLead, aStudio, BY, keysFor, NOW, STUDIO_ID, times } from '../support/builders.ts';
import { aStoreOnAFake, type FakeMongoDb, findName, PRIMARY, startFakeMongoDb } from '../support/fake-mongodb.ts';
import { key, lead, READS, source, WRITES } from './every-call.ts';

/** Errors that a retry cannot change, one of each kind. Some compatible servers send no name. */
const DEFINITE: Readonly<Record<string, number>> = {
  BadValue: 2,
  Unauthorized: 13,
  IllegalOperation: 20,
  UnsatisfiableWriteConcern: 100,
  AtlasError: 8000,
  BSONObjectTooLarge: 10334,
  // FerretDB: a document that is too large, and a full disk, of PostgreSQL.
  Location285999133: 285999133,
  Location4293: 4293,
};

/** Transient errors, and errors with an unknown outcome. After the first two the driver looks for a primary. */
const PASSING = [
  91, 10107, 6, 112, 11601,
  // FerretDB: a deadlock, a shutdown.
  16908292, 16908741,
];

/** The codes for a document that is too large. */
const TOO_LARGE = [10334, 285999133];

/** Codes that may concern only one document. */
const DOCUMENT_CODES = [2, ...TOO_LARGE];

/** Commands that read and write no documents. */
const ABOUT_SERVER = /^(?:ping|endSessions|listIndexes|createIndexes|killCursors)$/;

/** Methods that retry their writes. Some reads distribute, so they write, too. Callers retry the others within a minute. */
const REPEATED = [...WRITES, ...READS].filter(({ name }) => !/^(?:check|recordApiKeyUse|putRetentionTime)$/.test(name));

/** Personal data that no error may contain. */
const SECRET = 'Ada Lovelace';

/** More commands than any call needs, even if the driver repeats each of them. */
const MAX_COMMANDS = 60;

// @proves crashes-21 mongodb-12 mongodb-13
describe.each([
  { server: 'a single server', isReplicaSet: false, methods: ['createLead', 'changeLeadStage', 'putMember'] },
  // For a replica set, the driver retries some commands itself.
  {
    server: 'a replica set',
    isReplicaSet: true,
    methods: ['createLead', 'changeLeadStage', 'putStudio', 'resendLeads'],
  },
])('refusals by $server of MongoDB', ({ isReplicaSet, methods }) => {
  let fake: FakeMongoDb;
  let store: Store;
  /** The documents of each collection; every query returns all of them. */
  let documents: Readonly<Record<string, readonly Document[]>>;
  /** Replies instead of the server, unless it returns undefined. */
  let reply: (command: Document) => Document | undefined;

  beforeAll(async () => {
    fake = await startFakeMongoDb(isReplicaSet ? PRIMARY : { isWritablePrimary: true });
    fake.answer = (command) => {
      const own = ABOUT_SERVER.test(findName(command)) ? undefined : reply(command);
      if (own || findName(command) !== 'find') return own;
      const firstBatch = documents[command.find] ?? [];
      return { ok: 1, cursor: { id: Long.ZERO, ns: `${command.$db}.${command.find}`, firstBatch } };
    };
    documents = {};
    reply = () => undefined;
    store = await openMongoStore(`${fake.url}/fake${isReplicaSet ? '?replicaSet=rs0' : ''}`);
  });
  afterAll(async () => {
    await store?.close();
    await fake?.stop();
  });
  beforeEach(() => {
    documents = contents();
    reply = () => undefined;
    fake.commands.length = 0;
  });

  const contents = () => ({
    leads: [{ ...leadDocument(lead, keysFor(lead)), history: [] }],
    apiKeys: [{ ...apiKeyDocument(key, '0'), history: [] }],
    studios: [
      {
        _id: STUDIO_ID,
        status: 'active',
        regionCode: null,
        claimVersion: 2,
        renewal: null,
        members: { 'member-1': 'owner' },
        sources: { [source.id]: { name: 'Form', enabled: true } },
        history: [EVENT],
      },
    ],
  });
  const EVENT = { action: 'studio-status-changed', memberId: null, time: NOW, from: null, to: 'active' };

  const documentCommands = () => fake.commands.filter((command) => !ABOUT_SERVER.test(findName(command)));
  const sent = (name: string) => fake.commands.filter((command) => findName(command) === name);
  /** Fails the first command of this name with an error; later ones get the usual reply. */
  function failOnce(name: string, error: Document): void {
    let hasFailed = false;
    reply = (command) => {
      if (findName(command) !== name || hasFailed) return undefined;
      hasFailed = true;
      return error;
    };
  }

  const findOutcome = (call: (store: Store) => Promise<unknown>) =>
    call(store).then(
      () => 'done',
      (error: unknown) => error,
    );

  describe.each(methods)('%s', (method) => {
    const { call } = WRITES.find(({ name }) => name === method) as (typeof WRITES)[number];
    const write = method.startsWith('create') ? 'insert' : 'update';
    // Two methods try every error: one repeats its write, and one reads first.
    const isTriedWithAll = isReplicaSet && (method === 'createLead' || method === 'changeLeadStage');
    /** Forgets earlier commands, and lets a creation find no lead: it inserts one, and the insert is refused. */
    const prepare = () => {
      if (method === 'createLead') documents = { ...documents, leads: [] };
      fake.commands.length = 0;
    };

    test.each(Object.entries(isTriedWithAll ? DEFINITE : { Unauthorized: 13, BSONObjectTooLarge: 10334 }))(
      'a definite error is not retried, and the refusal names it: %s (%i)',
      async (codeName, code) => {
        // Some codes concern a single document; then a resend skips that lead.
        const concernsDocument = method === 'resendLeads' && DOCUMENT_CODES.includes(code);
        for (const error of [refusal(code, codeName), ...(concernsDocument ? [] : [writeError(code)])]) {
          prepare();
          reply = (command) => (findName(command) === write ? error : undefined);

          const thrown = (await findOutcome(call)) as Error;

          expect(thrown).toBeInstanceOf(StoreUnavailable);
          expect(thrown.message).toMatch(new RegExp(`refused a command: .*\\(${code}\\)`));
          if ('codeName' in error) expect(thrown.message).toContain(codeName);
          expect(readText(thrown)).not.toContain(SECRET);
          if (method !== 'putStudio' || !TOO_LARGE.includes(code)) expect(replacements()).toHaveLength(0);
          // A put of a studio may make room by removing its history.
          expect(sent(write).length).toBeLessThanOrEqual(TOO_LARGE.includes(code) && method === 'putStudio' ? 3 : 1);
          expect(documentCommands().length).toBeLessThanOrEqual(6);
        }
      },
    );

    const passing = isTriedWithAll ? PASSING : [91, 16908292];
    test.each(passing)('a write is retried after a transient error: %i', async (code) => {
      prepare();
      failOnce(write, refusal(code, 'Passing'));
      const outcome = await findOutcome(call);

      // A resend retries little, because its caller does.
      if (method === 'resendLeads' && outcome !== 'done') expect(outcome).toBeInstanceOf(StoreUnavailable);
      else expect(outcome).toBe('done');
      expect(documentCommands().length).toBeLessThanOrEqual(12);
    });

    test('a labelled error or a write concern error leaves the outcome unknown, whatever its code', async () => {
      for (const error of [
        { ...refusal(13, 'Unauthorized'), errorLabels: ['RetryableWriteError'] },
        { ...refusal(2, 'BadValue'), errorLabels: ['TransientTransactionError'] },
        { ok: 1, n: 1, nModified: 1, writeConcernError: { code: 100, codeName: 'Unsatisfiable', errmsg: SECRET } },
      ]) {
        prepare();
        failOnce(write, error);
        expect(String(await findOutcome(call))).not.toContain('refused');
      }
    });

    test('sends a bounded number of commands while a transient error persists', async () => {
      prepare();
      reply = (command) => (findName(command) === write ? refusal(16908292, 'Deadlock') : undefined);

      await expect(call(store)).rejects.toBeInstanceOf(StoreUnavailable);

      expect(sent(write).length).toBeLessThanOrEqual(8);
      expect(documentCommands().length).toBeLessThanOrEqual(MAX_COMMANDS);
    });

    test('a write fails without a retry if its role may not read', async () => {
      prepare();
      reply = (command) => (findName(command) === 'find' ? refusal(13, 'Unauthorized') : undefined);

      await call(store).catch((error) => {
        expect(error).toBeInstanceOf(StoreUnavailable);
        expect(error.message).toContain('Unauthorized (13)');
      });

      expect(sent('find').length).toBeLessThanOrEqual(1);
    });
  });

  const WRITING = /^(?:insert|update|delete|findAndModify)$/;
  // @proves crashes-21
  test.each(REPEATED)(
    '$name succeeds after the server aborts one of its writes because of a conflict',
    async ({ call }) => {
      const list = times(2, (index) => ({ ...aConsumer({ name: `c${index}` }), number: index + 1, backfills: [] }));
      documents = { ...documents, feed: [{ _id: 'consumers', version: 1, next: 3, list }] };
      for (const error of [refusal(16908292, 'Deadlock'), refusal(112, 'WriteConflict'), writeError(16908292)]) {
        let writes = 0;
        reply = (command) => {
          if (!WRITING.test(findName(command))) return undefined;
          writes += 1;
          if (writes > 1) return undefined;
          // Several inserts may fail for different reasons.
          return command.documents?.length > 1 ? writeError(11000, 16908292) : error;
        };
        expect(await findOutcome(call)).toBe('done');
      }
    },
  );

  // @proves audit-5
  test('without the right to delete leads, a store deletes nothing else of them', async () => {
    const moved = (documents.leads ?? []).map((each) => ({ ...each, moved: 100, erasedAt: NOW, changes: undefined }));
    documents = { ...documents, leads: moved };
    reply = (command) => (command.delete === 'leads' ? refusal(13, 'Unauthorized') : undefined);
    const deleting: string[] = [];
    for (const { name, call } of WRITES) {
      fake.commands.length = 0;
      await call(store).catch(() => {});
      const deletions = sent('delete').map((command) => command.delete);
      if (deletions.includes('leads')) {
        expect(deletions, name).toEqual(['leads']);
        deleting.push(name);
      }
    }
    expect(deleting.toSorted()).toEqual(['deleteErasedLeads', 'deleteLeads']);
  });

  test('a history that is not a list is replaced after a failed update', async () => {
    const studios = (documents.studios ?? []).map((studio) => ({ ...studio, history: 'none' }));
    documents = { ...documents, studios };
    reply = (command) =>
      findName(command) === 'update' && command.updates[0].u.$push ? refusal(2, 'BadValue') : undefined;

    const studio = aStudio({ status: 'suspended' });
    expect(await store.putStudio(studio, BY)).toMatchObject({ studio: { status: 'suspended' } });
    expect(replacements()).toHaveLength(1);
  });

  /** Returns the updates that replace or remove a history. */
  const replacements = () =>
    sent('update').filter(({ updates }) => updates[0].u.$set?.history !== undefined || updates[0].u.$unset?.history);
});

const refusal = (code: number, codeName: string): Document => ({
  ok: 0,
  code,
  errmsg: `not for ${SECRET}`,
  ...(!codeName.startsWith('Location') && { codeName }),
});

const writeError = (...codes: number[]): Document => ({
  ok: 1,
  n: 0,
  writeErrors: codes.map((code, index) => ({ index, code, errmsg: `not for ${SECRET}` })),
});

/** Returns the messages of an error and its causes. */
function readText(error: unknown): string {
  return error instanceof Error ? `${error.message} ${readText(error.cause)}` : '';
}

// @proves leads-32
test('an enquiry is written only to the lead as it was read; else the creation starts over', async () => {
  const { fake, store } = await aStoreOnAFake();
  const open = aLead();
  const again = aLead({ contact: open.contact, note: 'again' });
  const holder = leadDocument(open, keysFor(open), NOW);
  let isInTheWay = true;
  fake.answer = (command) => {
    if (command.update === 'leads') {
      isInTheWay = false;
      return { ok: 1, n: 0, nModified: 0 };
    }
    if (!isInTheWay) return undefined;
    if (command.insert === 'leads') return { ok: 1, n: 0, writeErrors: [{ index: 0, code: 11000, errmsg: '' }] };
    const isByContact = command.find === 'leads' && BSON.EJSON.stringify(command.filter).includes('openContactKey');
    return isByContact ? { ok: 1, cursor: { id: Long.ZERO, ns: 'leads.leads', firstBatch: [holder] } } : undefined;
  };

  const outcome = await store.createLead(again, keysFor(again), { keepsEnquiry: true });

  expect(outcome).toEqual({ kind: 'created', lead: again });
  const [update] = fake.commands.filter((command) => command.update === 'leads');
  const asRead = { stage: 'new', updatedAt: open.updatedAt, 'changes.revision': null };
  expect(update?.updates[0].q).toMatchObject(asRead);
});
