import { setTimeout as sleep } from 'node:timers/promises';
import { type Db, MongoClient, type MongoError, ReadConcern, WriteConcern } from 'mongodb';
import { STORE_CALL_MS, STORE_CLOSE_MS, STORE_SILENCE_MS } from '../../../common/deadlines.ts';
import { creationsRefused, describeDuplicates } from '../index-faults.ts';
import { type StoreObserver, StoreUnavailable } from '../store.ts';
import { type Batching, type Collections, collectionsOf } from './collections.ts';
import { duplicatesUnder } from './duplicates.ts';
import { type Indexes, IndexKeeper } from './index-keeper.ts';
import { type Index, indexFaults, makeIndex, PROMISED } from './indexes.ts';
import { ReconnectingClient, withinDeadline } from './reconnecting-client.ts';

/** How many calls may be under way before more are turned away; while the database is silent, each takes some 30 KB. */
const MAX_CALLS = 2048;

/** Connections of one core. More of them only wait for each other in the database, and opening one is slow. */
const POOL_SIZE = 32;

/** How long an index may take to be built; milliseconds. */
const INDEX_BUILD_MS = 600_000;

/** How often a call whose outcome is unknown, or that lost a race, is tried; and the first pause in between. */
const ATTEMPTS = 8;
const FIRST_PAUSE_MS = 10;

/** The database, for the adapter's parts. */
export interface Connection extends Collections, Batching {
  /** Whether the unique indexes stand that every promise rests on. */
  readonly indexes: Indexes;
  /**
   * Runs a call within its deadline; rejects with StoreUnavailable when the database cannot be reached.
   *
   * @param body gets the deadline's signal: after it, nothing more may be begun
   */
  call<Result>(body: (deadline: AbortSignal) => Promise<Result>): Promise<Result>;
  /** Runs what consists of several calls, and looks, within the deadline of one. */
  calls<Result>(body: (deadline: AbortSignal) => Promise<Result>): Promise<Result>;
  /** Rejects with StoreUnavailable, and why, unless the database answers and every index is as it must be. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** Codes for an index that another one, of the same key or of the same name, keeps from being made. */
const INDEX_CONFLICTS: readonly unknown[] = [85, 86];

/**
 * Answers that a failover cannot take back, asked of the one server that cannot be behind. Set where the database is named:
 * a client would let the address overrule them.
 */
const CONCERNS = {
  readConcern: new ReadConcern('majority'),
  writeConcern: new WriteConcern('majority', undefined, true),
  readPreference: 'primary',
} as const;

/**
 * Connects to a database, and sees to its indexes. When that takes long, or the database is not there yet, it goes on behind
 * the scenes; until it is done, calls reject.
 *
 * @param url `mongodb://…` or `mongodb+srv://…`, with the database's name in its path; default `lead-intake`
 * @param observer is told of every command
 */
export async function connect<Caller>(url: string, observer?: StoreObserver<Caller>): Promise<Connection> {
  const client = new MongoClient(url, {
    appName: 'lead-intake',
    socketTimeoutMS: STORE_SILENCE_MS,
    connectTimeoutMS: STORE_SILENCE_MS,
    serverSelectionTimeoutMS: STORE_SILENCE_MS,
    // Whoever waits for a connection waits as long as for anything else: the call's deadline ends it.
    waitQueueTimeoutMS: STORE_CALL_MS,
    maxPoolSize: POOL_SIZE,
  });
  const database = databaseOf(client, url);
  const closing = new AbortController();
  const underWay = new Set<Promise<unknown>>();
  const severalUnderWay = new Set<Promise<unknown>>();
  const lasting = new ReconnectingClient(client, closing.signal);
  const indexes = new IndexKeeper({
    look: (collection) => lasting.ask(() => indexFaults(database, collection)),
    make: (index) => withSlowClient(url, closing.signal, (patient) => buildIndex(patient, index)),
  });
  const firstSight = lasting.connecting.then(() => indexes.see());
  const keeping = firstSight.then(() => indexes.keep(closing.signal));

  await Promise.race([firstSight, sleep(STORE_SILENCE_MS, undefined, { ref: false })]);

  return {
    ...collectionsOf(database, observer),
    indexes,

    async call(body) {
      if (closing.signal.aborted) throw new StoreUnavailable('the store is closed');
      if (underWay.size >= MAX_CALLS) throw new StoreUnavailable(`${MAX_CALLS} calls are under way`);
      return lasting.ask((deadline) => {
        // Beyond its deadline, too, a call is under way until it has ended.
        const work = body(deadline).finally(() => underWay.delete(work));
        underWay.add(work);
        return work;
      });
    },

    calls(body) {
      const work = withinDeadline(body).finally(() => severalUnderWay.delete(work));
      severalUnderWay.add(work);
      return work;
    },

    async check() {
      const faults = await Promise.all(PROMISED.map((collection) => indexes.fault(collection)));
      const found = faults.filter((fault) => fault !== undefined);
      if (found.length > 0) throw creationsRefused(found);
    },

    async close() {
      closing.abort();
      const ended = Promise.allSettled([lasting.connecting, keeping, ...underWay, ...severalUnderWay]);
      // Whatever has a deadline has ended by then; what has none never will.
      await Promise.race([ended, sleep(STORE_CLOSE_MS, undefined, { ref: false })]);
      await client.close();
    },
  };
}

/** What the driver finds wrong with an address; it may carry a password, so it is not repeated. */
export function mongoUrlFault(url: string): string | undefined {
  try {
    // Connects to nothing before it is asked to.
    new MongoClient(url);
    return undefined;
  } catch (error) {
    // What it takes for a host may be the end of a password.
    const message = (error as Error).message
      .replaceAll(url, '…')
      .replace(/Unable to parse .*/, 'a host cannot be read');
    return `is refused by the driver: ${message}`;
  }
}

/**
 * Tries a step again and again until it knows its outcome, pausing longer each time.
 *
 * @param step gives undefined when it does not know yet
 */
export async function untilKnown<Outcome>(
  deadline: AbortSignal,
  step: (attempt: number) => Promise<Outcome | undefined>,
): Promise<Outcome> {
  let fault: unknown;
  for (let attempt = 0; attempt < ATTEMPTS && !deadline.aborted; attempt += 1) {
    // The pauses differ, so that two who disturb each other do not go on doing so in step.
    if (attempt > 0) await sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1) * (0.5 + Math.random()));
    try {
      const outcome = await step(attempt);
      if (outcome !== undefined) return outcome;
    } catch (error) {
      fault = error;
    }
  }
  throw new StoreUnavailable('the outcome is not known', fault);
}

/**
 * Does what takes long, building an index or looking at everything, with a client of its own.
 *
 * @param closing ends it, finished or not
 */
export async function withSlowClient<Result>(
  url: string,
  closing: AbortSignal | undefined,
  work: (database: Db) => Promise<Result>,
): Promise<Result> {
  const client = new MongoClient(url, {
    socketTimeoutMS: INDEX_BUILD_MS,
    connectTimeoutMS: STORE_SILENCE_MS,
    serverSelectionTimeoutMS: STORE_SILENCE_MS,
  });
  const end = () => client.close();
  closing?.addEventListener('abort', end, { once: true });
  try {
    return await work(databaseOf(client, url));
  } finally {
    closing?.removeEventListener('abort', end);
    await client.close();
  }
}

/** Makes an index; gives what keeps it from being made, in words that have ids of documents and nothing of what is in them. */
async function buildIndex(database: Db, index: Index): Promise<string | undefined> {
  try {
    await makeIndex(database, index);
    return undefined;
  } catch (error) {
    // Servers word it differently when documents stand in the way, and some tell what is in them.
    if (INDEX_CONFLICTS.includes((error as MongoError).code)) return 'another index stands in its place: drop that one';
    return describeDuplicates(await duplicatesUnder(database, index)) ?? (error as Error).message;
  }
}

/** The driver would call it `test` when the address names none. */
function databaseOf(client: MongoClient, url: string): Db {
  const isNamed = /^[^/]+:\/\/[^/]+\/[^?]/.test(url);
  return client.db(isNamed ? undefined : 'lead-intake', CONCERNS);
}
