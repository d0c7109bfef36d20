import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { REDIS_CONNECT_MS, REDIS_SILENCE_MS } from '../../../common/deadlines.ts';
import { readSentinelAddress } from './sentinel-address.ts';

/** A connection to one Redis, or to all nodes of a Redis Cluster. */
export type RedisClient = Redis | Cluster;

/** How long a closing connection waits for the server to close it, too; milliseconds. */
const DISCONNECT_TIMEOUT_MS = 50;

/** The constant delay between two connection attempts; milliseconds. */
const RETRY_MS = 50;

/** How often the slot map of a cluster is refreshed, besides after each redirection; milliseconds. */
const SLOTS_REFRESH_MS = 5000;

/** Options of every connection. Callers limit the duration of commands. */
const CONNECTION = {
  connectTimeout: REDIS_CONNECT_MS,
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  socketTimeout: REDIS_SILENCE_MS,
  // A sent command may have counted, so it is never sent again.
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  // The check would wait while a server loads its data. A loading server refuses each command anyway.
  enableReadyCheck: false,
} satisfies RedisOptions;

/** Creates a reconnecting client of the Redis at the address, or of the primary that its sentinels name. */
export function singleClient(redisUrl: string): Redis {
  const options = {
    ...CONNECTION,
    lazyConnect: true,
    retryStrategy: () => RETRY_MS,
    // A command that cannot be sent fails at once.
    enableOfflineQueue: false,
    // After a failover, the old connection leads to a server that refuses writes. The first refusal closes the connection; otherwise the
    // client would close it again for each further one.
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

/** Creates a reconnecting client of the cluster that a node belongs to. */
export function clusterClient(redisUrl: string): Cluster {
  const { protocol, hostname, port, username, password } = new URL(redisUrl);
  return new Cluster([{ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) }], {
    lazyConnect: true,
    // Otherwise the client would connect to a resolved address, which no certificate names.
    dnsLookup: (name, found) => found(null, name),
    clusterRetryStrategy: () => RETRY_MS,
    // With a delay, the client would resend commands that it sent before the connection broke. Without one, the next command finds out
    // which node has the keys now.
    retryDelayOnFailover: 0,
    enableReadyCheck: false,
    slotsRefreshInterval: SLOTS_REFRESH_MS,
    slotsRefreshTimeout: REDIS_SILENCE_MS,
    redisOptions: {
      ...CONNECTION,
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
      ...(protocol === 'rediss:' && { tls: {} }),
    },
  });
}

/** Connects, and waits for the outcome of the first attempt. @throws Error with the reason of the failure */
export function firstConnection(redis: RedisClient): Promise<void> {
  return new Promise((resolve, reject) => {
    // While no sentinel is reachable, the client retries forever, and this event is the only sign.
    redis.once('error', reject);
    redis.connect().then(resolve, reject);
  });
}
