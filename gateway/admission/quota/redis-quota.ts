import { REDIS_TIMEOUT_MS } from '../../../common/deadlines.ts';
import { type Quota, QuotaUnavailable } from './quota-port.ts';
import { clusterClient, firstConnection, type RedisClient, singleClient } from './redis-client.ts';
import { defineWindowCommands, windowNames } from './redis-window.ts';

/** The number of timers that share the deadline. */
const SLICES = 5;

/** The callers of readiness checks, whose ids no API key has. On a cluster their counts spread over its nodes. */
const PROBE = { apiKeyId: 'ready', studioId: 'ready' };
const CLUSTER_PROBES = Array.from({ length: 32 }, (_, index) => ({ ...PROBE, studioId: `ready-${index}` }));

/** A limit so high that readiness checks are never refused. */
const NO_LIMIT = { key: 1e15, studio: undefined };

interface RedisQuota extends Quota {
  /** Resolves when the first connection attempt has succeeded or failed. */
  readonly firstAttempt: Promise<void>;
}

/**
 * Creates a quota in Redis, shared by all gateways that use it. It connects and reconnects in the background. While Redis is unreachable or
 * refuses, calls reject with QuotaUnavailable.
 *
 * When the window length changes, an open window keeps its end, or ends one new length from now if that is earlier.
 *
 * @param redisUrl `redis://` or `rediss://`, with user, password and database where needed, of any node of a cluster; or
 * `redis+sentinel://` (`gateway/admission/quota/sentinel-address.ts`)
 * @param isCluster whether it is a Redis Cluster. The counters of one studio are on one node
 * @param prefix of the names of all entries
 */
export function createRedisQuota(windowSeconds: number, redisUrl: string, isCluster: boolean, prefix = ''): RedisQuota {
  const redis = isCluster ? clusterClient(redisUrl) : singleClient(redisUrl);
  defineWindowCommands(redis);
  const windowMs = windowSeconds * 1000;

  let connectionFault: Error | undefined;
  /** Whether the connection uses another database than the address names: Redis refused to select that, and the client would go on. */
  let hasWrongDatabase = false;
  const isConnected = () => redis.status === 'ready' && !hasWrongDatabase;
  redis.on('connect', () => {
    hasWrongDatabase = false;
  });
  redis.on('error', (error: Error & { readonly command?: { readonly name: string } }) => {
    connectionFault = error;
    if (error.command?.name !== 'select') return;
    hasWrongDatabase = true;
    redis.disconnect(true);
  });
  redis.on('ready', () => {
    if (!hasWrongDatabase) connectionFault = undefined;
  });

  // Calls wait for the outcome of this first attempt.
  const firstAttempt = firstConnection(redis).catch(() => {});

  async function count<T>(counting: () => Promise<T>): Promise<T> {
    try {
      // One deadline for both attempts: the client resends a script that the server does not have, with a new timeout.
      return await withinDeadline(firstAttempt, () => {
        // Until a cluster's client is connected, it would queue commands without a limit.
        if (!isConnected()) throw new Error('not connected');
        return counting();
      });
    } catch (error) {
      // Without a connection, this error has no reason, but the last connection error has.
      const reason = isConnected() ? error : (connectionFault ?? error);
      // Logs only the message: the error object has the failed command, which may contain the password.
      throw new QuotaUnavailable(`Redis cannot count requests: ${describeRedisError(reason)}`);
    }
  }

  const consume: Quota['consume'] = (caller, { key, studio }, patienceMs = 0) =>
    count(async () => {
      const names = windowNames(caller, isCluster, prefix).flatMap(({ counter, refusal }) => [counter, refusal]);
      const args = [...names, windowMs, patienceMs, key, studio ?? ''];
      const reply = await redis.consumeRequest(names.length, ...args);
      // Any other reply, for example of a proxy, could make requests wait forever.
      if (!isCounted(reply)) throw new Error('its reply is not that of the script');
      const [isAdmitted, reported, limit, remaining, resetSeconds, waitMs, ...windows] = reply;
      const owner = reported === 1 ? 'key' : 'studio';
      return { admitted: isAdmitted === 1, waitMs, owner, limit, remaining, resetSeconds, windows };
    });

  let countedShare = 1;
  let closed: Promise<void> | undefined;
  return {
    firstAttempt,
    countedShare: () => countedShare,
    consume,
    refund: (caller, windows) =>
      count(async () => {
        const names = windowNames(caller, isCluster, prefix).slice(0, windows.length);
        await redis.refundRequest(names.length, ...names.map(({ counter }) => counter), ...windows);
      }),
    // A ping would not do: a replica, a loading server and one without memory also answer it.
    async fault() {
      const probes = isCluster ? CLUSTER_PROBES : [PROBE];
      const outcomes = await Promise.allSettled(probes.map((probe) => consume(probe, NO_LIMIT)));
      const faults = outcomes.flatMap((outcome) =>
        outcome.status === 'rejected' ? [describeRedisError(outcome.reason)] : [],
      );
      countedShare = 1 - faults.length / probes.length;
      // A failed node of a cluster affects only its own studios, and other gateways could not count for them either.
      return countedShare > 0 ? undefined : faults[0];
    },
    close() {
      closed ??= disconnect(redis);
      return closed;
    },
  };
}

const isCounted = (reply: unknown): boolean =>
  Array.isArray(reply) && reply.length >= 6 && reply.every((each) => Number.isSafeInteger(each) && each >= 0);

async function disconnect(redis: RedisClient): Promise<void> {
  // Between two connection attempts, no connection exists that could emit `end`.
  const ended =
    redis.status === 'reconnecting' || redis.status === 'end'
      ? undefined
      : new Promise<void>((resolve) => redis.once('end', () => resolve()));
  redis.disconnect();
  await ended;
}

/**
 * Waits for a promise, then starts the work, unless the deadline passes first.
 *
 * The deadline consists of several timers in a row. A busy process finds only one of them expired, however long it was busy. It then reads
 * the responses that arrived meanwhile, so its own delay does not count.
 *
 * @throws Error when there is no response at the deadline
 */
async function withinDeadline<T>(wait: Promise<void>, work: () => Promise<T>): Promise<T> {
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    const slice = (left: number) => {
      timer = setTimeout(() => {
        if (left > 1) return slice(left - 1);
        isOver = true;
        reject(new Error(`no response within ${REDIS_TIMEOUT_MS} ms`));
      }, REDIS_TIMEOUT_MS / SLICES);
    };
    slice(SLICES);
  });
  try {
    return await Promise.race([wait.then(() => (isOver ? deadline : work())), deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** Describes an error. A failed attempt to connect to several addresses has a code but no message. */
function describeRedisError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Removes a varying number, because the log treats a different text as a different fault.
  const message = error.message.replace(/ Retrying from scratch after \d+ms\./, '');
  return message || ('code' in error ? String(error.code) : error.name);
}
