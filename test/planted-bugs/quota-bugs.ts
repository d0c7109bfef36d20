import type { PlantedBug } from './planted-bug.ts';

const MEMORY = { file: 'gateway/admission/quota/memory-quota.ts', suite: 'test/contract/memory-quota.test.ts' };
const REDIS = { file: 'gateway/admission/quota/redis-window.ts', suite: 'test/contract/redis-quota.test.ts' };
const CLIENT = 'gateway/admission/quota/redis-client.ts';

const EARLY = 'whenever requests come, each decision agrees with the times announced before';
const LATE_REFUND = 'a refund after the end of its window does not count in another';
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
    name: 'a Redis command whose reply is lost is sent again',
    suite: REDIS.suite,
    caughtBy: SENT_ONCE,
    patches: [
      { file: CLIENT, find: 'maxRetriesPerRequest: 0', put: 'maxRetriesPerRequest: 20' },
      { file: CLIENT, find: 'autoResendUnfulfilledCommands: false', put: 'autoResendUnfulfilledCommands: true' },
    ],
  },
  {
    name: 'a changed quota of a studio is not in the audit log',
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy: 'record changes of quotas with the old and the new limit, in the same write as other changes',
    patches: [
      { file: 'src/store/decisions/directory.ts', find: 'if (quotaLimit !== undefined && $CHANGED) $THEN', put: '' },
    ],
  },
];
