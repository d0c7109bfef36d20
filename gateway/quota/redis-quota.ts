import { REDIS_ANSWER_MS } from '../../common/deadlines.ts';
import { type Quota, QuotaUnavailable } from './quota-port.ts';
import { clusterClient, firstConnection, type RedisClient, singleClient } from './redis-client.ts';
import { defineWindowCommands, windowNames } from './redis-window.ts';

/** How many parts the deadline is waited for in. */
const SLICES = 5;

/** What readiness counts under. No API key has this id. */
const PROBE = { apiKeyId: 'ready', studioId: 'ready' };

/** More requests than there ever are: readiness is not refused for having been asked for too often. */
const NO_LIMIT = { key: 1e15, studio: undefined };

/**
 * Counts in Redis, for all gateways that use the same one. It connects by itself, again and again: a Redis that is away
 * at the start or later, or refuses, costs answers (QuotaUnavailable) only as long as that lasts.
 *
 * A window that is under way when its length changes ends as it began, or a new length from now if that is earlier.
 *
 * @param redisUrl `redis://` or `rediss://`, with user, password and database where needed; of a cluster: any of its nodes;
 *   `redis+sentinel://` (`gateway/quota/sentinel-address.ts`)
 * @param isCluster whether names have nodes of their own (Redis Cluster). What is counted together is on one
 */
export function createRedisQuota(windowSeconds: number, redisUrl: string, isCluster: boolean): Quota {
  const redis = isCluster ? clusterClient(redisUrl) : singleClient(redisUrl);
  defineWindowCommands(redis);
  const windowMs = windowSeconds * 1000;

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

  const consume: Quota['consume'] = (bearer, limits) =>
    count(async () => {
      const counts = limits.studio === undefined ? [limits.key] : [limits.key, limits.studio];
      const names = windowNames(bearer, isCluster)
        .slice(0, counts.length)
        .flatMap(({ counter, refusal }) => [counter, refusal]);
      const [isAdmitted, told, remaining, resetSeconds, ...windows] = await redis.consumeRequest(
        names.length,
        ...names,
        windowMs,
        ...counts,
      );
      const of = told === 1 ? 'key' : 'studio';
      const limit = counts[told - 1] as number;
      return { admitted: isAdmitted === 1, of, limit, remaining, resetSeconds, windows };
    });

  let closed: Promise<void> | undefined;
  return {
    consume,
    putBack: (bearer, windows) =>
      count(async () => {
        const names = windowNames(bearer, isCluster).slice(0, windows.length);
        await redis.putRequestBack(names.length, ...names.map(({ counter }) => counter), ...windows);
      }),
    // A ping would also be answered by a replica, a server that is loading and one without memory left.
    ready: () =>
      consume(PROBE, NO_LIMIT).then(
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
