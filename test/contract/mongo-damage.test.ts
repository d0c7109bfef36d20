import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Collection, type Db, MongoClient, UUID } from 'mongodb';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import { describeWithMongo, isCommand } from '../support/mongodb.ts';
import { startProxy } from '../support/tcp-proxy.ts';
import { restoreDocuments } from '../upgrade/mongo-documents.ts';
import { type Damaged, expectFaults, expectNoFaultsBesideChanges, faultsIn } from './damage-contract.ts';

vi.setConfig({ testTimeout: 300_000 });

const FIXTURES = join(import.meta.dirname, '../upgrade');

type Change = readonly [collection: string, filter: object, update: object];

const OPEN = { stage: 'contacted', studioId: 'berlin' };
const CLOSED = { stage: 'won', history: { $elemMatch: { action: 'lead-stage-changed' } } };
const ERASED = { erasedAt: { $ne: null }, studioId: 'berlin' };
const KEY = `${'A'.repeat(43)}`;

const changed = (collection: string, filter: object, $set: object): Change => [collection, filter, { $set }];
const unset = (collection: string, filter: object, field: string): Change => [
  collection,
  filter,
  { $unset: { [field]: 1 } },
];

const DAMAGES: readonly Damaged<Change>[] = [
  [
    changed('leads', OPEN, { stage: 'lost' }),
    /^whole database has 1 closed leads that hold .*: berlin\/[0-9a-f-]{36}\. Reopen/,
  ],
  [changed('leads', CLOSED, { stage: 'new' }), /has 1 open leads that do not hold/],
  [changed('leads', OPEN, { openContactKey: [] }), /has 1 open leads that do not hold/],
  [changed('leads', OPEN, { openContactKey: [`closed:${KEY}:${randomUUID()}`] }), /has 1 open leads that do not hold/],
  [changed('leads', CLOSED, { openContactKey: [`closed:${KEY}:${randomUUID()}`] }), /has 1 closed leads that hold/],
  [changed('leads', OPEN, { openContactKey: [KEY, 5] }), /has 1 leads whose contact keys cannot be read/],
  [unset('leads', OPEN, 'openContactKey'), /has 1 leads whose contact keys cannot be read/],
  [changed('leads', ERASED, { displayName: 'Ada' }), /has 1 erased leads of which personal data are left/],
  [changed('leads', ERASED, { 'idempotency.fingerprint': KEY }), /has 1 erased leads of which/],
  [changed('leads', ERASED, { openContactKey: [`open:${KEY}`] }), /has 1 erased leads of which/],
  [changed('leads', OPEN, { updatedAt: new Date(0) }), /has 1 leads that changed before they were created/],
  [changed('leads', OPEN, { studioId: 'moves' }), /has 1 leads whose studioId cannot be read/],
  [unset('leads', OPEN, 'changes'), /has 1 leads whose waiting changes cannot be read/, /has 1 deliveries of a state/],
  [changed('leads', OPEN, { 'changes.kinds': 'x' }), /has 1 leads whose waiting changes cannot be read/],
  [changed('leads', OPEN, { 'changes.revision': 0 }), /has [12] deliveries of a state that .* for consumer 1/],
  [changed('leads', OPEN, { stage: 'qualified' }), /has 1 leads whose stage cannot be read/],
  [changed('leads', OPEN, { history: 'x' }), /has 1 leads whose history cannot be read/],
  [changed('leads', OPEN, { appliedRequests: 'x' }), /has 1 leads whose appliedRequests cannot be read/],
  [changed('leads', OPEN, { 'history.0.action': 'lead-sold' }), /has 1 events whose action cannot be read/],
  [changed('leads', OPEN, { moved: 200 }), /has 1 records some of whose events are gone/],
  [changed('studios', { _id: 'berlin' }, { moved: 'x' }), /has 1 records some of whose events are gone: berlin\./],
  [changed('leads', OPEN, { 'idempotency.key': 'x' }), /has 1 leads whose idempotencyKey cannot be read/],
  [changed('leads', ERASED, { 'idempotency.key': 'x' }), /has 1 leads whose idempotencyKey cannot be read/],
  [changed('leads', ERASED, { studioId: 'moves' }), /has 1 leads whose studioId cannot be read/],
  [changed('leads', OPEN, { 'idempotency.fingerprint': 'x' }), /has 1 leads whose fingerprint cannot be read/],
  [changed('leads', OPEN, { original: 'x' }), /has 1 leads whose original cannot be read/],
  [
    changed('leads', OPEN, { original: { displayName: 'x', sourceId: null, note: null, enquiries: [] } }),
    /has 1 leads whose enquiries cannot be read/,
  ],
  [
    changed('deliveries', { 'kinds.resent': { $exists: true } }, { due: 'x' }),
    /has \d+ deliveries that cannot be read/,
  ],
  [
    changed('deliveries', { attempts: 1, due: { $lt: new Date(2e15) } }, { consumer: 2 }),
    /has 1 deliveries that cannot be read/,
  ],
  [changed('apiKeys', { revokedAt: { $ne: null } }, { slot: '19' }), /has 1 revoked API keys in the slot/],
  [changed('apiKeys', { name: 'Shop' }, { studioId: 'nobody' }), /has 1 records of studios that do not exist: nobody/],
  [changed('apiKeys', { name: 'Shop' }, { secretHint: 'x' }), /has 1 API keys whose secretHint cannot be read/],
  [changed('studios', { _id: 'held' }, { status: 'closed' }), /has 1 studios whose status cannot be read: held\./],
  [
    changed('studios', { _id: 'berlin' }, { 'members.owner': 'boss' }),
    /has 1 members whose role cannot be read: berlin\/owner\./,
  ],
  [
    changed('studios', { _id: 'berlin' }, { sources: { x: null } }),
    /has 1 lead sources whose id cannot be read: berlin\/x\./,
  ],
  [unset('feed', { _id: 'consumers' }, 'hasTestStudios'), /has 1 test studios whose leads .*: tests\./],
  [changed('feed', { _id: 'consumers' }, { next: 2 }), /has 1 consumers whose number .*: number 2\./],
  [changed('feed', { _id: 'consumers' }, { 'list.1.name': 'copy' }), /has 2 consumers whose number or name/],
  [
    changed('feed', { _id: 'consumers' }, { 'list.1.start': 'soon' }),
    /has 1 consumers whose start cannot be read: berlin-only\./,
  ],
  [changed('feed', { _id: 'consumers' }, { list: 'x' }), /has 1 consumers whose list cannot be read/],
  [changed('feed', { _id: 'consumers' }, { epoch: 'x' }), /has 1 epochs that cannot be read/],
  [changed('feed', { _id: 'retention' }, { time: 'x' }), /has 1 times of retention/],
  [changed('requests', {}, { operation: 'sell' }), /has 1 requests whose operation cannot be read/],
];

// @proves limits-12
describeWithMongo('a whole database in MongoDB', (mongoUrl) => {
  /** Makes a database that has something of everything. */
  async function aCopy(fixture = 'mongodb-1.2.json'): Promise<{ url: string; database: Db }> {
    const url = new URL(`/test-${randomUUID()}`, mongoUrl()).href;
    await restoreDocuments(url, JSON.parse(readFileSync(join(FIXTURES, fixture), 'utf8')).collections);
    const client = new MongoClient(url);
    onTestFinished(async () => {
      await client.db().dropDatabase();
      await client.close();
    });
    await (await openStore(url)).close();
    return { url, database: client.db() };
  }

  describe('that is damaged', () => {
    test.each(DAMAGES.map(([change, ...faults]) => [change, faults] as const))('%j', async (change, faults) => {
      const [collection, filter, update] = change;
      const { url, database } = await aCopy();
      const { modifiedCount } = await database.collection(collection).updateMany(filter, update as never);
      expect(modifiedCount).toBeGreaterThan(0);
      expectFaults(await faultsIn(url), faults);
    });

    test('by a studio, or an index, that is gone', async () => {
      const { url, database } = await aCopy();
      await database.collection('studios').deleteOne({ _id: 'held' } as never);
      await database.collection('leads').dropIndex('openContact');
      expectFaults(await faultsIn(url), [
        /has 1 records of studios that do not exist: held\//,
        /^database leads\.openContact is missing/,
      ]);
    });
  });

  test('is read behind more documents than at a time', async () => {
    const { url, database } = await aCopy();
    const requests = database.collection('requests');
    const found = (await requests.findOne()) ?? {};
    const ids = Array.from({ length: 450 }, (_, index) => `01a21fff-0000-7000-8000-${String(index).padStart(12, '0')}`);
    const documents = ids.map((id) => ({ ...found, _id: { studioId: 'berlin', id: new UUID(id) } }));
    await requests.insertMany([...documents.slice(0, -1), { ...documents.at(-1), operation: 'sell' }] as never[]);
    expectFaults(await faultsIn(url), [
      /has 1 requests whose operation .*: berlin\/01a21fff-0000-7000-8000-000000000449\./,
    ]);
  });

  test('looks wrong only if it does so twice', async () => {
    const { url, database } = await aCopy();
    const studios = database.collection<{ _id: string }>('studios');
    const moved = await studios.findOneAndDelete({ _id: 'held' });
    const find = Collection.prototype.find;
    const finding = vi.spyOn(Collection.prototype, 'find').mockImplementation(function (
      this: Collection,
      filter,
      options,
    ) {
      const cursor = find.call(this, filter as object, options);
      const { toArray } = cursor;
      // What another process was about to write is there once the leads are read again.
      if (this.collectionName === 'leads' && JSON.stringify(filter).includes('$lte')) {
        cursor.toArray = async () => {
          await studios.insertOne(moved as never);
          return toArray.call(cursor);
        };
      }
      return cursor;
    });
    onTestFinished(() => finding.mockRestore());

    expect(await faultsIn(url)).toEqual([]);
    expect(await studios.countDocuments({ _id: 'held' })).toBe(1);
  });

  test('is only read', async () => {
    const { url, database } = await aCopy();
    await database.collection('leads').updateMany({}, { $set: { stage: 'qualified' } });
    const { hostname, port, pathname } = new URL(url);
    const proxy = await startProxy(hostname, Number(port));
    onTestFinished(() => proxy.stop());
    const read = isCommand(
      'hello',
      'ismaster',
      'isMaster',
      'buildInfo',
      'find',
      'getMore',
      'aggregate',
      'listIndexes',
      'endSessions',
    );
    const others: string[] = [];
    proxy.loseReplies({
      of(request) {
        // The driver's first message has another form.
        const isOther = request.readInt32LE(12) === 2013 && !read(request);
        if (isOther) others.push(request.subarray(26, 46).toString('latin1'));
        return isOther;
      },
    });

    expect(await faultsIn(`mongodb://127.0.0.1:${proxy.port}${pathname}`)).toHaveLength(1);
    expect(others).toEqual([]);
  });

  describe('that is not damaged', () => {
    test('of release 1.2', async () => {
      expect(await faultsIn((await aCopy()).url)).toEqual([]);
    });

    test('whatever is done, also meanwhile', async () => {
      await expectNoFaultsBesideChanges((await aCopy()).url, 8000);
    });
  });
});
