import type { PlantedBug } from './planted-bug.ts';

const MEMORY = { file: 'gateway/quota/memory-quota.ts', suite: 'test/contract/memory-quota.test.ts' };
const REDIS = { file: 'gateway/quota/redis-window.ts', suite: 'test/contract/redis-quota.test.ts' };
const CLIENT = 'gateway/quota/redis-client.ts';

const SENTINEL_SUITE = 'test/contract/redis-sentinel-quota.test.ts';

const STUDIO_REMOVED =
  'is repeated at twenty moments before its end, and then over, although the limit of the studio is removed';
const EARLY = 'a request before the announced time is refused, at any moment of a window, and one after it is not';
const WITHOUT_PAUSE =
  'a key that sends requests without pause is admitted less than a second after its window, with a whole new one';
const LATE_REFUND = 'a refund after the end of its window does not count in another';
const SHARED = 'shares it among its twenty keys, with any number of concurrent requests';
const SENT_ONCE = 'a request whose reply is lost is counted at most once: no command is sent again';

/** Faults of counting requests and of reporting quotas. */
export const QUOTA_BUGS: readonly PlantedBug[] = [
  {
    name: 'in memory, a refused key is admitted before the announced time',
    suite: MEMORY.suite,
    caughtBy: EARLY,
    patches: [{ file: MEMORY.file, find: 'Math.max(window.endsAtMs, window.refusesUntilMs)', put: 'window.endsAtMs' }],
  },
  {
    name: 'in Redis, a refused key is admitted before the announced time',
    suite: REDIS.suite,
    caughtBy: EARLY,
    patches: [
      {
        file: REDIS.file,
        text: "redis.call('SET', best.refusal, best.seconds * 1000 .. ' ' .. best.limit, 'PX', best.seconds * 1000)",
        put: '',
      },
    ],
  },
  {
    name: 'in Redis, only the first refusal of a window sets the announced time',
    suite: REDIS.suite,
    caughtBy: EARLY,
    patches: [
      {
        file: REDIS.file,
        text: 'wait == 0 and best.isOwn and best.seconds * 1000 > best.refused then',
        put: 'wait == 0 and best.isOwn and best.refused <= 0 then',
      },
    ],
    inSoak: true,
  },
  {
    name: 'in memory, a request with less than a second to wait is refused, which postpones the end of the refusal',
    suite: MEMORY.suite,
    caughtBy: WITHOUT_PAUSE,
    patches: [{ file: MEMORY.file, find: 'waits ? restMs : 0', put: 'false ? restMs : 0' }],
    inSoak: true,
  },
  {
    name: 'in Redis, a request whose window is over is refused, which postpones the end of the refusal',
    suite: REDIS.suite,
    caughtBy: WITHOUT_PAUSE,
    patches: [
      { file: REDIS.file, text: 'local isOwn = left > 0 and refused <= left + 1000', put: 'local isOwn = true' },
      { file: REDIS.file, text: 'best.rest < patience or', put: 'false or' },
    ],
    inSoak: true,
  },
  {
    name: 'in memory, a removed limit of a studio ends a refusal',
    suite: MEMORY.suite,
    caughtBy: STUDIO_REMOVED,
    patches: [{ file: MEMORY.file, find: 'isCounted || refuses', put: 'isCounted' }],
  },
  {
    name: 'in Redis, a removed limit of a studio ends a refusal',
    suite: REDIS.suite,
    caughtBy: STUDIO_REMOVED,
    patches: [{ file: REDIS.file, text: 'if this.isCounted or this.refuses then', put: 'if this.isCounted then' }],
  },
  {
    name: 'in Redis, a refusal lasts until the clock is where it was before it was set back',
    suite: REDIS.suite,
    caughtBy: 'lasts no longer than it said when the clock is set back by an hour',
    patches: [{ file: REDIS.file, text: 'if left > lasts then', put: 'if false then' }],
  },
  {
    name: 'a gateway with a higher limit admits a refused key',
    suite: REDIS.suite,
    caughtBy: 'a refused key stays refused until the announced time, even by a gateway with a higher limit',
    patches: [
      {
        file: REDIS.file,
        text: 'local refuses = refused > 0 or isExhausted',
        put: 'local refuses = (refused > 0 and left <= 0) or isExhausted',
      },
    ],
    inSoak: true,
  },
  {
    name: 'in memory, a late refund counts in the current window',
    suite: MEMORY.suite,
    caughtBy: LATE_REFUND,
    patches: [{ file: MEMORY.file, find: 'window && window.id === windows[index]', put: 'window' }],
  },
  {
    name: 'in Redis, a late refund counts in the current window',
    suite: REDIS.suite,
    caughtBy: LATE_REFUND,
    patches: [
      {
        file: REDIS.file,
        text: `if count > 0 and math.abs(endOf(left) - ARGV[i]) < \${END_TOLERANCE_MS} then`,
        put: 'if count > 0 then',
      },
    ],
  },
  {
    name: 'a list in place of a counter is not replaced',
    suite: REDIS.suite,
    caughtBy: 'a list in place of a counter is ignored and replaced',
    patches: [{ file: REDIS.file, text: "or redis.call('TYPE', counter).ok ~= 'string'", put: '' }],
  },
  {
    name: 'a Redis command whose reply is lost is sent again',
    suite: REDIS.suite,
    caughtBy: SENT_ONCE,
    patches: [
      { file: CLIENT, find: 'maxRetriesPerRequest: 0', put: 'maxRetriesPerRequest: 20' },
      { file: CLIENT, find: 'autoResendUnfulfilledCommands: false', put: 'autoResendUnfulfilledCommands: true' },
    ],
  },
  {
    name: 'a Redis Cluster command whose reply is lost is sent again',
    suite: 'test/contract/redis-cluster-quota.test.ts',
    caughtBy: SENT_ONCE,
    patches: [{ file: CLIENT, find: 'retryDelayOnFailover: 0', put: 'retryDelayOnFailover: RETRY_MS' }],
  },
  {
    name: 'a gateway never reconnects to sentinels that were all unavailable',
    suite: SENTINEL_SUITE,
    caughtBy: 'without sentinels a connected gateway works, and a new one refuses immediately',
    patches: [
      { file: CLIENT, find: 'sentinelRetryStrategy: () => RETRY_MS', put: 'sentinelRetryStrategy: () => null' },
    ],
  },
  {
    name: 'the database number in the address of sentinels is ignored',
    suite: 'test/unit/gateway-config.test.ts',
    caughtBy: 'that names sentinels is parsed completely',
    patches: [{ file: 'gateway/quota/sentinel-address.ts', find: 'db: Number(db)', put: 'db: 0' }],
    inSoak: true,
  },
  {
    name: 'in Redis, the quota of a studio is not enforced',
    suite: REDIS.suite,
    caughtBy: SHARED,
    patches: [
      {
        file: REDIS.file,
        text: 'if this.refuses then admitted = 0 end',
        put: 'if this.refuses and i == 1 then admitted = 0 end',
      },
    ],
  },
  {
    name: 'in memory, a request refused by the quota of the studio counts for the key',
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
    name: 'in memory, the reported quota is always that of the key',
    suite: MEMORY.suite,
    caughtBy: 'is reported when it has fewer requests left than the key, and the key otherwise',
    patches: [{ file: MEMORY.file, find: 'isNext ? second : first', put: 'first' }],
  },
  {
    name: 'in memory, a refund leaves the quota of the studio unchanged',
    suite: MEMORY.suite,
    caughtBy: 'gets a refund together with the key',
    patches: [{ file: MEMORY.file, find: 'namesOf(bearer).entries()', put: 'namesOf(bearer).slice(0, 1).entries()' }],
  },
  {
    name: 'a gateway caches the quotas of a key without expiry',
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
    name: 'on SQLite, a changed quota of a studio is not in the audit log',
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy: 'record changes of quotas with the old and the new limit, in the same write as other changes',
    patches: [{ file: 'src/store/sqlite/directory.ts', find: 'if (quota !== quotaBefore) $THEN', put: '' }],
  },
  {
    name: 'Retry-After is always a whole window',
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
    name: 'a gateway accepts requests before its first connection to Redis is established',
    suite: SENTINEL_SUITE,
    caughtBy: 'a quota is open once its first connection attempt has succeeded, so that its first request is counted',
    patches: [{ file: 'gateway/quota/open-quota.ts', find: 'await Promise.race($ATTEMPTS)', put: '' }],
  },
  {
    name: 'a gateway is not ready while one node of a cluster is dead',
    suite: 'test/contract/redis-connections.test.ts',
    caughtBy: 'counts on a cluster for the studios of the other nodes while one is dead, and is ready',
    patches: [
      {
        file: 'gateway/quota/redis-quota.ts',
        find: 'return countedShare > 0 ? undefined : faults[0];',
        put: 'return countedShare === 1 ? undefined : faults[0];',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the nodes of a cluster over TLS are reached by their addresses',
    suite: 'test/contract/redis-connections.test.ts',
    caughtBy: 'counts on a cluster, whichever node the address names',
    patches: [{ file: 'gateway/quota/redis-client.ts', find: 'found(null, name)', put: "found(null, '127.0.0.1')" }],
    inSoak: true,
  },
];
