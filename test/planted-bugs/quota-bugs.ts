import type { PlantedBug } from './planted-bug.ts';

const MEMORY = { file: 'gateway/quota/memory-quota.ts', suite: 'test/contract/memory-quota.test.ts' };
const REDIS = { file: 'gateway/quota/redis-window.ts', suite: 'test/contract/redis-quota.test.ts' };
const CLIENT = 'gateway/quota/redis-client.ts';

const SENTINEL_SUITE = 'test/contract/redis-sentinel-quota.test.ts';

const EARLY = 'who comes before the time that was told is refused, at whatever moment of a window; who waits is not';
const RELENTLESS =
  'a key that never stops asking is admitted less than a second after its window, with a whole new one';
const PUT_BACK_LATE = 'what is put back after the end of its window is in no other';
const SENT_ONCE = 'a request whose answer is lost was counted at most once: nothing is sent a second time';

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
    patches: [{ file: REDIS.file, text: "redis.call('SET', KEYS[2], '', 'PX', seconds * 1000)", put: '' }],
  },
  {
    name: 'only the first refusal of a window decides until when the key is refused',
    suite: REDIS.suite,
    caughtBy: EARLY,
    patches: [{ file: REDIS.file, text: 'seconds * 1000 > refused then', put: 'refused <= 0 then' }],
    inSoak: true,
  },
  {
    name: 'in memory, a refusal puts off the end for who keeps asking',
    suite: MEMORY.suite,
    caughtBy: RELENTLESS,
    patches: [{ file: MEMORY.file, find: 'if (leftMs > 0) $THEN', put: '$THEN' }],
    inSoak: true,
  },
  {
    name: 'in Redis, a refusal puts off the end for who keeps asking',
    suite: REDIS.suite,
    caughtBy: RELENTLESS,
    patches: [{ file: REDIS.file, text: 'if isOwn and seconds', put: 'if seconds' }],
    inSoak: true,
  },
  {
    name: 'a higher limit lets in who was told to wait',
    suite: REDIS.suite,
    caughtBy: 'who was told a time is refused until then, also by a gateway with a higher limit',
    patches: [
      {
        file: REDIS.file,
        text: 'if refused <= 0 and count < limit then',
        put: 'if (left > 0 or refused <= 0) and count < limit then',
      },
    ],
    inSoak: true,
  },
  {
    name: 'in memory, a request is put back into whichever window is under way',
    suite: MEMORY.suite,
    caughtBy: PUT_BACK_LATE,
    patches: [{ file: MEMORY.file, find: 'window?.id === id', put: 'window && id' }],
  },
  {
    name: 'in Redis, a request is put back into whichever window is under way',
    suite: REDIS.suite,
    caughtBy: PUT_BACK_LATE,
    patches: [
      {
        file: REDIS.file,
        text: `if count > 0 and math.abs(endOf(left) - ARGV[1]) < \${SAME_END_WITHIN_MS} then`,
        put: 'if count > 0 then',
      },
    ],
  },
  {
    name: 'a list in the place of a counter stays there, and keeps its key from being counted',
    suite: REDIS.suite,
    caughtBy: 'a list in the place of a counter is counted for nothing, and replaced',
    patches: [{ file: REDIS.file, text: "or redis.call('TYPE', KEYS[1]).ok ~= 'string'", put: '' }],
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
    caughtBy:
      'sentinels that are away cost nothing while their Redis stands, and refusals without waiting at the start',
    patches: [
      { file: CLIENT, find: 'sentinelRetryStrategy: () => RETRY_MS', put: 'sentinelRetryStrategy: () => null' },
    ],
  },
  {
    name: 'the database of a Redis that sentinels name is always the first',
    suite: 'test/unit/gateway-config.test.ts',
    caughtBy: 'that names sentinels is read whole',
    patches: [{ file: 'gateway/quota/sentinel-address.ts', find: 'db: Number(db)', put: 'db: 0' }],
    inSoak: true,
  },
  {
    name: 'whoever is refused is told to wait for a whole window',
    suite: 'test/e2e/http/quota.test.ts',
    caughtBy: 'sooner for who was refused later: the time to wait is not always the whole window',
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
    caughtBy:
      'who has used up the quota is told nothing of it where the key cannot be checked: the request was not counted',
    patches: [{ file: 'gateway/plugins/check-key-of-refused.ts', find: 'tellNoQuota(reply);', put: '' }],
  },
];
