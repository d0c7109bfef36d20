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
 * How long every call may fail before the client reconnects; milliseconds. A command that the driver sends just as its
 * connection is lost never ends. If that is the driver's own heartbeat, it stops monitoring the server, and fails every
 * call forever.
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
        // The server has answered, so another connection would not help.
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

/** A server that responds, but must not be used: see serverCheck. */
export class WrongServer extends StoreUnavailable {}

/**
 * Returns a function that throws WrongServer if a client's server must not be used. If no server is in the address's
 * replica set, the driver only reports that it finds none. With `directConnection`, the driver takes any member of a
 * replica set, and reads even from a secondary, which lags behind.
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
    const actual = [...found].join(' or ');
    throw new WrongServer(
      `the replica set of the server is ${actual}, and that of the address ${replicaSet}: correct replicaSet`,
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

/** The part of a client with its connections, which the driver's types omit. */
interface Topology {
  closeCheckedOutConnections(): void;
  close(): void;
}

/**
 * Closes a client within STORE_DISCONNECT_MS. A driver that wrote a command just as its connection was lost waits for
 * it forever, and its connections keep the process alive.
 */
export async function closeClient(client: MongoClient): Promise<void> {
  const closed = client.close();
  const isClosed = await Promise.race([closed.then(() => true), sleep(STORE_DISCONNECT_MS, false, { ref: false })]);
  if (isClosed) return;
  // The first and last steps of `close`. Neither sends anything.
  const { topology } = client as unknown as { readonly topology?: Topology };
  topology?.closeCheckedOutConnections();
  topology?.close();
}

/**
 * Limits a whole call, because the driver limits only its steps. After an error of the driver the outcome is unknown,
 * unless the server refused the command.
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
    const isOwn = [StoreUnavailable, UnreadableRecord, BrokenInvariant].some((type) => error instanceof type);
    throw isOwn ? error : (serverRefusal(error) ?? new StoreUnavailable('the database does not respond', error));
  } finally {
    clearTimeout(timer);
  }
}

/**
 * TimeProofMismatch, ClusterTimeFailsRateLimiter and KeyNotFound: the times come from another cluster, for example from
 * before a restore.
 */
const FOREIGN_TIMES: readonly unknown[] = [204, 205, 211];

/** The document that a check writes. Only this service's readiness uses its collection. */
interface ReadinessDocument {
  readonly _id: 'core';
  readonly checkedAt: Date;
}

/**
 * Causally consistent sessions, one for each command. After an election, majority reads alone may return an earlier
 * state, because the new primary's knowledge of the majority lags behind what the former one acknowledged. Each command
 * therefore names the latest time of any reply, and the server waits until it has reached that time. The log of an elected
 * server has all writes that other cores were told of, so commands name the time of its log as well.
 *
 * Concurrent writes must not share a session. The server numbers the retryable writes of a session, and refuses a
 * number that arrives late. A server that sends no times, such as FerretDB, gets commands without times.
 */
export function causalSessions(client: MongoClient, database: Db) {
  const readiness = database.collection<ReadinessDocument>('readiness');
  let operationTime: Timestamp | undefined;
  let clusterTime: ClusterTime | undefined;
  /** The result of the writes since the last check. */
  let sinceCheck: 'succeeded' | 'failed' | undefined;

  function remember({ operationTime: operation, clusterTime: cluster }: ClientSession) {
    if (!operationTime || !operation || operation.greaterThan(operationTime)) operationTime = operation;
    if (!clusterTime || !cluster || cluster.clusterTime.greaterThan(clusterTime.clusterTime)) clusterTime = cluster;
  }

  /** The sessions of commands in flight. */
  const open = new Set<ClientSession>();

  /** Keeps a session from reading anything older than the remembered times. */
  function advance(session: ClientSession): void {
    if (clusterTime) session.advanceClusterTime(clusterTime);
    if (operationTime) session.advanceOperationTime(operationTime);
  }

  // The client emits this before it sends any command to the server, including waiting ones.
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

  /** Runs a command in a session. Every later command knows the time of its reply. */
  const run: Perform = (name, command) =>
    client.withSession({ causalConsistency: true }, async (session) => {
      open.add(session);
      advance(session);
      try {
        const result = await command(session);
        remember(session);
        // An update may have matched nothing, and so written nothing.
        if (name === 'insert') sinceCheck ??= 'succeeded';
        return result;
      } catch (error) {
        const isForeign = error instanceof MongoServerError && FOREIGN_TIMES.includes(error.code);
        if (isForeign) operationTime = clusterTime = undefined;
        else remember(session);
        if (name !== 'find' && !isDuplicate(error)) sinceCheck = 'failed';
        throw error;
      } finally {
        open.delete(session);
      }
    });

  /**
   * Rejects unless a write can succeed. Reads do not show that: there may be no majority, a full disk, or a read-only
   * role. Writes unless an insert has succeeded since the last check, and no write has failed.
   */
  async function checkWrites(): Promise<void> {
    const outcome = sinceCheck;
    sinceCheck = undefined;
    if (outcome === 'succeeded') return;
    const write = (session: ClientSession) => {
      const options = { session, upsert: true, maxTimeMS: STORE_SILENCE_MS };
      return readiness.updateOne({ _id: 'core' }, { $set: { checkedAt: new Date() } }, options);
    };
    // If two cores create the document, one is refused, and the document then exists.
    await run('update', write).catch((error) => (isDuplicate(error) ? run('update', write) : Promise.reject(error)));
  }

  return { run, checkWrites };
}
