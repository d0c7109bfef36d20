import type { PlantedBug } from './planted-bug.ts';

const MEMORY = { file: 'gateway/admission/quota/memory-quota.ts', suite: 'test/contract/memory-quota.test.ts' };

const EARLY = 'each decision agrees with the times announced before, whenever requests come';

/** Faults of counting requests and of reporting quotas. */
export const QUOTA_BUGS: readonly PlantedBug[] = [
  {
    name: 'in memory, a refused key is admitted before the announced time',
    suite: MEMORY.suite,
    caughtBy: EARLY,
    patches: [{ file: MEMORY.file, find: 'Math.max(window.endsAtMs, window.refusesUntilMs)', put: 'window.endsAtMs' }],
  },
  {
    name: 'a changed quota of a studio is not in the audit log',
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy: 'every change leaves an audit event with its actor, call, time and both values',
    patches: [
      { file: 'src/store/decisions/directory.ts', find: 'if (quotaLimit !== undefined && $CHANGED) $THEN', put: '' },
    ],
  },
];
