import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { pageTokenAfter } from '../src/domain/cursor.ts';
import { newId, systemClock } from '../src/domain/new-id.ts';
import { openStore } from '../src/store/open-store.ts';
import type { Store } from '../src/store/store.ts';
import { createApiKey } from '../src/usecases/manage-api-keys.ts';
import { aLead, aLeadSource, aMember, aStudio, BY, DAY_MS, keysFor, plus, times } from '../test/support/builders.ts';
import { atTheEnd, temporaryFolder } from './processes.ts';
import { captureFor, type KnownLeads, LEADS, type Target } from './workload.ts';

const SQLITE = 'sqlite:';

/** Returns the address of a new SQLite database that is removed when the benchmark ends. */
export const newSqliteDatabase = (): string => `${SQLITE}${join(temporaryFolder(), 'leads.db')}`;

/** Returns the address of a new database on a server; the database is dropped when the benchmark ends. */
export function newMongoDatabase(mongoUrl: string): string {
  const url = mongoUrl.replace(/^([^/]+:\/\/[^/?]+)(?:\/[^?]*)?/, `$1/bench-${randomUUID()}`);
  atTheEnd(() => withMongo(url, (client) => client.db().dropDatabase()));
  return url;
}

/** Returns the name and version of a MongoDB server. */
export const serverName = (mongoUrl: string): Promise<string> =>
  withMongo(mongoUrl, async (client) => {
    const { version, ferretdb } = await client.db('admin').command({ buildInfo: 1 });
    return ferretdb ? `FerretDB ${ferretdb.version}` : `MongoDB ${version}`;
  });

/** Returns the bytes that a database takes on disk, with its indexes. */
export async function bytesOnDisk(url: string): Promise<number> {
  if (url.startsWith(SQLITE)) return statSync(url.slice(SQLITE.length)).size;
  return withMongo(url, async (client) => {
    const { storageSize, indexSize } = await client.db().stats();
    return storageSize + indexSize;
  });
}

async function withMongo<Result>(url: string, work: (client: MongoClient) => Promise<Result>): Promise<Result> {
  await using client = new MongoClient(url, { serverSelectionTimeoutMS: 2000 });
  return await work(client);
}

/** Opens the store at an address, runs work on it, and closes it. */
export async function withStore<Result>(databaseUrl: string, work: (store: Store) => Promise<Result>): Promise<Result> {
  const store = await openStore(databaseUrl);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** The number of leads that are created concurrently and share transactions. */
const CHUNK = 500;

/** The number of leads of each studio when there are many studios. */
const LEADS_OF_FEW = 5;

/** Creates a studio with an owner, a source and a key. */
export async function createStudioWithKey(store: Store, studioId: string): Promise<Omit<Target, 'url'>> {
  const owner = aMember({ studioId });
  const source = aLeadSource({ studioId });
  await store.putStudio(aStudio({ id: studioId }), BY);
  await store.putMember(owner, BY);
  await store.putLeadSource(source, BY);
  const deps = { store, clock: systemClock, newId };
  const { secret } = await createApiKey(deps, {
    studioId,
    memberId: owner.id,
    name: 'Website',
    scopes: ['leads.create', 'leads.read'],
    expiresAt: plus(deps.clock(), DAY_MS),
  });
  return { secret, sourceId: source.id };
}

/** A studio's key and some of its leads. */
export interface FilledStudio {
  readonly key: Omit<Target, 'url'>;
  /** Evenly distributed. Sizes that are multiples of LEADS have equally many, so that the caches of all databases are equally warm. */
  readonly known: KnownLeads;
}

/** Creates a studio with leads. */
export async function fillStudio(store: Store, studioId: string, size: number): Promise<FilledStudio> {
  const key = await createStudioWithKey(store, studioId);
  const leads: KnownLeads['leads'][number][] = [];
  const knownEvery = Math.max(1, Math.floor(size / LEADS));
  for (let count = 0; count < size; count += CHUNK) {
    const chunk = times(Math.min(CHUNK, size - count), () => {
      const idempotencyKey = randomUUID();
      const lead = aLead({ studioId, ...captureFor(idempotencyKey, key.sourceId) });
      return { lead, keys: keysFor(lead, { idempotencyKey }) };
    });
    await Promise.all(chunk.map(({ lead, keys }) => store.createLead(lead, keys)));
    for (const [index, { lead, keys }] of chunk.entries()) {
      const isKnown = (count + index) % knownEvery === 0;
      if (isKnown) leads.push({ id: lead.id, idempotencyKey: keys.idempotencyKey });
    }
  }
  return { key, known: { leads, cursors: leads.map(({ id }) => pageTokenAfter('leads', studioId, id)) } };
}

/** Creates studios with one key and a few leads each. */
export async function fillStudios(databaseUrl: string, count: number): Promise<FilledStudio[]> {
  const studios: FilledStudio[] = [];
  await withStore(databaseUrl, async (store) => {
    while (studios.length < count) {
      const some = times(Math.min(CHUNK, count - studios.length), (index) => `s-${studios.length + index}`);
      studios.push(...(await Promise.all(some.map((id) => fillStudio(store, id, LEADS_OF_FEW)))));
    }
  });
  return studios;
}
