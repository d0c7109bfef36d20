import { setTimeout as sleep } from 'node:timers/promises';
import { type Db, MongoClient, type MongoClientOptions, type MongoError, ReadConcern, WriteConcern } from 'mongodb';
import {
  READINESS_CHECK_INTERVAL_MS,
  STORE_CALL_MS,
  STORE_CLOSE_MS,
  STORE_SILENCE_MS,
} from '../../../common/deadlines.ts';
import { BrokenInvariant } from '../../../common/invariants.ts';
import { describeDuplicates } from '../database-state.ts';
import { type ReportUnreadable, StoreUnavailable, UnreadableRecord } from '../port/faults.ts';
import type { StoreListeners } from '../port/listeners.ts';
import type { Store } from '../store.ts';
import { type Collections, createCollections } from './collections.ts';
import { databaseNameIn } from './database-name.ts';
import {
  createIndex,
  duplicatesUnder,
  type Index,
  type Indexes,
  indexFaults,
  indexKeeper,
  UNIQUELY_INDEXED,
} from './indexes.ts';
import { migrateFrom12 } from './migrate.ts';
import { causalSessions, closeClient, reconnecting, serverCheck } from './reconnecting-client.ts';
import { isConflict, NotRepeatable, serverRefusal } from './server-refusal.ts';

/** The maximum number of calls in flight; further ones are rejected. Each takes about 30 KB. */
const MAX_CALLS = 2048;

/** The number of connections per core. More would only wait for each other in the database, and opening one is slow. */
const POOL_SIZE = 32;

const INDEX_BUILD_MS = 600_000;

const PREPARE_AGAIN_MS = 1000;

/** The maximum number of attempts of a call whose outcome is unknown or that lost a race, and the first backoff. */
const MAX_ATTEMPTS = 8;
const MIN_BACKOFF_MS = 10;

/** An open database, for the parts of the adapter. */
export interface Connection extends Collections {
  readonly indexes: Indexes;
  /** Called for each unreadable record that a call skips. */
  readonly report: ReportUnreadable;
  /**
   * Runs a call within its deadline. Rejects with StoreUnavailable when the database is unavailable.
   *
   * @param body gets a signal that aborts at the deadline; it must not send anything after that
   */
  call<Result>(body: (deadline: AbortSignal) => Promise<Result>): Promise<Result>;
}

const INDEX_CONFLICTS: readonly unknown[] = [85, 86];

/**
 * Reads and writes that a failover cannot revert, on the primary, which is never behind. Set on the database, because
 * the URL could override them on the client.
 */
const CONCERNS = {
  readConcern: new ReadConcern('majority'),
  writeConcern: new WriteConcern('majority', undefined, true),
  readPreference: 'primary',
} as const;

/** Options that override those in the URL. */
const CLIENT_OPTIONS: MongoClientOptions = {
  appName: 'lead-intake',
  socketTimeoutMS: STORE_SILENCE_MS,
  connectTimeoutMS: STORE_SILENCE_MS,
  serverSelectionTimeoutMS: STORE_SILENCE_MS,
  // The call's deadline limits the wait for a connection.
  waitQueueTimeoutMS: STORE_CALL_MS,
  maxPoolSize: POOL_SIZE,
  // The driver learns of a server's step-down at once, or at its next heartbeat.
  serverMonitoringMode: 'stream',
  heartbeatFrequencyMS: READINESS_CHECK_INTERVAL_MS,
};

/**
 * Connects to a database and prepares it: migrates it from release 1.2, and builds indexes. If that takes longer than
 * STORE_SILENCE_MS, it continues in the background, and calls reject until it is done.
 *
 * @param url `mongodb://…` or `mongodb+srv://…`, with the database's name in its path; default `lead-intake`
 * @throws StoreUnavailable when the database has data of a release before 1.2
 */
export async function connect(
  url: string,
  { observer, report = () => {}, slow }: StoreListeners = {},
): Promise<Connection & Pick<Store, 'check' | 'close'>> {
  const client = new MongoClient(url, CLIENT_OPTIONS);
  const database = selectDatabase(client, url);
  const closing = new AbortController();
  const inFlight = new Set<Promise<unknown>>();
  const reconnectingClient = reconnecting(client, closing.signal);
  const sessions = causalSessions(client, database);
  const indexes = indexKeeper({
    check: (collection) => reconnectingClient.run(() => indexFaults(database, collection)),
    build: (index) => withSlowClient(url, closing.signal, (slow) => buildIndex(slow, index)),
  });
  let refusal: StoreUnavailable | undefined;
  const preparing = reconnectingClient.connecting().then(prepare);
  client.on('serverDescriptionChanged', ({ previousDescription, newDescription }) => {
    if (newDescription.type !== previousDescription.type) indexes.forget();
  });

  await Promise.race([preparing, sleep(STORE_SILENCE_MS, undefined, { ref: false })]);
  if (refusal) {
    closing.abort();
    await closeClient(client);
    throw refusal;
  }

  /** Until the database is of this release, its indexes count as unchecked, so no lead is created. */
  async function prepare(): Promise<void> {
    for (let attempt = 0; !closing.signal.aborted; attempt += 1) {
      try {
        // With many leads, a migration may take longer than a call.
        refusal = await (attempt === 0
          ? reconnectingClient.run(() => migrateFrom12(database))
          : withSlowClient(url, closing.signal, migrateFrom12));
        return refusal ? undefined : await indexes.start(closing.signal);
      } catch {
        await sleep(PREPARE_AGAIN_MS, undefined, { signal: closing.signal, ref: false }).catch(() => {});
      }
    }
  }

  return {
    ...createCollections(database, sessions.run, observer, slow),
    indexes,
    report,

    async call(body) {
      if (closing.signal.aborted) throw new StoreUnavailable('the store is closed');
      if (refusal) throw refusal;
      if (inFlight.size >= MAX_CALLS) throw new StoreUnavailable(`${MAX_CALLS} calls are in flight`);
      return reconnectingClient.run((deadline) => {
        // After its deadline, a call stays in flight until it has ended.
        const work = body(deadline).finally(() => inFlight.delete(work));
        inFlight.add(work);
        return work;
      });
    },

    async check() {
      if (refusal) throw refusal;
      await reconnectingClient.run(sessions.checkWrites);
      await indexes.expectValid(...UNIQUELY_INDEXED);
    },

    async close() {
      closing.abort();
      const indexesEnded = preparing.then(() => indexes.ended());
      const ended = Promise.allSettled([reconnectingClient.connecting(), indexesEnded, ...inFlight]);
      // Everything with a deadline has ended by then.
      await Promise.race([ended, sleep(STORE_CLOSE_MS, undefined, { ref: false })]);
      await closeClient(client);
    },
  };
}

/**
 * Retries a step with exponential backoff until its outcome is known. A refusal by the server is an outcome, and so is
 * an UnreadableRecord. A step that writes must first find out whether an earlier attempt took effect.
 *
 * @param step returns undefined while the outcome is unknown
 */
export async function untilKnown<Outcome>(
  deadline: AbortSignal,
  step: () => Promise<Outcome | undefined>,
): Promise<Outcome> {
  let fault: unknown;
  for (let attempt = 0; attempt < MAX_ATTEMPTS && !deadline.aborted; attempt += 1) {
    if (attempt > 0) await backOff(attempt);
    try {
      const outcome = await step();
      if (outcome !== undefined) return outcome;
    } catch (error) {
      throwIfFinal(error);
      fault = error;
    }
  }
  throw new StoreUnavailable('the outcome is unknown', fault);
}

/** Waits before a retry. Jitter keeps two conflicting calls from retrying in step. */
const backOff = (attempt: number) => sleep(MIN_BACKOFF_MS * 2 ** (attempt - 1) * (0.5 + Math.random()));

/**
 * Returns a `call` that retries its body after a write conflict, so the body must be repeatable. Some engines abort one
 * of two commands that write the same records in different orders.
 */
export const retryingCall =
  ({ call }: Connection): Connection['call'] =>
  (body) =>
    call(async (deadline) => {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await body(deadline);
        } catch (error) {
          if (!isConflict(error) || attempt === MAX_ATTEMPTS || deadline.aborted) throw error;
        }
        await backOff(attempt);
      }
    });

/** Throws an error that a retry would meet again. */
export function throwIfFinal(error: unknown): void {
  if ([NotRepeatable, UnreadableRecord, BrokenInvariant].some((type) => error instanceof type)) throw error;
  const refusal = serverRefusal(error);
  if (refusal) throw refusal;
}

/** Runs slow work, such as building an index, with its own client. @param closing aborts the work */
export async function withSlowClient<Result>(
  url: string,
  closing: AbortSignal | undefined,
  work: (database: Db, client: MongoClient) => Promise<Result>,
): Promise<Result> {
  const client = new MongoClient(url, {
    socketTimeoutMS: INDEX_BUILD_MS,
    connectTimeoutMS: STORE_SILENCE_MS,
    serverSelectionTimeoutMS: STORE_SILENCE_MS,
  });
  const expectRightServer = serverCheck(client);
  const abort = () => closeClient(client);
  closing?.addEventListener('abort', abort, { once: true });
  try {
    await client.connect().finally(expectRightServer);
    return await work(selectDatabase(client, url), client);
  } finally {
    closing?.removeEventListener('abort', abort);
    await closeClient(client);
  }
}

/** Builds an index. Returns why that failed, if so. The text contains no data of documents except their ids. */
async function buildIndex(database: Db, index: Index): Promise<string | undefined> {
  try {
    await createIndex(database, index);
    return undefined;
  } catch (error) {
    // Servers word the error about duplicates differently, and some include values.
    if (INDEX_CONFLICTS.includes((error as MongoError).code))
      return 'another index has its name or key; drop that index';
    return describeDuplicates(await duplicatesUnder(database, index)) ?? (error as Error).message;
  }
}

const selectDatabase = (client: MongoClient, url: string): Db => client.db(databaseNameIn(url, client), CONCERNS);
