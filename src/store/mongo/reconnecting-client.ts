import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ClientSession,
  type ClusterTime,
  type Db,
  type MongoClient,
  MongoServerError,
  ServerType,
  type Timestamp,
  TopologyType,
} from 'mongodb';
import { STORE_CALL_MS, STORE_DISCONNECT_MS, STORE_SILENCE_MS } from '../../../common/deadlines.ts';
import { BrokenInvariant } from '../../../common/invariants.ts';
import { StoreUnavailable, UnreadableRecord } from '../port/faults.ts';
import type { Perform } from './collections.ts';
import { isDuplicate, NotRepeatable, serverRefusal } from './server-refusal.ts';

const RECONNECT_DELAY_MS = 500;

/**
 * How long every call may fail before the client is reconnected; milliseconds. A command that the driver sends at the
 * very moment its connection is lost never ends; if that is the driver's own heartbeat, it stops monitoring the server
 * and fails every call for ever.
 */
const RECONNECT_AFTER_MS = STORE_CALL_MS;

/** Keeps a client connected to a database that may be unavailable at any time, until it is closed. */
export function reconnecting(client: MongoClient, closing: AbortSignal) {
  const expectRightServer = serverCheck(client);
  let isConnected = false;
  let lastError: unknown;
  let failingSince: number | undefined;
  // A client whose first use fails stays broken, so it is not used before it is connected.
  let connecting = connectBy(() => client.connect());

  /** Retries a step that connects; calls are accepted once it succeeds. */
  async function connectBy(step: () => Promise<unknown>): Promise<void> {
    while (!closing.aborted && !isConnected) {
      try {
        await step();
        failingSince = undefined;
        isConnected = true;
      } catch (error) {
        lastError = error;
        await sleep(RECONNECT_DELAY_MS, undefined, { signal: closing }).catch(() => {});
      }
    }
  }

  return {
    connecting: () => connecting,

    async run<Result>(body: (deadline: AbortSignal) => Promise<Result>): Promise<Result> {
      expectRightServer();
      if (!isConnected) throw new StoreUnavailable('the database cannot be reached', lastError);
      try {
        const result = await withinDeadline(body);
        failingSince = undefined;
        return result;
      } catch (error) {
        // The server has answered: another connection would not help.
        if (error instanceof NotRepeatable) throw error;
        failingSince ??= performance.now();
        if (isConnected && performance.now() - failingSince > RECONNECT_AFTER_MS) {
          isConnected = false;
          lastError = error;
          connecting = connectBy(async () => {
            await closeClient(client);
            await client.connect();
          });
        }
        throw error;
      }
    },
  };
}

/** A server that responds, and is not the one that the address means. */
export class WrongServer extends StoreUnavailable {}

/**
 * Returns a function that throws WrongServer if the server of a client must not be used. Of servers that are not
 * of the replica set of the address, the driver says only that it finds none. With
 * `directConnection` the driver takes any member of a replica set, and asks it to answer reads even as a secondary,
 * which lags behind.
 */
export function serverCheck(client: MongoClient): () => void {
  let isOtherMember = false;
  // Also emitted with each connection after the first, and when the member's role changes.
  client.on('topologyDescriptionChanged', ({ newDescription: { type, servers } }) => {
    isOtherMember =
      type === TopologyType.Single && [...servers.values()].some((each) => OTHER_MEMBERS.includes(each.type));
  });
  const { replicaSet } = client.options;
  const found = new Set<string>();
  client.on('serverHeartbeatSucceeded', ({ reply }) => found.add(reply.setName ?? 'none'));
  return () => {
    if (isOtherMember) throw new WrongServer(NOT_PRIMARY);
    if (!replicaSet || found.size === 0 || found.has(replicaSet)) return;
    const own = [...found].join(' or ');
    throw new WrongServer(
      `the replica set of the server is ${own}, and that of the address ${replicaSet}: correct replicaSet`,
    );
  };
}

const NOT_PRIMARY =
  'the server of the address is not the primary of its replica set: name the primary, or remove directConnection';

const OTHER_MEMBERS: readonly ServerType[] = [
  ServerType.RSSecondary,
  ServerType.RSArbiter,
  ServerType.RSOther,
  ServerType.RSGhost,
];

/** The part of a client that has its connections; the driver's types leave it out. */
interface Topology {
  closeCheckedOutConnections(): void;
  close(): void;
}

/**
 * Closes a client within STORE_DISCONNECT_MS. A driver whose command was written at the very moment its connection was
 * lost waits for it for ever, and its connections keep the process.
 */
export async function closeClient(client: MongoClient): Promise<void> {
  const closed = client.close();
  const isClosed = await Promise.race([closed.then(() => true), sleep(STORE_DISCONNECT_MS, false, { ref: false })]);
  if (isClosed) return;
  // What `close` does first and last, neither of which sends anything.
  const { topology } = client as unknown as { readonly topology?: Topology };
  topology?.closeCheckedOutConnections();
  topology?.close();
}

/**
 * Bounds a whole call; the driver bounds only its steps. After an error of the driver the outcome is unknown, unless it is
 * a refusal by the server.
 */
async function withinDeadline<Result>(body: (deadline: AbortSignal) => Promise<Result>): Promise<Result> {
  const deadline = new AbortController();
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    deadline.abort();
    reject(new StoreUnavailable(`the database did not respond within ${STORE_CALL_MS} ms`));
  }, STORE_CALL_MS);
  try {
    return await Promise.race([body(deadline.signal), timeout]);
  } catch (error) {
    const isOwn = [StoreUnavailable, UnreadableRecord, BrokenInvariant].some((own) => error instanceof own);
    throw isOwn ? error : (serverRefusal(error) ?? new StoreUnavailable('the database does not respond', error));
  } finally {
    clearTimeout(timer);
  }
}

/**
 * TimeProofMismatch, ClusterTimeFailsRateLimiter and KeyNotFound: the times are of another cluster, such as before a
 * restored backup.
 */
const FOREIGN_TIMES: readonly unknown[] = [204, 205, 211];

/** The document that a check writes. Only this service's readiness uses its collection. */
interface ReadinessDocument {
  readonly _id: 'core';
  readonly checkedAt: Date;
}

/**
 * Causally consistent sessions, one for each command. Reads of a majority alone may go back to an earlier state after an
 * election: what the new primary knows to be on a majority lags behind what the former one acknowledged. Therefore each
 * command names the latest time that any reply had, and the server waits until it has got that far. What other cores were told
 * is in the log of whoever is elected, so a command names the time of that as well.
 *
 * One session must not be shared by concurrent writes: the server numbers the retryable writes of a session, and refuses
 * a number that arrives late. A server that sends no times, such as FerretDB, gets the same commands as without.
 */
export function causalSessions(client: MongoClient, database: Db) {
  const readiness = database.collection<ReadinessDocument>('readiness');
  let operationTime: Timestamp | undefined;
  let clusterTime: ClusterTime | undefined;
  /** What became of the writes since the last check. */
  let sinceCheck: 'succeeded' | 'failed' | undefined;

  function remember({
    operationTime: operation,
    clusterTime: cluster,
  }: Pick<ClientSession, 'operationTime' | 'clusterTime'>) {
    if (!operationTime || !operation || operation.greaterThan(operationTime)) operationTime = operation;
    if (!clusterTime || !cluster || cluster.clusterTime.greaterThan(clusterTime.clusterTime)) clusterTime = cluster;
  }

  /** The sessions of commands under way. */
  const open = new Set<ClientSession>();

  /** Lets a session read nothing that is older than what is remembered. */
  function advance(session: ClientSession): void {
    if (clusterTime) session.advanceClusterTime(clusterTime);
    if (operationTime) session.advanceOperationTime(operationTime);
  }

  // It is told before any command is sent to the server, also those that wait for one.
  client.on(
    'serverDescriptionChanged',
    ({ previousDescription: before, newDescription: { type, electionId, $clusterTime } }) => {
      const isElected = type !== before.type || !electionId || !before.electionId?.equals(electionId);
      if (type !== ServerType.RSPrimary || !isElected || !$clusterTime) return;
      const logged = $clusterTime.clusterTime;
      if (!operationTime || logged.greaterThan(operationTime)) operationTime = logged;
      for (const session of open) advance(session);
    },
  );

  /** Runs a command in a session; its reply is known to every command that begins later. */
  const run: Perform = (name, command) =>
    client.withSession({ causalConsistency: true }, async (session) => {
      open.add(session);
      advance(session);
      try {
        const result = await command(session);
        remember(session);
        // An update may have matched, and so written, nothing.
        if (name === 'insert') sinceCheck ??= 'succeeded';
        return result;
      } catch (error) {
        const isForeign = error instanceof MongoServerError && FOREIGN_TIMES.includes(error.code);
        remember(isForeign ? {} : session);
        if (name !== 'find' && !isDuplicate(error)) sinceCheck = 'failed';
        throw error;
      } finally {
        open.delete(session);
      }
    });

  /**
   * Rejects unless a write can succeed, which reads do not tell: without a majority, on a full disk, or with a role that
   * may not write. Writes unless an insert has succeeded since the last check, and no write has failed.
   */
  async function checkWrites(): Promise<void> {
    const outcome = sinceCheck;
    sinceCheck = undefined;
    if (outcome === 'succeeded') return;
    const write = (session: ClientSession) => {
      const options = { session, upsert: true, maxTimeMS: STORE_SILENCE_MS };
      return readiness.updateOne({ _id: 'core' }, { $set: { checkedAt: new Date() } }, options);
    };
    // Of two cores that create the document, one is refused; it is there then.
    await run('update', write).catch((error) => (isDuplicate(error) ? run('update', write) : Promise.reject(error)));
  }

  return { run, checkWrites };
}
