import { errorSummary } from '../../common/error-summary.ts';
import { clusterClient, firstConnection, singleClient } from '../../gateway/admission/quota/redis-client.ts';
import type { GatewayConfig } from '../../gateway/config.ts';
import type { Notes } from './finding.ts';

/** Checks the Redis that counts requests. */
export async function examineRedis(notes: Notes, { REDIS_URL, REDIS_CLUSTER }: GatewayConfig): Promise<void> {
  if (!REDIS_URL)
    return notes.warning('is not set, so each gateway counts on its own: run one gateway only, or set REDIS_URL');
  const redis = REDIS_CLUSTER ? clusterClient(REDIS_URL.reveal()) : singleClient(REDIS_URL.reveal());
  // A failed call only reports that the connection is closed; this event has the reason.
  let reason: unknown;
  redis.on('error', (error) => {
    reason = error;
  });
  try {
    await firstConnection(redis);
    const requestedAt = Date.now();
    const [seconds, micros] = (await redis.time()) as unknown as [string, string];
    notes.ok(`answered within ${Date.now() - requestedAt} ms; every request waits for it`);
    notes.clock('Redis', new Date(Number(seconds) * 1000 + Number(micros) / 1000), requestedAt, 0);
    notePolicy(notes, await redis.info('memory').catch(() => undefined));
  } catch (error) {
    notes.fault(
      `does not answer: ${errorSummary(reason ?? error)}. Check REDIS_URL, its password, and whether it is a cluster`,
    );
  } finally {
    redis.disconnect();
  }
}

/** @param memory undefined: the user may not ask for it, which a gateway does without */
function notePolicy(notes: Notes, memory: string | undefined): void {
  if (memory === undefined) notes.ok('does not let this user see its maxmemory-policy, which must be noeviction');
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory ?? '')?.[1];
  if (policy !== undefined && policy !== 'noeviction') {
    notes.warning(
      `forgets keys when its memory is full (${policy}), and the counts of requests with them: set maxmemory-policy to noeviction`,
    );
  }
}
