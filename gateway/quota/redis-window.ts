import type { Result } from 'ioredis';
import { MAX_WINDOW_SECONDS, type QuotaBearer } from './quota-port.ts';
import type { RedisClient } from './redis-client.ts';

/**
 * Which part of a second two ways to read the end of one window may differ by; milliseconds. Two windows of a key end at
 * least a second apart.
 */
const SAME_END_WITHIN_MS = 500;

/**
 * How windows are kept in Redis, by scripts that it carries out one after the other: what a request does to the windows of its
 * key and its studio is one step. All times are Redis's, so it does not matter whose gateway asks. A window has two entries:
 *
 * The counter: how many requests were admitted. It expires when the window ends. Gateways of release 1.0 count those of a key in
 * the same way, and so, except on a cluster, with these.
 * The refusal: there while requests are refused. It expires with the latest time that somebody was told.
 *
 * What cannot be a counter of ours (another type, no number, no expiry) is taken for none, and is replaced: it would
 * otherwise keep the key from being counted until somebody removed it.
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
 * KEYS: of each window the counter and the refusal. ARGV: the windows' length; the limit of each. What it answers: see
 * `consumeRequest`. What is chosen to be told: see `tellsMore`.
 *
 * @rule 7.1 8.quota 8.counted 8.retry-after
 */
const CONSUME = `${WINDOW}
local length = tonumber(ARGV[1])

local function look(counter, refusal, limit)
  local refused = redis.call('PTTL', refusal)
  if refused > ${(MAX_WINDOW_SECONDS + 1) * 1000} then refused = 0 end

  local left, count = window(counter)
  -- Begun under a longer policy, or before the clock was set back.
  if left > length then
    redis.call('PEXPIRE', counter, length)
    left = length
  end

  local refuses = refused > 0 or count >= limit
  local seconds = math.ceil((left > 0 and left or length) / 1000)
  -- A refusal outlasts its own window by up to a second. One that does not fit was told under another policy, or a gateway of
  -- release 1.0, which does not know of it, has begun the next window: it is told as it is.
  local isOwn = refused <= 0 or (left > 0 and left <= refused and refused <= left + 1000)
  if not isOwn then seconds = math.ceil(refused / 1000) end
  return {
    counter = counter, refusal = refusal, left = left, refused = refused, refuses = refuses, isOwn = isOwn,
    remaining = refuses and 0 or limit - count - 1, seconds = seconds,
  }
end

local looks, told, admitted = {}, 1, 1
for i = 1, #KEYS / 2 do
  looks[i] = look(KEYS[2 * i - 1], KEYS[2 * i], tonumber(ARGV[i + 1]))
  if looks[i].refuses then admitted = 0 end
end
for i, this in ipairs(looks) do
  local best = looks[told]
  local asMany = this.remaining == best.remaining
  if this.refuses ~= best.refuses then
    if this.refuses then told = i end
  elseif this.remaining < best.remaining or (asMany and this.seconds > best.seconds) then
    told = i
  end
end

local best = looks[told]
if admitted == 1 then
  for _, this in ipairs(looks) do
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

local answer = {admitted, told, best.remaining, best.seconds}
for _, this in ipairs(looks) do table.insert(answer, endOf(this.left)) end
return answer
`;

/** KEYS: the counters. ARGV: the end of each window that the request was taken out of. */
const PUT_BACK = `${WINDOW}
for i, counter in ipairs(KEYS) do
  local left, count = window(counter)
  if count > 0 and math.abs(endOf(left) - ARGV[i]) < ${SAME_END_WITHIN_MS} then redis.call('DECR', counter) end
end
`;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** @returns 1 when it is admitted, else 0; of which window is told, from 1; what remains; the seconds to tell; all ends */
    consumeRequest(...args: (string | number)[]): Result<[0 | 1, number, number, number, ...number[]], Context>;
    putRequestBack(...args: (string | number)[]): Result<null, Context>;
  }
}

/** The names of what is kept of a window. */
export interface WindowNames {
  readonly counter: string;
  readonly refusal: string;
}

/**
 * Where the windows of an API key and of its studio are kept. On a cluster, what stands in braces decides on the node: all that
 * requests of one studio need are on one.
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

/** Teaches a client the two scripts. Both take the number of their keys first. */
export function defineWindowCommands(redis: RedisClient): void {
  redis.defineCommand('consumeRequest', { lua: CONSUME });
  redis.defineCommand('putRequestBack', { lua: PUT_BACK });
}
