import { statSync } from 'node:fs';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { type LeadDocument, leadDocument } from '../src/store/mongo/documents.ts';
import { openStore } from '../src/store/open-store.ts';
import { BUSY, type CreatedLead, KnownLeads, QUIET, someLead } from './growth-leads.ts';
import { ownDatabase, serverName } from './mongo-database.ts';
import { atTheEnd, temporaryFolder } from './processes.ts';
import { showProgress } from './progress.ts';

const QUIET_LEADS = 100;

/** How many leads go into one transaction, or one command. */
const CHUNK = 2000;

/** A kind of database. */
export interface Engine {
  readonly name: string;
  readonly sizes: readonly [small: number, large: number];
  /** How often calls are made in a round. */
  readonly calls: { readonly reads: number; readonly creations: number; readonly batches: number };
  /** Makes a database that is gone when the benchmark is over. */
  open(): Promise<Loading>;
}

/** A database that is being filled. */
interface Loading {
  readonly url: string;
  insert(leads: readonly CreatedLead[]): Promise<void>;
  /** Lets go of it; gives how many bytes it has. */
  finish(): Promise<number>;
}

/** A database with its leads. */
export interface LoadedDatabase {
  readonly url: string;
  readonly size: number;
  readonly leads: KnownLeads;
  readonly bytesPerLead: number;
}

/** @param large how many leads the large database has */
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
        // What arrives in one turn of the event loop shares a transaction.
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
      // Makes the indexes.
      const store = await openStore(url);
      await store.close();
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

/** Fills a database; the busy studio gets `size` leads. */
export async function load(engine: Engine, size: number): Promise<LoadedDatabase> {
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
  return { url: loading.url, size, leads, bytesPerLead: bytes / (size + QUIET_LEADS) };
}
