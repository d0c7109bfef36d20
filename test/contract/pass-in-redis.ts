import type { QuotaCaller } from '../../gateway/admission/quota/quota-port.ts';
import type { RedisClient } from '../../gateway/admission/quota/redis-client.ts';
import { windowNames } from '../../gateway/admission/quota/redis-window.ts';

/** Brings the expiry of all entries of a key and its studio forward, which is all that time does to them. */
export const PASS = `
for _, key in ipairs(KEYS) do
  local expires = redis.call('PEXPIRETIME', key)
  if expires > 0 then redis.call('PEXPIREAT', key, expires - ARGV[1]) end
end`;

/** Lets time pass for an API key and its studio in Redis, without waiting; whole milliseconds. */
export async function passInRedis(redis: RedisClient, bearer: QuotaCaller, ms: number): Promise<void> {
  const names = windowNames(bearer, redis.isCluster).flatMap(({ counter, refusal }) => [counter, refusal]);
  await redis.eval(PASS, names.length, ...names, ms);
}
