import type { RedisClient } from '../../gateway/quota/redis-client.ts';
import { windowKeys } from '../../gateway/quota/redis-window.ts';

/** What there is of a key expires so much earlier: that is all that time does there. */
const PASS = `
for _, key in ipairs(KEYS) do
  local expires = redis.call('PEXPIRETIME', key)
  if expires > 0 then redis.call('PEXPIREAT', key, expires - ARGV[1]) end
end`;

/** Has time pass for an API key in Redis, without waiting; whole milliseconds. */
export async function passInRedis(redis: RedisClient, apiKeyId: string, ms: number): Promise<void> {
  await redis.eval(PASS, 2, ...windowKeys(apiKeyId), ms);
}
