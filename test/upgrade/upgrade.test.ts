import { randomUUID } from 'node:crypto';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { BSON, type Document, MongoClient } from 'mongodb';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openClaims, type RegionCode } from '../../src/domain/contact.ts';
import { isOpen } from '../../src/domain/lead.ts';
import type { LeadChange } from '../../src/domain/lead-change.ts';
import { openStore } from '../../src/store/open-store.ts';
import { openDatabase } from '../../src/store/sqlite/open-database.ts';
import type { Store } from '../../src/store/store.ts';
import { listDeliveries } from '../../src/usecases/consumers.ts';
import { findLeads } from '../../src/usecases/read-leads.ts';
import { aConsumer, aLead, BY, claimsOf, NOW } from '../support/builders.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { openedStore } from '../support/patience.ts';
import { temporaryFolder } from '../support/processes.ts';
import { dropDatabase, restoreDocuments } from './mongo-documents.ts';

const FIRST_RELEASE =
  /has data of release 1\.0: start release 1\.1 first, wait until its command `lead-intake claims` lists nothing, then start this release/;

const pathOf = (name: string) => join(import.meta.dirname, name);

/** A renewal of claims as release 1.1 stores it, whose leads may have keys by these regions. */
const renewal = (...formerRules: readonly { readonly version: number; readonly region: RegionCode | null }[]) => ({
  step: 'first',
  since: NOW,
  after: null,
  formerRules,
});

/** A database of release 1.1, whose studio `moves` has a renewal in progress: its region was DE, and is AT. */
interface Copy {
  readonly databaseUrl: string;
  /** Stores a renewal of a studio, as a core of release 1.1 that changes its region does. */
  begin(studioId: string, renewal: unknown): Promise<void>;
  /** Returns what cores of release 1.1 read of a studio as due. */
  due(studioId: string): Promise<unknown>;
}

// @proves crashes-4
describe('a SQLite file of release 1.1', () => {
  endsRenewals(async () => {
    const path = join(temporaryFolder(), 'leads.db');
    copyFileSync(pathOf('sqlite-1.1.db'), path);
    const direct = new DatabaseSync(path, { timeout: 100_000 });
    onTestFinished(() => direct.close());
    const update = direct.prepare('UPDATE studios SET claim_renewal = ? WHERE id = ?');
    return {
      databaseUrl: `sqlite:${path}`,
      begin: async (studioId, begun) => void update.run(JSON.stringify(begun), studioId),
      due: async (studioId) =>
        direct.prepare('SELECT claim_renewal FROM studios WHERE id = ?').get(studioId)?.claim_renewal,
    };
  }, null);

  test.each([1, 7])('of an earlier schema (%i) is refused by name, and not changed', async (version) => {
    const path = join(temporaryFolder(), 'leads.db');
    copyFileSync(pathOf('sqlite-1.1.db'), path);
    const direct = new DatabaseSync(path, { timeout: 100_000 });
    direct.exec(`PRAGMA user_version = ${version}`);
    const tables = () => direct.prepare('SELECT name FROM sqlite_schema').all();
    const before = tables();

    await expect(openStore(`sqlite:${path}`)).rejects.toThrow(FIRST_RELEASE);
    await expect(openStore(`sqlite:${path}`)).rejects.toThrow(path);

    expect(tables()).toEqual(before);
    direct.close();
  });

  test('has the tables, columns and indexes that a new file has', () => {
    const files = [join(temporaryFolder(), 'leads.db'), join(temporaryFolder(), 'leads.db')] as const;
    copyFileSync(pathOf('sqlite-1.1.db'), files[0]);

    const [ofBefore, ofNow] = files.map((path) => schemaOf(openDatabase(path).database));

    expect(ofNow).toEqual(ofBefore);
  });
});

/** The parts of a schema that SQLite enforces. */
function schemaOf(database: DatabaseSync): unknown {
  const names = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
  const all = (query: string, name: unknown) => database.prepare(query).all(name as string);
  const schema = names.map(({ name }) => [
    name,
    database.prepare('SELECT wr, strict FROM pragma_table_list WHERE name = ?').get(name as string),
    all('SELECT * FROM pragma_table_xinfo(?)', name),
    all('SELECT * FROM pragma_foreign_key_list(?)', name),
    all('SELECT name, "unique", origin, partial FROM pragma_index_list(?) ORDER BY name', name).map((index) => [
      index,
      all('SELECT * FROM pragma_index_xinfo(?)', index.name),
    ]),
  ]);
  const version = database.prepare('PRAGMA user_version').get();
  database.close();
  return JSON.parse(JSON.stringify([version, schema]));
}

// @proves crashes-4
describeWithMongo('a MongoDB database of release 1.1', (mongoUrl) => {
  const { collections } = JSON.parse(readFileSync(pathOf('mongodb-1.1.json'), 'utf8'));

  async function aCopy(): Promise<
    Copy & { readonly studios: ReturnType<ReturnType<MongoClient['db']>['collection']> }
  > {
    const databaseUrl = new URL(`/test-${randomUUID()}`, mongoUrl()).href;
    await restoreDocuments(databaseUrl, collections);
    const client = new MongoClient(databaseUrl);
    onTestFinished(async () => {
      await client.close();
      await dropDatabase(databaseUrl);
    });
    const studios = client.db().collection<Document>('studios');
    return {
      databaseUrl,
      studios: studios as never,
      begin: async (_id, begun) =>
        void (await studios.updateOne({ _id } as never, { $set: { claimVersion: null, renewal: begun } })),
      async due(_id) {
        const found = await studios.findOne({ _id } as never, { projection: { _id: 0, claimVersion: 1, renewal: 1 } });
        return BSON.EJSON.serialize(found ?? {});
      },
    };
  }

  endsRenewals(aCopy, { claimVersion: 2, renewal: null });

  test('with a studio that only release 1.0 wrote is refused by name, and not changed', async () => {
    const { databaseUrl, studios, due } = await aCopy();
    await studios.updateOne({ _id: 'berlin' } as never, { $unset: { claimVersion: 1, renewal: 1 } });
    const before = await due('moves');

    await expect(openedStore(databaseUrl)).rejects.toThrow(FIRST_RELEASE);

    expect(await due('moves')).toEqual(before);
  });
});

function endsRenewals(copy: () => Promise<Copy>, nothingDue: unknown): void {
  async function opened(databaseUrl: string): Promise<Store> {
    const store = await openedStore(databaseUrl);
    onTestFinished(() => store.close());
    return store;
  }
  const regionsOf = async (store: Store, studioId: string) => {
    const studio = await store.findStudio(studioId);
    return studio && { regionCode: studio.regionCode, formerRegions: studio.formerRegions.toSorted() };
  };
  const byId = (...regions: readonly (RegionCode | null)[]) => regions.toSorted();

  // @proves leads-32
  test('its open leads keep enquiries, and stay as they were', async () => {
    const { databaseUrl } = await copy();
    const store = await opened(databaseUrl);
    let kept = 0;
    for (const studio of (await store.listStudios(null, 100)).records) {
      for (const lead of (await store.walkLeads(studio.id, null, 100)).records) {
        const again = aLead({ studioId: studio.id, contact: lead.contact, note: 'again' });
        const claims = { ...claimsOf(again), ...openClaims(lead.contact, studio) };
        const outcome = isOpen(lead.stage) ? await store.createLead(again, claims, { keepsEnquiry: true }) : null;
        if (outcome?.kind !== 'already-open' || outcome.leadId !== lead.id) continue;
        const { displayName, sourceId, note, createdAt: time } = again;
        const enquiries = [{ id: expect.any(String), time, displayName, sourceId, note }];
        expect(await store.findLead(studio.id, lead.id)).toEqual({ ...lead, enquiries });
        kept += 1;
      }
    }
    expect(kept).toBeGreaterThan(0);
  });

  // @proves feed-8
  test('has changes that wait, for the consumer without a name as before, and for named ones', async () => {
    const store = await opened((await copy()).databaseUrl);
    const byId = (changes: readonly LeadChange[]) => changes.toSorted((a, b) => (a.lead.id < b.lead.id ? -1 : 1));
    const before = byId(await store.listLeadChanges(1000));
    expect(before.length).toBeGreaterThan(3);

    const created = await store.createConsumer(aConsumer(), BY);
    const number = created.kind === 'created' ? created.consumer.number : expect.fail(created.kind);
    expect(byId((await store.listDeliveries(number, 1000))?.changes ?? [])).toEqual(before);
    expect(byId(await store.listLeadChanges(1000))).toEqual(before);

    // Those that were acknowledged, too.
    await store.createConsumer(aConsumer({ name: 'copy', start: 'all-leads' }), BY);
    const copied = await listDeliveries({ store, clock: () => NOW }, number + 1, 1000);
    expect(copied?.length).toBeGreaterThan(before.length);
  });

  test('has former regions for each renewal in progress when the first core starts, also when several do', async () => {
    const { databaseUrl, begin, due } = await copy();
    await begin('berlin', renewal({ version: 2, region: null }, { version: 2, region: 'FR' }));

    const stores = await Promise.all([1, 2, 3].map(() => opened(databaseUrl)));

    for (const store of stores) {
      expect(await regionsOf(store, 'moves')).toEqual({ regionCode: 'AT', formerRegions: ['DE'] });
      expect(await regionsOf(store, 'berlin')).toEqual({ regionCode: 'DE', formerRegions: byId(null, 'FR') });
      expect(await regionsOf(store, 'suspended')).toEqual({ regionCode: null, formerRegions: [] });
    }
    for (const studioId of ['berlin', 'moves', 'suspended']) expect(await due(studioId)).toEqual(nothingDue);
    const contact = { type: 'phone', value: '+49 30 7654321' } as const;
    const query = { studioId: 'moves', contact, pageSize: 0, pageToken: '' };
    expect(await findLeads({ store: stores[0] as Store }, query)).toMatchObject({
      leads: [{}],
      mayBeIncomplete: false,
    });
  });

  test('has the regions of a renewal that a core of that release begins beside, and ends it when the studio is put', async () => {
    const { databaseUrl, begin, due } = await copy();
    const store = await opened(databaseUrl);
    await begin('moves', renewal({ version: 2, region: 'FR' }, { version: 1, region: null }));

    expect(await regionsOf(store, 'moves')).toEqual({ regionCode: 'AT', formerRegions: byId('DE', 'FR', null) });
    await store.putStudio({ id: 'moves', status: 'active', regionCode: 'GB' }, { memberId: null, now: NOW });

    const formerRegions = byId('AT', 'DE', 'FR', null);
    expect(await regionsOf(store, 'moves')).toEqual({ regionCode: 'GB', formerRegions });
    expect(await due('moves')).toEqual(nothingDue);
  });

  test('with a renewal of claims by the rule of release 1.0 is refused by name, and not changed', async () => {
    const { databaseUrl, begin, due } = await copy();
    await begin('suspended', renewal({ version: 2, region: 'DE' }, { version: 1, region: null }));
    const before = [await due('moves'), await due('suspended')];

    await expect(openedStore(databaseUrl)).rejects.toThrow(FIRST_RELEASE);

    expect([await due('moves'), await due('suspended')]).toEqual(before);
  });
}
