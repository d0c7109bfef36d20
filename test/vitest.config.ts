import { defineConfig } from 'vitest/config';
import { RULE_TAGS } from './rule-tags.ts';

// Hundreds of processes load the same modules: compiled once, they are there for all of them, and for the next run.
process.env.NODE_COMPILE_CACHE ??= `${import.meta.dirname}/../node_modules/.cache/compiled`;

/** Long suites that wait most of the time, or keep one processor busy: two of them fit side by side. */
const IN_PAIRS = [
  'test/containers.test.ts',
  'test/e2e/mongo-failures.test.ts',
  'test/security/hostile-input.test.ts',
  'test/crash/{kills,stopping,stopped-core,cut-connections,power-cuts,vanishing-callers}.test.ts',
];

/** Suites that load the whole machine: side by side, each would see the other's load. */
const ALONE = [
  'test/e2e/two-of-each.test.ts',
  'test/security/core-port-bounds.test.ts',
  'test/planted-bugs/*.test.ts',
  'test/crash/overload.test.ts',
];

// Real servers and processes start in the suites; on a small machine they share two cores.
const test = { root: `${import.meta.dirname}/..`, testTimeout: 30_000, hookTimeout: 60_000, tags: RULE_TAGS };

function project(name: string, include: string[], more: object) {
  return { test: { ...test, name, include, ...more } };
}

export default defineConfig({
  test: {
    projects: [
      // Most of them wait most of the time, for servers and deadlines.
      project('together', ['test/**/*.test.ts'], { exclude: [...IN_PAIRS, ...ALONE], maxWorkers: 3 }),
      project('in pairs', IN_PAIRS, { maxWorkers: 2, sequence: { groupOrder: 1 } }),
      project('alone', ALONE, { fileParallelism: false, sequence: { groupOrder: 2 } }),
    ],
  },
});
