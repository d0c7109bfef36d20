import { setTimeout as sleep } from 'node:timers/promises';
import { REDIS_OPEN_MS } from '../../../common/deadlines.ts';
import { createMemoryQuota } from './memory-quota.ts';
import type { Quota } from './quota-port.ts';
import { createRedisQuota } from './redis-quota.ts';

/**
 * Opens the quota. With Redis, waits at most REDIS_OPEN_MS for the outcome of the first connection attempt. A gateway that shares its port
 * must not refuse requests that the others could count.
 *
 * @param redisUrl undefined: in memory
 * @param isCluster whether `redisUrl` is the address of a node of a Redis Cluster
 * @param prefix of the names of all entries in Redis
 */
export async function openQuota(
  windowSeconds: number,
  redisUrl: string | undefined,
  isCluster: boolean,
  prefix = '',
): Promise<Quota> {
  if (redisUrl === undefined) return createMemoryQuota(windowSeconds);
  const { firstAttempt, ...quota } = createRedisQuota(windowSeconds, redisUrl, isCluster, prefix);
  await Promise.race([firstAttempt, sleep(REDIS_OPEN_MS, undefined, { ref: false })]);
  return quota;
}
