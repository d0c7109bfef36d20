import { createMemoryQuota } from './memory-quota.ts';
import type { Quota } from './quota-port.ts';
import { createRedisQuota } from './redis-quota.ts';

/**
 * Opens the quota where requests are counted. It is there at once, even when Redis is not.
 *
 * @param redisUrl `redis://` or `rediss://`; undefined: in memory
 * @param isCluster whether that leads to a node of a Redis Cluster
 */
export function openQuota(windowSeconds: number, redisUrl: string | undefined, isCluster: boolean): Quota {
  return redisUrl === undefined
    ? createMemoryQuota(windowSeconds)
    : createRedisQuota(windowSeconds, redisUrl, isCluster);
}
