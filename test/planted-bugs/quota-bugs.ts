import type { PlantedBug } from './planted-bug.ts';

const MEMORY = { file: 'gateway/quota/memory-quota.ts', suite: 'test/contract/memory-quota.test.ts' };
const REDIS = { file: 'gateway/quota/redis-window.ts', suite: 'test/contract/redis-quota.test.ts' };
const CLIENT = 'gateway/quota/redis-client.ts';

const SENTINEL_SUITE = 'test/contract/redis-sentinel-quota.test.ts';

const EARLY = 'a request before the announced time is refused, at any moment of a window, and one after it is not';
const RELENTLESS =
  'a key that sends requests without pause is admitted less than a second after its window, with a whole new one';
const PUT_BACK_LATE = 'a refund after the end of its window does not count in another';
const SHARED = 'shares it among its twenty keys, with any number of concurrent requests';
const SENT_ONCE = 'a request whose reply is lost is counted at most once: no command is sent again';

/** Faults in how requests are counted, and in what is told of it. */
export const QUOTA_BUGS: readonly PlantedBug[] = [
  {
    name: 'in memory, who comes when the window is over is let in before the time that was told',
    suite: MEMORY.suite,
    caughtBy: EARLY,
    patches: [{ file: MEMORY.file, find: 'Math.max(window.endsAtMs, window.refusesUntilMs)', put: 'window.endsAtMs' }],
  },
  {
    name: 'in Redis, who comes when the window is over is let in before the time that was told',
    suite: REDIS.suite,
    caughtBy: EARLY,
    patches: [{ file: REDIS.file, text: "redis.call('SET', best.refusal, '', 'PX', best.seconds * 1000)", put: '' }],
  },
  {
    name: 'only the first refusal of a window decides until when the key is refused',
    suite: REDIS.suite,
    caughtBy: EARLY,
    patches: [{ file: REDIS.file, text: 'best.seconds * 1000 > best.refused then', put: 'best.refused <= 0 then' }],
    inSoak: true,
  },
  {
    name: 'in memory, a refusal puts off the end for who keeps asking',
    suite: MEMORY.suite,
    caughtBy: RELENTLESS,
    patches: [{ file: MEMORY.file, find: 'reported.window && leftMs > 0', put: 'reported.window' }],
    inSoak: true,
  },
  {
    name: 'in Redis, a refusal puts off the end for who keeps asking',
    suite: REDIS.suite,
    caughtBy: RELENTLESS,
    patches: [{ file: REDIS.file, text: 'elseif best.isOwn and best.seconds', put: 'elseif best.seconds' }],
    inSoak: true,
  },
  {
    name: 'a higher limit lets in who was told to wait',
    suite: REDIS.suite,
    caughtBy: 'a refused key stays refused until the announced time, even by a gateway with a higher limit',
    patches: [
      {
        file: REDIS.file,
        text: 'local refuses = refused > 0 or count >= limit',
        put: 'local refuses = (refused > 0 and left <= 0) or count >= limit',
      },
    ],
    inSoak: true,
  },
  {
    name: 'in memory, a request is put back into whichever window is under way',
    suite: MEMORY.suite,
    caughtBy: PUT_BACK_LATE,
    patches: [{ file: MEMORY.file, find: 'window && window.id === windows[index]', put: 'window' }],
  },
  {
    name: 'in Redis, a request is put back into whichever window is under way',
    suite: REDIS.suite,
    caughtBy: PUT_BACK_LATE,
    patches: [
      {
        file: REDIS.file,
        text: `if count > 0 and math.abs(endOf(left) - ARGV[i]) < \${END_TOLERANCE_MS} then`,
        put: 'if count > 0 then',
      },
    ],
  },
  {
    name: 'a list in the place of a counter stays there, and keeps its key from being counted',
    suite: REDIS.suite,
    caughtBy: 'a list in place of a counter is ignored and replaced',
    patches: [{ file: REDIS.file, text: "or redis.call('TYPE', counter).ok ~= 'string'", put: '' }],
  },
  {
    name: 'a command that was sent to Redis and got lost is sent again',
    suite: REDIS.suite,
    caughtBy: SENT_ONCE,
    patches: [
      { file: CLIENT, find: 'maxRetriesPerRequest: 0', put: 'maxRetriesPerRequest: 20' },
      { file: CLIENT, find: 'autoResendUnfulfilledCommands: false', put: 'autoResendUnfulfilledCommands: true' },
    ],
  },
  {
    name: 'a command that was sent to a node of a Redis Cluster and got lost is sent again',
    suite: 'test/contract/redis-cluster-quota.test.ts',
    caughtBy: SENT_ONCE,
    patches: [{ file: CLIENT, find: 'retryDelayOnFailover: 0', put: 'retryDelayOnFailover: RETRY_MS' }],
  },
  {
    name: 'sentinels that are all away are asked no more',
    suite: SENTINEL_SUITE,
    caughtBy: 'without sentinels a connected gateway works, and a new one refuses immediately',
    patches: [
      { file: CLIENT, find: 'sentinelRetryStrategy: () => RETRY_MS', put: 'sentinelRetryStrategy: () => null' },
    ],
  },
  {
    name: 'the database of a Redis that sentinels name is always the first',
    suite: 'test/unit/gateway-config.test.ts',
    caughtBy: 'that names sentinels is parsed completely',
    patches: [{ file: 'gateway/quota/sentinel-address.ts', find: 'db: Number(db)', put: 'db: 0' }],
    inSoak: true,
  },
  {
    name: 'in Redis, what the studio refuses is let in where the key has requests left',
    suite: REDIS.suite,
    caughtBy: SHARED,
    patches: [
      { file: REDIS.file, text: 'if evaluated[i].refuses then', put: 'if evaluated[i].refuses and i == 1 then' },
    ],
  },
  {
    name: 'in memory, what the studio refuses is taken out of the window of the key',
    suite: MEMORY.suite,
    caughtBy: 'that refuses does not count for the key, nor does a key that refuses count for the studio',
    patches: [
      {
        file: MEMORY.file,
        find: 'const windows: number[] = [];',
        put: 'const windows: number[] = []; if (evaluated[0]?.window && !evaluated[0].refuses && !admitted) evaluated[0].window.count += 1;',
      },
    ],
  },
  {
    name: 'in memory, callers are told of the key, whatever is left to the studio',
    suite: MEMORY.suite,
    caughtBy: 'is reported when it has fewer requests left than the key, and the key otherwise',
    patches: [{ file: MEMORY.file, find: 'isMoreRestrictive(first, second) ? second : first', put: 'first' }],
  },
  {
    name: 'in memory, what is put back is put back for the key alone',
    suite: MEMORY.suite,
    caughtBy: 'gets a refund together with the key',
    patches: [{ file: MEMORY.file, find: 'namesOf(bearer).entries()', put: 'namesOf(bearer).slice(0, 1).entries()' }],
  },
  {
    name: 'a gateway goes by the quotas that it once knew for as long as a key is used',
    suite: 'test/unit/api-key-cache.test.ts',
    caughtBy: 'an entry expires after its lifetime, however often it is read, and can be set again',
    patches: [
      {
        file: 'gateway/api-key-cache.ts',
        find: 'entry && this.#clock() < entry.expiresAtMs ? entry.caller : undefined',
        put: 'entry?.caller',
      },
    ],
  },
  {
    name: 'on SQLite, that the quota of a studio has changed is not kept for the audit',
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy: 'record changes of quotas with the old and the new limit, in the same write as other changes',
    patches: [{ file: 'src/store/sqlite/directory.ts', find: 'if (quota !== quotaBefore) $THEN', put: '' }],
  },
  {
    name: 'whoever is refused is told to wait for a whole window',
    suite: 'test/e2e/http/quota.test.ts',
    caughtBy: 'sooner for a later refusal: the time to wait is the rest of the window',
    patches: [
      {
        file: 'gateway/plugins/quota.ts',
        find: "headers: { 'retry-after': String(resetSeconds) }",
        put: "headers: { 'retry-after': String(policy.windowSeconds) }",
      },
    ],
  },
  {
    name: 'what was not counted is answered with what is left',
    suite: 'test/e2e/http/core-away.test.ts',
    caughtBy: 'a response to a key that cannot be checked has no quota headers, because the request was not counted',
    patches: [{ file: 'gateway/plugins/check-key-before-refusal.ts', find: 'removeQuotaHeaders(reply);', put: '' }],
  },
  {
    name: 'a gateway accepts requests before its first connection to Redis is established',
    suite: SENTINEL_SUITE,
    caughtBy: 'a quota is open once its first connection attempt has succeeded, so that its first request is counted',
    patches: [{ file: 'gateway/quota/open-quota.ts', find: 'await Promise.race($ATTEMPTS)', put: '' }],
  },
];
