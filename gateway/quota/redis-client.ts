import { Cluster, Redis, type RedisOptions } from 'ioredis';

/** A connection to one Redis, or to all nodes of a Redis Cluster. */
export type RedisClient = Redis | Cluster;

/**
 * When a silent connection is given up; milliseconds. Until then each command waits in the client's memory for its answer.
 * Much longer than anybody waits for a count, so that this process's own pauses do not cost it a sound connection.
 */
const SILENCE_MS = 1000;

/** When connecting is given up; milliseconds. Node gives the first of a host's addresses 500 before it tries the next. */
const CONNECT_WITHIN_MS = 600;

/** How long a connection that is being closed waits for the server to close it, too; milliseconds. */
const DISCONNECT_WITHIN_MS = 50;

/** The time between two attempts to connect; milliseconds. It does not grow, however long Redis is away. */
const RETRY_MS = 50;

/** How often a cluster is asked which node has which keys, beside after each surprise; milliseconds. */
const SLOTS_EVERY_MS = 5000;

/** How a connection behaves. How long a command may take is for its caller to bound. */
const CONNECTION = {
  connectTimeout: CONNECT_WITHIN_MS,
  disconnectTimeout: DISCONNECT_WITHIN_MS,
  socketTimeout: SILENCE_MS,
  // One that was sent may have counted, so it is never sent again.
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  // The check would sleep for up to a server's loading time. While it loads, each answer says so.
  enableReadyCheck: false,
} satisfies RedisOptions;

/** Connects to one Redis, again and again. */
export function singleClient(redisUrl: string): Redis {
  const redis: Redis = new Redis(redisUrl, {
    ...CONNECTION,
    lazyConnect: true,
    retryStrategy: () => RETRY_MS,
    // A command that cannot be sent now fails now.
    enableOfflineQueue: false,
    // After a failover the host's name leads to another server, and the old connection to one that refuses writes. Of
    // many refusals at once the first ends the connection; the client would do it again for each.
    reconnectOnError: (error) => error.message.includes('READONLY') && redis.stream.writable,
  });
  return redis;
}

/** Connects to the cluster that a node belongs to, again and again. */
export function clusterClient(redisUrl: string): Cluster {
  const { protocol, hostname, port, username, password } = new URL(redisUrl);
  return new Cluster([{ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) }], {
    lazyConnect: true,
    clusterRetryStrategy: () => RETRY_MS,
    retryDelayOnFailover: RETRY_MS,
    enableReadyCheck: false,
    slotsRefreshInterval: SLOTS_EVERY_MS,
    slotsRefreshTimeout: SILENCE_MS,
    redisOptions: {
      ...CONNECTION,
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
      ...(protocol === 'rediss:' && { tls: {} }),
    },
  });
}
