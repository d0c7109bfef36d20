import type { Result } from 'ioredis';
import { MAX_HOLD_MS, MAX_WINDOW_SECONDS, type QuotaCaller } from './quota-port.ts';
import type { RedisClient } from './redis-client.ts';

/** The tolerance between two computations of one window's end; milliseconds. Windows of a key end at least a second apart. */
const END_TOLERANCE_MS = 500;

/** The longest refusal, which outlasts its window by less than a second. */
const MAX_REFUSAL_MS = (MAX_WINDOW_SECONDS + 1) * 1000;

/**
 * How windows are stored in Redis. Redis runs one script at a time, so the windows of a key and its studio are updated atomically. All
 * times are Redis's, so the gateways' clocks do not matter. A window has two entries:
 *
 * The counter: the number of admitted requests. It expires when the window ends.
 * The refusal: exists while requests are refused, and holds its length in milliseconds and the limit that was used up. It expires at the
 * latest retry time that a refusal gave. When Redis's clock is set back, it lasts for its length again.
 *
 * An invalid entry (another type, other text, no expiry) counts as missing and is replaced. Otherwise the key could not be counted until
 * somebody removes the entry.
 */
const WINDOW = `
local function window(counter)
  local left = redis.call('PTTL', counter)
  if left <= 0 or redis.call('TYPE', counter).ok ~= 'string' then return 0, 0 end
  local count = redis.call('GET', counter)
  if #count > 15 or not (count == '0' or count:find('^[1-9]%d*$')) then return 0, 0 end
  return left, tonumber(count)
end

local function timeAfter(left)
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000) + left
end
`;

/**
 * KEYS: counter and refusal of the key's window, then of the studio's. ARGV: the window length; how long the request can wait; the limit of
 * each, or nothing. Result: see `consumeRequest`.
 *
 * @rule 7.1 8.quota 8.counted 8.retry-after
 */
const CONSUME = `${WINDOW}
local length, patience = tonumber(ARGV[1]), tonumber(ARGV[2])

local function refusal(name)
  local left = redis.call('PTTL', name)
  if left <= 0 or redis.call('TYPE', name).ok ~= 'string' then return 0 end
  local lasts, limit = redis.call('GET', name):match('^(%d+) (%d+)$')
  lasts = tonumber(lasts)
  if not lasts or lasts > ${MAX_REFUSAL_MS} then return 0 end
  -- The clock was set back.
  if left > lasts then
    redis.call('PEXPIRE', name, lasts)
    left = lasts
  end
  return left, tonumber(limit)
end

local function evaluate(counter, name, limit)
  local refused, refusedLimit = refusal(name)
  local left, count = window(counter)
  -- The window began when windows were longer, or before the clock was set back.
  if left > length then
    redis.call('PEXPIRE', counter, length)
    left = length
  end

  local isExhausted = limit ~= nil and count >= limit
  local refuses = refused > 0 or isExhausted
  local rest = math.max(refused, isExhausted and left or 0)
  -- A refusal outlasts its own window by less than a second, even if it is extended. Any other refusal comes from a
  -- longer policy, or from a window that is over.
  local isOwn = left > 0 and refused <= left + 1000
  local seconds = math.ceil((left > 0 and left or length) / 1000)
  if refuses and not isOwn then seconds = math.floor(rest / 1000) end
  return {
    counter = counter, refusal = name, limit = refusedLimit or limit, isCounted = limit ~= nil, left = left,
    refused = refused, refuses = refuses, rest = rest, isOwn = isOwn, seconds = seconds,
    remaining = refuses and 0 or (limit or 0) - count - 1,
  }
end

local evaluated, reported, admitted = {}, 1, 1
for i = 1, #KEYS / 2 do
  local this = evaluate(KEYS[2 * i - 1], KEYS[2 * i], tonumber(ARGV[i + 2]))
  if this.isCounted or this.refuses then table.insert(evaluated, this) end
  if this.refuses then admitted = 0 end
end
for i, this in ipairs(evaluated) do
  local best = evaluated[reported]
  local asMany = this.remaining == best.remaining
  if admitted == 0 then
    if this.rest > best.rest then reported = i end
  elseif this.remaining < best.remaining or (asMany and this.seconds > best.seconds) then
    reported = i
  end
end

local best = evaluated[reported]
local wait = 0
if admitted == 0 and (best.rest < patience or (best.rest < ${MAX_HOLD_MS} and not best.isOwn)) then wait = best.rest end
local result = {admitted, reported, best.limit or 0, best.remaining, best.seconds, wait}
if admitted == 1 then
  for _, this in ipairs(evaluated) do
    if this.left > 0 then
      redis.call('INCR', this.counter)
    else
      redis.call('SET', this.counter, 1, 'PX', length)
      this.left = length
    end
    table.insert(result, timeAfter(this.left))
  end
elseif wait == 0 and best.isOwn and best.seconds * 1000 > best.refused then
  redis.call('SET', best.refusal, best.seconds * 1000 .. ' ' .. best.limit, 'PX', best.seconds * 1000)
end
return result
`;

/** KEYS: the counters. ARGV: the ends of the windows that counted the request. */
const REFUND = `${WINDOW}
for i, counter in ipairs(KEYS) do
  local left, count = window(counter)
  if count > 0 and math.abs(timeAfter(left) - ARGV[i]) < ${END_TOLERANCE_MS} then redis.call('DECR', counter) end
end
`;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /**
     * @returns whether it was admitted (1 or 0); the reported window's number (from 1), limit, requests left and seconds; how long to
     * wait. The ends of an admitted request's windows follow.
     */
    consumeRequest(
      ...args: (string | number)[]
    ): Result<[0 | 1, number, number, number, number, number, ...number[]], Context>;
    refundRequest(...args: (string | number)[]): Result<null, Context>;
  }
}

/** The Redis keys of a window. */
export interface WindowNames {
  readonly counter: string;
  readonly refusal: string;
}

/**
 * Returns the Redis keys of the windows of an API key and its studio. On a cluster, the part in braces selects the node, so all windows of
 * a studio share one.
 *
 * @param prefix distinguishes deployments that share a Redis
 */
export function windowNames(
  { apiKeyId, studioId }: QuotaCaller,
  isCluster: boolean,
  prefix = '',
): readonly [key: WindowNames, studio: WindowNames] {
  const node = isCluster ? `{${studioId}}` : '';
  const toWindowNames = (whose: string): WindowNames => ({
    counter: `${prefix}lead-intake:quota:${whose}${node}`,
    refusal: `${prefix}lead-intake:quota:refusal:${whose}${node}`,
  });
  return [toWindowNames(apiKeyId), toWindowNames(`studio:${studioId}`)];
}

/** Defines the two scripts as commands. Both take the number of their Redis keys first. */
export function defineWindowCommands(redis: RedisClient): void {
  redis.defineCommand('consumeRequest', { lua: CONSUME });
  redis.defineCommand('refundRequest', { lua: REFUND });
}
