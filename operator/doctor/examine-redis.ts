import { errorSummary } from '../../common/error-summary.ts';
import type { GatewayConfig } from '../../gateway/config.ts';
import { clusterClient, firstConnection, singleClient } from '../../gateway/quota/redis-client.ts';
import { type Finding, Notes } from './finding.ts';

/** Looks at the Redis that counts requests. */
export async function examineRedis({ REDIS_URL, REDIS_CLUSTER }: GatewayConfig): Promise<readonly Finding[]> {
  const notes = new Notes('Redis');
  if (!REDIS_URL) {
    notes.warning('is not set: each gateway counts for itself, so there should be one gateway only');
    return notes.findings;
  }
  const redis = REDIS_CLUSTER ? clusterClient(REDIS_URL.reveal()) : singleClient(REDIS_URL.reveal());
  // The call that fails says no more than that the connection is closed.
  let reason: unknown;
  redis.on('error', (error) => {
    reason = error;
  });
  try {
    await firstConnection(redis);
    const askedAt = Date.now();
    const [seconds, micros] = (await redis.time()) as unknown as [string, string];
    notes.well(`answers, this time within ${Date.now() - askedAt} ms; every request waits for it`);
    notes.clock('Redis', new Date(Number(seconds) * 1000 + Number(micros) / 1000), askedAt, 0);
    const policy = /^maxmemory_policy:(\S+)/m.exec(await redis.info('memory'))?.[1];
    if (policy !== undefined && policy !== 'noeviction') {
      notes.warning(`forgets keys when its memory is full (${policy}), and with them what was counted: use noeviction`);
    }
  } catch (error) {
    notes.fault(
      `does not answer: ${errorSummary(reason ?? error)}. Look at REDIS_URL, its password, and whether it is a cluster`,
    );
  } finally {
    redis.disconnect();
  }
  return notes.findings;
}
