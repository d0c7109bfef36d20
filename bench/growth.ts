/**
 * What a studio's growth costs: the same calls on a store with few leads and on one with a hundred times as many.
 *
 *   node bench/growth.ts [--quick]
 *
 * Measures SQLite, and also a MongoDB when MONGODB_URL says where one is. `--quick` takes a tenth of the leads. Prints
 * Markdown to the standard output and its progress to the standard error.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parseArgs } from 'node:util';
import { MongoClient } from 'mongodb';
import type { Lead, LeadClaims } from '../src/domain/lead.ts';
import { type LeadDocument, leadDocument } from '../src/store/mongo/documents.ts';
import { openMongoStore } from '../src/store/mongo/mongo-store.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../src/store/store.ts';
import { aLead, claimsOf } from '../test/support/builders.ts';
import { serverName, withDatabase } from './mongo-database.ts';
import { showProgress } from './progress.ts';
import { median } from './statistics.ts';

const BUSY = 'busy-studio';
/** A studio whose leads all came before those of the other one. */
const QUIET = 'quiet-studio';
const QUIET_LEADS = 100;

/** How many leads go into one transaction, or one command, while loading. */
const CHUNK = 2000;
/** How many leads per store are remembered to be read again: as many in both, so that both caches hold them. */
const SAMPLE = 1000;
/** A page of the usual size, and the one lead more that tells whether another follows. */
const PAGE = 26;
/** What a group commit shares in one transaction. */
const BATCH = 32;
const ROUNDS = 9;

interface CreatedLead {
  readonly lead: Lead;
  readonly claims: LeadClaims;
}

/** A loaded database under measurement. */
interface Loaded {
  readonly store: Store;
  readonly leads: number;
  /** Some of the busy studio's leads, evenly spread, oldest first. */
  readonly sample: readonly CreatedLead[];
  /** The last lead before the last page. */
  readonly beforeLastPage: string;
  readonly bytesPerLead: number;
  remove(): Promise<void>;
}

/** A kind of database. */
interface Engine {
  readonly name: string;
  readonly sizes: readonly [small: number, large: number];
  /** How often a call is made in a round. */
  readonly calls: { readonly reads: number; readonly creations: number; readonly batches: number };
  open(size: number): Promise<Loading>;
}

/** A database that is being filled. */
interface Loading {
  insert(leads: readonly CreatedLead[]): Promise<void>;
  /** Opens what was filled as the service does. */
  finish(): Promise<Pick<Loaded, 'store' | 'remove'> & { readonly bytes: number }>;
}

interface Measurement {
  readonly name: string;
  /** Times one call took, small and large, by round; milliseconds. */
  readonly rounds: readonly (readonly [small: number, large: number])[];
}

const { quick } = parseArgs({ options: { quick: { type: 'boolean', default: false } } }).values;

console.log(`${process.version}, ${availableParallelism()} cores, ${cpus()[0]?.model}, ${ROUNDS} rounds\n`);
await measureEngine(sqlite());
const { MONGODB_URL } = process.env;
if (MONGODB_URL) await measureEngine(await mongo(MONGODB_URL));

function sqlite(): Engine {
  const version = new DatabaseSync(':memory:').prepare('SELECT sqlite_version() AS version').get()?.version;
  return {
    name: `SQLite ${version}`,
    sizes: sizesOf(10_000, 1_000_000),
    calls: { reads: 200, creations: 24, batches: 8 },
    async open() {
      const folder = mkdtempSync(join(tmpdir(), 'lead-intake-growth-'));
      const remove = () => rmSync(folder, { recursive: true, force: true });
      process.once('exit', remove);
      const path = join(folder, 'leads.db');
      const store = openSqliteStore(path);
      return {
        // What arrives in one turn of the event loop shares a transaction.
        insert: async (leads) => {
          await Promise.all(leads.map(({ lead, claims }) => store.createLead(lead, claims)));
        },
        async finish() {
          await store.close();
          const reopened = openSqliteStore(path);
          return {
            store: reopened,
            bytes: statSync(path).size,
            async remove() {
              await reopened.close();
              remove();
            },
          };
        },
      };
    },
  };
}

async function mongo(url: string): Promise<Engine> {
  const client = new MongoClient(url);
  const server = await serverName(client);
  await client.close();
  return {
    name: server,
    sizes: sizesOf(1000, 100_000),
    calls: { reads: 20, creations: 8, batches: 1 },
    async open(size) {
      const name = `growth-${size}-${randomUUID()}`;
      const store = await openMongoStore(withDatabase(url, name));
      const client = new MongoClient(url);
      const database = client.db(name);
      return {
        async insert(leads) {
          const documents = leads.map(({ lead, claims }) => leadDocument(lead, claims));
          await database.collection<LeadDocument>('leads').insertMany(documents, { ordered: false });
        },
        async finish() {
          const { totalSize } = await database.command({ collStats: 'leads' });
          return {
            store,
            bytes: totalSize,
            async remove() {
              await store.close();
              await database.dropDatabase();
              await client.close();
            },
          };
        },
      };
    },
  };
}

function sizesOf(small: number, large: number): [number, number] {
  return quick ? [small / 10, large / 10] : [small, large];
}

async function measureEngine(engine: Engine): Promise<void> {
  const [smallSize, largeSize] = engine.sizes;
  const loaded: Loaded[] = [];
  try {
    const large = await load(engine, largeSize);
    loaded.push(large);
    const small = await load(engine, smallSize);
    loaded.push(small);
    report(engine, small, large, await measure(engine, small, large));
  } finally {
    for (const { remove } of loaded) await remove();
  }
}

async function load(engine: Engine, leads: number): Promise<Loaded> {
  const loading = await engine.open(leads);
  const progress = showProgress(`${engine.name}: loading ${count(leads)} leads`, leads);
  await loading.insert(Array.from({ length: QUIET_LEADS }, () => someLead(QUIET)));
  const sample: CreatedLead[] = [];
  let beforeLastPage = '';
  for (let done = 0; done < leads; ) {
    const length = Math.min(CHUNK, leads - done);
    const chunk = Array.from({ length }, () => someLead(BUSY));
    await loading.insert(chunk);
    if (done === 0) beforeLastPage = chunk[Math.min(PAGE, length - 1)]?.lead.id ?? '';
    const every = Math.max(1, Math.floor(leads / SAMPLE));
    sample.push(...chunk.filter((_, index) => (done + index) % every === 0));
    done += length;
    progress(done);
  }
  const { bytes, ...opened } = await loading.finish();
  return { ...opened, leads, sample, beforeLastPage, bytesPerLead: bytes / (leads + QUIET_LEADS) };
}

/** A lead as a form on a website sends it, under the kind of key that falls anywhere into an index. */
function someLead(studioId: string): CreatedLead {
  const lead = aLead({ studioId, note: 'Would like to come on a weekday, after six.' });
  return { lead, claims: claimsOf(lead, { idempotencyKey: randomUUID() }) };
}

/** Makes every call on both stores in turn, so that whatever else happens on the machine happens to both. */
async function measure({ name, calls }: Engine, small: Loaded, large: Loaded): Promise<Measurement[]> {
  const middle = ({ sample }: Loaded, turn: number) =>
    sample[Math.floor(sample.length / 2) + (turn % Math.ceil(sample.length / 10))] as CreatedLead;
  const anyOf = ({ sample }: Loaded) => sample[Math.floor(Math.random() * sample.length)] as CreatedLead;
  /** A call: it gets made ready first, which is not timed. */
  const list: {
    name: string;
    times: number;
    /**
     * Makes one of the times of a round. What else the machine does spoils single calls; a checkpoint falls on single
     * creations too, but is a part of what they cost.
     */
    combine: (times: readonly number[]) => number;
    prepare: (loaded: Loaded, turn: number) => () => Promise<boolean>;
  }[] = [
    {
      name: 'create, one at a time',
      times: calls.creations,
      combine: mean,
      prepare: ({ store }) => {
        const { lead, claims } = someLead(BUSY);
        return async () => (await store.createLead(lead, claims)).kind === 'created';
      },
    },
    {
      name: `create, ${BATCH} at once`,
      times: calls.batches,
      combine: mean,
      prepare: ({ store }) => {
        const batch = Array.from({ length: BATCH }, () => someLead(BUSY));
        return async () => {
          const outcomes = await Promise.all(batch.map(({ lead, claims }) => store.createLead(lead, claims)));
          return outcomes.every(({ kind }) => kind === 'created');
        };
      },
    },
    {
      name: 'replay of a creation',
      times: calls.creations,
      combine: median,
      prepare: (loaded) => {
        const { lead, claims } = anyOf(loaded);
        const again = aLead({ studioId: BUSY, contact: lead.contact });
        return async () => (await loaded.store.createLead(again, claims)).kind === 'replayed';
      },
    },
    {
      name: 'read one by its id',
      times: calls.reads,
      combine: median,
      prepare: (loaded) => {
        const { id } = anyOf(loaded).lead;
        return async () => (await loaded.store.findLead(BUSY, id))?.id === id;
      },
    },
    ...(
      [
        ['first page of 25', BUSY, () => null],
        ['a page in the middle', BUSY, (loaded, turn) => middle(loaded, turn).lead.id],
        ['last page', BUSY, ({ beforeLastPage }) => beforeLastPage],
        ['first page of a quiet studio beside it', QUIET, () => null],
      ] satisfies [string, string, (loaded: Loaded, turn: number) => string | null][]
    ).map(([name, studioId, beforeOf]) => ({
      name,
      times: calls.reads,
      combine: median,
      prepare: (loaded: Loaded, turn: number) => {
        const before = beforeOf(loaded, turn);
        return async () => (await loaded.store.listLeads(studioId, before, PAGE)).length === PAGE;
      },
    })),
  ];

  const measurements = list.map(({ name }) => ({ name, rounds: [] as [number, number][] }));
  const progress = showProgress(`${name}: measuring`, ROUNDS);
  // The first round only warms up.
  for (let round = -1; round < ROUNDS; round += 1) {
    for (const [index, { name, times, combine, prepare }] of list.entries()) {
      const spent: [number[], number[]] = [[], []];
      for (let turn = 0; turn < times; turn += 1) {
        // Whoever comes first finds the processor's caches full of the other's: that falls to both alike.
        const order = turn % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const);
        for (const which of order) {
          const call = prepare(which === 0 ? small : large, turn);
          const start = performance.now();
          const asExpected = await call();
          spent[which].push(performance.now() - start);
          if (!asExpected) throw new Error(`${name}: not the answer that was to be measured`);
        }
      }
      if (round >= 0) measurements[index]?.rounds.push([combine(spent[0]), combine(spent[1])]);
    }
    if (round >= 0) progress(round + 1);
  }
  return measurements;
}

function report({ name, calls }: Engine, small: Loaded, large: Loaded, measurements: readonly Measurement[]): void {
  const created = (ROUNDS + 1) * (calls.creations + calls.batches * BATCH);
  const rows = measurements.map(({ name, rounds }) => [
    name,
    milliseconds(median(rounds.map(([first]) => first))),
    milliseconds(median(rounds.map(([, second]) => second))),
    // Of the same round: what slows the machine down for a while slows both.
    median(rounds.map(([first, second]) => second / first)).toFixed(2),
  ]);
  const table = [
    [name, ...[small, large].map(({ leads }) => `${count(leads)} leads`), 'ratio'],
    ['---', '--:', '--:', '--:'],
    ...rows,
    ['bytes per lead on disk', ...[small, large].map(({ bytesPerLead }) => count(Math.round(bytesPerLead))), ''],
  ];
  console.log(table.map((cells) => `| ${cells.join(' | ')} |`).join('\n'));
  console.log(
    `\nMilliseconds; medians of the rounds, in a round the mean of creations and the median of the others. Each store grew by ${count(created)} leads meanwhile.\n`,
  );
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function count(value: number): string {
  return value.toLocaleString('en');
}

function milliseconds(value: number): string {
  return value.toPrecision(3);
}
