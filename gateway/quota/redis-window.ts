import type { Result } from 'ioredis';
import { MAX_WINDOW_SECONDS, type QuotaBearer } from './quota-port.ts';
import type { RedisClient } from './redis-client.ts';

/**
 * The tolerance for two computations of the end of one window; milliseconds. Windows of a key end a second or more
 * apart.
 */
const END_TOLERANCE_MS = 500;

/**
 * How windows are stored in Redis. Redis runs one script at a time, so the update of the windows of a key and its
 * studio is atomic. All times are those of Redis, so the clocks of gateways do not matter. A window has two entries:
 *
 * The counter: the number of admitted requests. It expires when the window ends. Gateways of release 1.0 use the same
 * counters for keys, except on a cluster.
 * The refusal: exists while requests are refused. It expires at the latest time that a refusal gave for its retry.
 *
 * An invalid counter (another type, not a number, no expiry) counts as missing and is replaced: otherwise the key could
 * not be counted until the counter is removed.
 */
const WINDOW = `
local function window(counter)
  local left = redis.call('PTTL', counter)
  if left <= 0 or redis.call('TYPE', counter).ok ~= 'string' then return 0, 0 end
  local count = redis.call('GET', counter)
  if #count > 15 or not (count == '0' or count:find('^[1-9]%d*$')) then return 0, 0 end
  return left, tonumber(count)
end

local function endOf(left)
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000) + left
end
`;

/**
 * KEYS: the counter and the refusal of each window. ARGV: the length of windows; the limit of each. Result: see
 * `consumeRequest`. The reported window: see `isMoreRestrictive`.
 *
 * @rule 7.1 8.quota 8.counted 8.retry-after
 */
const CONSUME = `${WINDOW}
local length = tonumber(ARGV[1])

local function evaluate(counter, refusal, limit)
  local refused = redis.call('PTTL', refusal)
  if refused > ${(MAX_WINDOW_SECONDS + 1) * 1000} then refused = 0 end

  local left, count = window(counter)
  -- The window began under a longer policy, or before the clock was set back.
  if left > length then
    redis.call('PEXPIRE', counter, length)
    left = length
  end

  local refuses = refused > 0 or count >= limit
  local seconds = math.ceil((left > 0 and left or length) / 1000)
  -- A refusal outlasts its own window by up to a second. One that does not fit is from another policy, or a gateway of
  -- release 1.0, which ignores refusals, has begun the next window: its own end is reported.
  local isOwn = refused <= 0 or (left > 0 and left <= refused and refused <= left + 1000)
  if not isOwn then seconds = math.ceil(refused / 1000) end
  return {
    counter = counter, refusal = refusal, left = left, refused = refused, refuses = refuses, isOwn = isOwn,
    remaining = refuses and 0 or limit - count - 1, seconds = seconds,
  }
end

local evaluated, reported, admitted = {}, 1, 1
for i = 1, #KEYS / 2 do
  evaluated[i] = evaluate(KEYS[2 * i - 1], KEYS[2 * i], tonumber(ARGV[i + 1]))
  if evaluated[i].refuses then admitted = 0 end
end
for i, this in ipairs(evaluated) do
  local best = evaluated[reported]
  local asMany = this.remaining == best.remaining
  if this.refuses ~= best.refuses then
    if this.refuses then reported = i end
  elseif this.remaining < best.remaining or (asMany and this.seconds > best.seconds) then
    reported = i
  end
end

local best = evaluated[reported]
if admitted == 1 then
  for _, this in ipairs(evaluated) do
    if this.left > 0 then
      redis.call('INCR', this.counter)
    else
      redis.call('SET', this.counter, 1, 'PX', length)
      this.left = length
    end
  end
elseif best.isOwn and best.seconds * 1000 > best.refused then
  redis.call('SET', best.refusal, '', 'PX', best.seconds * 1000)
end

local result = {admitted, reported, best.remaining, best.seconds}
for _, this in ipairs(evaluated) do table.insert(result, endOf(this.left)) end
return result
`;

/** KEYS: the counters. ARGV: the ends of the windows that count the request. */
const REFUND = `${WINDOW}
for i, counter in ipairs(KEYS) do
  local left, count = window(counter)
  if count > 0 and math.abs(endOf(left) - ARGV[i]) < ${END_TOLERANCE_MS} then redis.call('DECR', counter) end
end
`;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /**
     * @returns 1 if admitted, else 0; of the reported window the number, from 1, the requests left and the seconds; all
     * ends
     */
    consumeRequest(...args: (string | number)[]): Result<[0 | 1, number, number, number, ...number[]], Context>;
    refundRequest(...args: (string | number)[]): Result<null, Context>;
  }
}

/** The keys of a window in Redis. */
export interface WindowNames {
  readonly counter: string;
  readonly refusal: string;
}

/**
 * Returns the keys of the windows of an API key and its studio. On a cluster, the part in braces determines the node,
 * so that all windows of a studio are on one node.
 */
export function windowNames(
  { apiKeyId, studioId }: QuotaBearer,
  isCluster: boolean,
): readonly [key: WindowNames, studio: WindowNames] {
  const node = isCluster ? `{${studioId}}` : '';
  const namesOf = (whose: string): WindowNames => ({
    counter: `lead-intake:quota:${whose}${node}`,
    refusal: `lead-intake:quota:refusal:${whose}${node}`,
  });
  return [namesOf(apiKeyId), namesOf(`studio:${studioId}`)];
}

/** Defines the two scripts as commands. Both take the number of their keys first. */
export function defineWindowCommands(redis: RedisClient): void {
  redis.defineCommand('consumeRequest', { lua: CONSUME });
  redis.defineCommand('refundRequest', { lua: REFUND });
}
