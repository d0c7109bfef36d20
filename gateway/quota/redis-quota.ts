import { REDIS_ANSWER_MS } from '../../common/deadlines.ts';
import { type Quota, type QuotaPolicy, QuotaUnavailable } from './quota-port.ts';
import { clusterClient, firstConnection, type RedisClient, singleClient } from './redis-client.ts';
import { defineWindowCommands, windowKeys } from './redis-window.ts';

/** How many parts the deadline is waited for in. */
const SLICES = 5;

/** What readiness counts under. No API key has this id. */
const PROBE = 'ready';

/** More requests than there ever are: readiness is not refused for having been asked for too often. */
const NO_LIMIT = 1e15;

/**
 * Counts in Redis, for all gateways that use the same one. It connects by itself, again and again: a Redis that is away
 * at the start or later, or refuses, costs answers (QuotaUnavailable) only as long as that lasts.
 *
 * A window that is under way when the policy changes ends as it began, or a new length from now if that is earlier.
 *
 * @param redisUrl `redis://` or `rediss://`, with user, password and database where needed; of a cluster: any of its nodes;
 *   `redis+sentinel://` (`gateway/quota/sentinel-address.ts`)
 * @param isCluster whether each key has a node of its own (Redis Cluster). One key is one count, so no count needs two nodes
 */
export function createRedisQuota(policy: QuotaPolicy, redisUrl: string, isCluster: boolean): Quota {
  const redis = isCluster ? clusterClient(redisUrl) : singleClient(redisUrl);
  defineWindowCommands(redis);
  const windowMs = policy.windowSeconds * 1000;

  let connectionFault: Error | undefined;
  redis.on('error', (error) => {
    connectionFault = error;
  });
  redis.on('ready', () => {
    connectionFault = undefined;
  });

  // Requests that come before the first attempt has an outcome wait for it.
  const firstAttempt = firstConnection(redis).catch(() => {});

  async function count<T>(counting: () => Promise<T>): Promise<T> {
    try {
      // A script that the server has forgotten is sent a second time, with a timeout of its own: one deadline for both.
      return await withinDeadline(firstAttempt, () => {
        // A cluster's client would keep what it cannot send until it can, however much that is.
        if (redis.status !== 'ready') throw new Error('there is no connection');
        return counting();
      });
    } catch (error) {
      // Without a connection the error only says that there is none.
      const reason = redis.status === 'ready' ? error : (connectionFault ?? error);
      // An error of the client also holds the command that failed, which can be the one with the password.
      throw new QuotaUnavailable(`Redis does not count: ${messageOf(reason)}`);
    }
  }

  let closed: Promise<void> | undefined;
  return {
    consume: (apiKeyId) =>
      count(async () => {
        const counted = await redis.consumeRequest(...windowKeys(apiKeyId), policy.limit, windowMs);
        const [isAdmitted, remaining, resetSeconds, window] = counted;
        return { admitted: isAdmitted === 1, limit: policy.limit, remaining, resetSeconds, window };
      }),
    putBack: (apiKeyId, window) =>
      count(async () => {
        await redis.putRequestBack(...windowKeys(apiKeyId), window);
      }),
    // A ping would also be answered by a replica, a server that is loading and one without memory left.
    ready: () =>
      count(() => redis.consumeRequest(...windowKeys(PROBE), NO_LIMIT, windowMs)).then(
        () => true,
        () => false,
      ),
    close() {
      closed ??= disconnect(redis);
      return closed;
    },
  };
}

/** Closes the connection for good. */
async function disconnect(redis: RedisClient): Promise<void> {
  // Between two attempts there is no connection whose end could be waited for.
  const ended =
    redis.status === 'reconnecting' || redis.status === 'end'
      ? undefined
      : new Promise<void>((resolve) => redis.once('end', () => resolve()));
  redis.disconnect();
  await ended;
}

/**
 * Waits for something, then works. What is late before it has begun does not begin.
 *
 * The deadline is counted in slices. A process that was busy itself finds one slice over, however long it was busy, and
 * reads the answers that have come meanwhile before the next one can be: its own delay is not taken for Redis's.
 *
 * @throws Error when there is no answer at the deadline
 */
async function withinDeadline<T>(wait: Promise<void>, work: () => Promise<T>): Promise<T> {
  let over = false;
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    const slice = (left: number) => {
      timer = setTimeout(() => {
        if (left > 1) return slice(left - 1);
        over = true;
        reject(new Error(`no answer within ${REDIS_ANSWER_MS} ms`));
      }, REDIS_ANSWER_MS / SLICES);
    };
    slice(SLICES);
  });
  try {
    return await Promise.race([wait.then(() => (over ? deadline : work())), deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** An attempt at several addresses fails with an error that has a code and no message. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || ('code' in error ? String(error.code) : error.name);
}
