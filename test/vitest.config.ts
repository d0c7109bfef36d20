import { defineConfig } from 'vitest/config';

/** Suites that load the whole machine: side by side, each would see the other's load. */
const ALONE = [
  'test/e2e/two-of-each.test.ts',
  'test/e2e/mongo-failures.test.ts',
  'test/planted-bugs/*.test.ts',
  'test/crash/*.test.ts',
  'test/security/hostile-input.test.ts',
];

// Real servers and processes start in the suites; on a small machine they share two cores.
const test = { root: `${import.meta.dirname}/..`, testTimeout: 30_000, hookTimeout: 60_000 };

export default defineConfig({
  test: {
    projects: [
      // Most of them wait most of the time, for servers and deadlines.
      { test: { ...test, name: 'together', include: ['test/**/*.test.ts'], exclude: ALONE, maxWorkers: 3 } },
      { test: { ...test, name: 'alone', include: ALONE, fileParallelism: false, sequence: { groupOrder: 1 } } },
    ],
  },
});
