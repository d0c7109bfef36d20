import { createMemoryQuota } from './memory-quota.ts';
import type { Quota } from './quota-port.ts';
import { createRedisQuota } from './redis-quota.ts';

/**
 * Opens the quota. Does not wait for Redis.
 *
 * @param redisUrl undefined: in memory
 * @param isCluster whether `redisUrl` is the address of a node of a Redis Cluster
 */
export function openQuota(windowSeconds: number, redisUrl: string | undefined, isCluster: boolean): Quota {
  return redisUrl === undefined
    ? createMemoryQuota(windowSeconds)
    : createRedisQuota(windowSeconds, redisUrl, isCluster);
}
