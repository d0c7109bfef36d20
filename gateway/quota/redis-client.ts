import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { REDIS_CONNECT_MS, REDIS_SILENCE_MS } from '../../common/deadlines.ts';
import { readSentinelAddress } from './sentinel-address.ts';

/** A connection to one Redis, or to all nodes of a Redis Cluster. */
export type RedisClient = Redis | Cluster;

/** How long a connection that is being closed waits for the server to close it, too; milliseconds. */
const DISCONNECT_WITHIN_MS = 50;

/** The time between two attempts to connect; milliseconds. It does not grow, however long Redis is away. */
const RETRY_MS = 50;

/** How often a cluster is asked which node has which keys, beside after each surprise; milliseconds. */
const SLOTS_EVERY_MS = 5000;

/** How a connection behaves. How long a command may take is for its caller to bound. */
const CONNECTION = {
  connectTimeout: REDIS_CONNECT_MS,
  disconnectTimeout: DISCONNECT_WITHIN_MS,
  socketTimeout: REDIS_SILENCE_MS,
  // One that was sent may have counted, so it is never sent again.
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  // The check would sleep for up to a server's loading time. While it loads, each answer says so.
  enableReadyCheck: false,
} satisfies RedisOptions;

/** Connects to one Redis, again and again: the one at the address, or the one that its sentinels call the primary. */
export function singleClient(redisUrl: string): Redis {
  const options = {
    ...CONNECTION,
    lazyConnect: true,
    retryStrategy: () => RETRY_MS,
    // A command that cannot be sent now fails now.
    enableOfflineQueue: false,
    // After a failover the host's name leads to another server, and the old connection to one that refuses writes. Of
    // many refusals at once the first ends the connection; the client would do it again for each.
    reconnectOnError: (error) => error.message.includes('READONLY') && redis.stream.writable,
  } satisfies RedisOptions;
  const address = readSentinelAddress(redisUrl);
  const redis: Redis = address
    ? new Redis({
        ...options,
        ...address,
        sentinels: [...address.sentinels],
        sentinelRetryStrategy: () => RETRY_MS,
        sentinelCommandTimeout: REDIS_SILENCE_MS,
      })
    : new Redis(redisUrl, options);
  return redis;
}

/** Connects to the cluster that a node belongs to, again and again. */
export function clusterClient(redisUrl: string): Cluster {
  const { protocol, hostname, port, username, password } = new URL(redisUrl);
  return new Cluster([{ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) }], {
    lazyConnect: true,
    clusterRetryStrategy: () => RETRY_MS,
    // With a delay, what was sent before its node's connection broke would be sent again. With none, who comes next finds
    // out where the keys are now.
    retryDelayOnFailover: 0,
    enableReadyCheck: false,
    slotsRefreshInterval: SLOTS_EVERY_MS,
    slotsRefreshTimeout: REDIS_SILENCE_MS,
    redisOptions: {
      ...CONNECTION,
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
      ...(protocol === 'rediss:' && { tls: {} }),
    },
  });
}

/**
 * Begins to connect, and waits for what comes of the first attempt.
 *
 * @throws Error why it failed
 */
export function firstConnection(redis: RedisClient): Promise<void> {
  return new Promise((resolve, reject) => {
    // While all sentinels are away they are asked again and again, and this alone says so.
    redis.once('error', reject);
    redis.connect().then(resolve, reject);
  });
}
