import { randomUUID } from 'node:crypto';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Document, MongoClient } from 'mongodb';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import { openDatabase } from '../../src/store/sqlite/open-database.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { openedStore } from '../support/patience.ts';
import { temporaryFolder } from '../tools/processes.ts';
import { dropDatabase, restoreDocuments } from './mongo-documents.ts';

const EARLIER_RELEASE = /has data of a release before 1\.2: start each later release up to 1\.2 first, then this one/;

const toPath = (name: string) => join(import.meta.dirname, name);

describe('a SQLite file', () => {
  // @proves crashes-51
  test.each([
    ['of the schema of release 1.0', 'PRAGMA user_version = 7'],
    ['in which a release before 1.2 has begun something', `UPDATE studios SET claim_renewal = '{"step":"first"}'`],
  ])('a SQLite file %s is refused with advice and stays unchanged', async (_, change) => {
    const path = join(temporaryFolder(), 'leads.db');
    copyFileSync(toPath('sqlite-1.2.db'), path);
    const contents = (first = '') => {
      const direct = new DatabaseSync(path);
      direct.exec(first);
      const found = ['SELECT name FROM sqlite_schema', 'SELECT * FROM studios', 'PRAGMA user_version'].map((query) =>
        direct.prepare(query).all(),
      );
      direct.close();
      return found;
    };
    const before = contents(change);

    await expect(openStore(`sqlite:${path}`)).rejects.toThrow(EARLIER_RELEASE);
    await expect(openStore(`sqlite:${path}`)).rejects.toThrow(path);

    expect(contents()).toEqual(before);
  });

  test('a migrated SQLite file has the tables, columns and indexes of a new one', () => {
    const files = [join(temporaryFolder(), 'leads.db'), join(temporaryFolder(), 'leads.db')] as const;
    copyFileSync(toPath('sqlite-1.2.db'), files[0]);

    const [ofBefore, ofNow] = files.map((path) => readSchema(openDatabase(path).database));

    expect(ofNow).toEqual(ofBefore);
  });
});

/** The parts of a schema that SQLite enforces, except the order of columns, because every statement names its columns. */
function readSchema(database: DatabaseSync): unknown {
  const names = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
  const all = (query: string, name: unknown) => database.prepare(query).all(name as string);
  const schema = names.map(({ name }) => [
    name,
    database.prepare('SELECT wr, strict FROM pragma_table_list WHERE name = ?').get(name as string),
    all('SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?) ORDER BY name', name),
    all('SELECT * FROM pragma_foreign_key_list(?)', name),
    all('SELECT name, "unique", origin, partial FROM pragma_index_list(?) ORDER BY name', name).map((index) => [
      index,
      all('SELECT seqno, name, desc, coll FROM pragma_index_xinfo(?) WHERE key', index.name),
    ]),
  ]);
  const version = database.prepare('PRAGMA user_version').get();
  database.close();
  return JSON.parse(JSON.stringify([version, schema]));
}

describeWithMongo('a MongoDB database', (mongoUrl) => {
  const { collections } = JSON.parse(readFileSync(toPath('mongodb-1.2.json'), 'utf8'));

  // @proves crashes-51
  test.each([
    ['with a studio that only release 1.0 wrote', { $unset: { claimVersion: 1, renewal: 1 } }],
    ['in which a release before 1.2 has begun something', { $set: { claimVersion: null, renewal: { step: 'first' } } }],
  ])('a MongoDB database %s is refused with advice and stays unchanged', async (_, change) => {
    const { databaseUrl, studios } = await aDatabaseOf12();
    expect(await studios.updateOne({ _id: 'berlin' } as never, change)).toMatchObject({ modifiedCount: 1 });
    const before = await studios.find().toArray();

    await expect(openedStore(databaseUrl)).rejects.toThrow(EARLIER_RELEASE);

    expect(await studios.find().toArray()).toEqual(before);
  });

  /** Creates a database of release 1.2; returns direct access to it. */
  async function aDatabaseOf12() {
    const databaseUrl = new URL(`/test-${randomUUID()}`, mongoUrl()).href;
    await restoreDocuments(databaseUrl, collections);
    const client = new MongoClient(databaseUrl);
    onTestFinished(async () => {
      await client.close();
      await dropDatabase(databaseUrl);
    });
    const collection = (name: string) => client.db().collection<Document & { _id: unknown }>(name);
    return { databaseUrl, feed: collection('feed'), studios: collection('studios') };
  }

  // @proves crashes-51
  test('the first core migrates a MongoDB database and ends the retention of studios with holds', async () => {
    const { databaseUrl, feed, studios } = await aDatabaseOf12();
    const retention = { days: 90, since: new Date(1) };
    await studios.updateMany({ _id: { $in: ['berlin', 'moves'] } } as never, { $set: { retention } });

    for (const _ of ['first', 'second']) {
      const store = await openedStore(databaseUrl);
      const readDays = async (id: string) => (await store.findStudio(id))?.retention?.days ?? null;
      // One lead of berlin is held, and the whole studio named held.
      expect([await readDays('berlin'), await readDays('held'), await readDays('moves')]).toEqual([null, null, 90]);
      const events = await store.listAuditEvents('berlin', null);
      expect(events.filter(({ caller }) => caller === '(migration)')).toEqual([
        expect.objectContaining({ action: 'studio-retention-changed', from: '90', to: null }),
      ]);
      await store.close();
      // As if the process had died before it recorded the release.
      await feed.deleteOne({ _id: 'schema' } as never);
    }
  });

  test('a MongoDB database that a newer release has written is refused', async () => {
    const { databaseUrl, feed } = await aDatabaseOf12();
    await feed.insertOne({ _id: 'schema', version: 3 } as never);

    await expect(openedStore(databaseUrl)).rejects.toThrow(/a newer release has written the database/);
  });
});
