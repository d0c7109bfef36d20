import type { Result } from 'ioredis';
import { LONGEST_WINDOW_SECONDS } from './quota-port.ts';
import type { RedisClient } from './redis-client.ts';

/**
 * Which part of a second two ways to read the end of one window may differ by; milliseconds. Two windows of a key end at
 * least a second apart.
 */
const SAME_END_WITHIN_MS = 500;

/**
 * How a window is kept in Redis, by scripts that it carries out one after the other. All times are Redis's, so it does not
 * matter whose gateway asks.
 *
 * KEYS[1], the counter: how many requests were admitted. It expires when the window ends. Gateways of release 1.0 count in
 * the same way, and so with these.
 * KEYS[2], the refusal: there while the key is refused. It expires with the latest time that somebody was told.
 *
 * What cannot be a counter of ours (another type, no number, no expiry) is taken for none, and is replaced: it would
 * otherwise keep the key from being counted until somebody removed it.
 */
const WINDOW = `
local function window()
  local left = redis.call('PTTL', KEYS[1])
  if left <= 0 or redis.call('TYPE', KEYS[1]).ok ~= 'string' then return 0, 0 end
  local count = redis.call('GET', KEYS[1])
  if #count > 15 or not (count == '0' or count:find('^[1-9]%d*$')) then return 0, 0 end
  return left, tonumber(count)
end

local function endOf(left)
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000) + left
end
`;

/** ARGV: the limit; the window's length. What it answers: see `consumeRequest`. @rule 7.1 8.quota 8.counted 8.retry-after */
const CONSUME = `${WINDOW}
local limit, length = tonumber(ARGV[1]), tonumber(ARGV[2])

local refused = redis.call('PTTL', KEYS[2])
if refused > ${(LONGEST_WINDOW_SECONDS + 1) * 1000} then refused = 0 end

local left, count = window()
-- Begun under a longer policy, or before the clock was set back.
if left > length then
  redis.call('PEXPIRE', KEYS[1], length)
  left = length
end

if refused <= 0 and count < limit then
  if left > 0 then
    redis.call('INCR', KEYS[1])
  else
    redis.call('SET', KEYS[1], 1, 'PX', length)
    left = length
  end
  return {1, limit - count - 1, math.ceil(left / 1000), endOf(left)}
end

-- A refusal outlasts its own window by up to a second. One that does not fit was told under another policy, or a gateway of
-- release 1.0, which does not know of it, has begun the next window: it is told as it is.
local isOwn = refused <= 0 or (left > 0 and left <= refused and refused <= left + 1000)
local seconds = math.ceil((isOwn and left or refused) / 1000)
if isOwn and seconds * 1000 > refused then
  redis.call('SET', KEYS[2], '', 'PX', seconds * 1000)
end
return {0, 0, seconds, endOf(left)}
`;

/** ARGV: the end of the window that the request was taken out of. */
const PUT_BACK = `${WINDOW}
local left, count = window()
if count > 0 and math.abs(endOf(left) - ARGV[1]) < ${SAME_END_WITHIN_MS} then redis.call('DECR', KEYS[1]) end
`;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** @returns 1 when it is admitted, else 0; what remains; the seconds to tell; the end of the window */
    consumeRequest(
      ...args: [...keys: WindowKeys, limit: number, lengthMs: number]
    ): Result<[0 | 1, number, number, number], Context>;
    putRequestBack(...args: [...keys: WindowKeys, window: number]): Result<null, Context>;
  }
}

type WindowKeys = readonly [counter: string, refusal: string];

/** Where the window of an API key is kept. What stands in braces decides on the node of a cluster: both are on one. */
export function windowKeys(apiKeyId: string): WindowKeys {
  const counter = `lead-intake:quota:${apiKeyId}`;
  return [counter, `lead-intake:quota:refusal:{${counter}}`];
}

/** Teaches a client the two scripts. */
export function defineWindowCommands(redis: RedisClient): void {
  redis.defineCommand('consumeRequest', { numberOfKeys: 2, lua: CONSUME });
  redis.defineCommand('putRequestBack', { numberOfKeys: 2, lua: PUT_BACK });
}
