import { statSync } from 'node:fs';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { type LeadDocument, leadDocument } from '../src/store/mongo/documents.ts';
import { openStore } from '../src/store/open-store.ts';
import { BUSY, type CreatedLead, KnownLeads, QUIET, SOURCE_ID, someLead } from './growth-leads.ts';
import { LeadRequests } from './lead-requests.ts';
import { ownDatabase, serverName } from './mongo-database.ts';
import { atTheEnd, temporaryFolder } from './processes.ts';
import { showProgress } from './progress.ts';
import { createStudioWithKey, withStore } from './studio-with-key.ts';

const QUIET_LEADS = 100;

/** The number of leads in a transaction or command. */
const CHUNK = 2000;

export interface Engine {
  readonly name: string;
  readonly sizes: readonly [small: number, large: number];
  /** The number of calls in a round. */
  readonly calls: { readonly reads: number; readonly creations: number; readonly batches: number };
  /** Creates a database that is removed when the benchmark ends. */
  open(): Promise<Loading>;
}

interface Loading {
  readonly url: string;
  insert(leads: readonly CreatedLead[]): Promise<void>;
  /** Closes it; returns its size in bytes. */
  finish(): Promise<number>;
}

/** A database with its leads, and a key of each studio. */
export interface LoadedDatabase {
  readonly url: string;
  readonly size: number;
  readonly leads: KnownLeads;
  readonly bytesPerLead: number;
  readonly secrets: Readonly<Record<string, string>>;
}

/** @param large the number of leads of the large database */
export function sqlite(large: number): Engine {
  return {
    name: `SQLite ${process.versions.sqlite}`,
    sizes: [10_000, large],
    calls: { reads: 200, creations: 24, batches: 8 },
    async open() {
      const path = join(temporaryFolder(), 'leads.db');
      const url = `sqlite:${path}`;
      const store = await openStore(url);
      atTheEnd(() => store.close());
      return {
        url,
        // Creations in one turn of the event loop share a transaction.
        insert: async (leads) => {
          await Promise.all(leads.map(({ lead, claims }) => store.createLead(lead, claims)));
        },
        async finish() {
          await store.close();
          return statSync(path).size;
        },
      };
    },
  };
}

export async function mongo(mongoUrl: string): Promise<Engine> {
  return {
    name: await serverName(mongoUrl),
    sizes: [1000, 100_000],
    calls: { reads: 20, creations: 8, batches: 1 },
    async open() {
      const url = ownDatabase(mongoUrl);
      // Creates the indexes.
      await withStore(url, async () => {});
      const client = new MongoClient(url);
      atTheEnd(() => client.close());
      return {
        url,
        async insert(leads) {
          const documents = leads.map(({ lead, claims }) => leadDocument(lead, claims));
          await client.db().collection<LeadDocument>('leads').insertMany(documents, { ordered: false });
        },
        async finish() {
          const { totalSize } = await client.db().command({ collStats: 'leads' });
          await client.close();
          return totalSize;
        },
      };
    },
  };
}

/** Creates and fills a database; the busy studio gets `size` leads. */
export async function loadDatabase(engine: Engine, size: number): Promise<LoadedDatabase> {
  const loading = await engine.open();
  const leads = new KnownLeads(size);
  const progress = showProgress(`${engine.name}: loading ${size.toLocaleString('en')} leads`, size);
  const insert = async (studioId: string, count: number) => {
    const chunk = Array.from({ length: count }, () => someLead(studioId));
    await loading.insert(chunk);
    leads.loaded(chunk);
  };
  await insert(QUIET, QUIET_LEADS);
  for (let done = 0; done < size; done += CHUNK) {
    await insert(BUSY, Math.min(CHUNK, size - done));
    progress(Math.min(done + CHUNK, size));
  }
  const bytes = await loading.finish();
  const { url } = loading;
  const secrets = await withStore(url, async (store) => ({
    [BUSY]: (await createStudioWithKey(store, BUSY, SOURCE_ID)).secret,
    [QUIET]: (await createStudioWithKey(store, QUIET, SOURCE_ID)).secret,
  }));
  return { url, size, leads, bytesPerLead: bytes / (size + QUIET_LEADS), secrets };
}

/** Requests of a studio to a gateway on a loaded database. */
export const requestsTo = (url: string, { secrets }: LoadedDatabase, studioId: string): LeadRequests =>
  new LeadRequests({ url, secret: secrets[studioId] ?? '', sourceId: SOURCE_ID });
