import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { RULE_TAGS } from './rule-tags.ts';

// Hundreds of processes load the same modules: compiled once, they are there for all of them, and for the next run.
process.env.NODE_COMPILE_CACHE ??= `${import.meta.dirname}/../node_modules/.cache/compiled`;

/** Suites that take longest. They begin first, so that none of them goes on alone when all others are over. */
const LONGEST = [
  'test/planted-bugs/',
  'test/crash/kills',
  'test/e2e/alerts',
  'test/crash/power-cuts',
  'test/e2e/mongo-failures',
  'test/upgrade/neighbours',
  'test/containers',
  'test/crash/stopping',
  'test/contract/mongo-store',
];

/** Suites that load the whole machine: side by side, each would see the other's load. */
const ALONE = [
  'test/world/world.test.ts',
  'test/e2e/two-of-each.test.ts',
  'test/e2e/client-conformance.test.ts',
  'test/security/core-port-bounds.test.ts',
  'test/crash/overload.test.ts',
];

// Real servers and processes start in the suites; on a small machine they share two cores.
const test = { root: `${import.meta.dirname}/..`, testTimeout: 30_000, hookTimeout: 60_000, tags: RULE_TAGS };

function project(name: string, include: string[], more: object) {
  return { test: { ...test, name, include, ...more } };
}

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification) => {
      const rank = LONGEST.findIndex((name) => moduleId.includes(name));
      return rank < 0 ? LONGEST.length : rank;
    };
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      // Most of them wait most of the time, for servers, processes and deadlines. A file finds the modules loaded that those
      // before it needed, so that no test may leave anything in them.
      project('together', ['test/**/*.test.ts'], { exclude: ALONE, maxWorkers: 4, isolate: false }),
      project('alone', ALONE, { fileParallelism: false, sequence: { groupOrder: 1 } }),
    ],
  },
});
