import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { FAST, LEFT_OUT, QUICK } from './lanes.ts';
import { RULE_TAGS } from './rule-tags.ts';

// Hundreds of processes load the same modules: a compile cache serves all of them, and the next run.
process.env.NODE_COMPILE_CACHE ??= `${import.meta.dirname}/../node_modules/.cache/compiled`;

/** The longest suites. They start first, so that none of them runs alone at the end. */
const LONGEST = [
  'test/simulation/simulation',
  'test/planted-bugs/',
  'test/examples/grpc',
  'test/examples/nextjs',
  'test/examples/wordpress',
  'test/examples/rest',
  'test/examples/rails',
  'test/contract/mongo-store',
  'test/upgrade/neighbours',
  'test/generated-clients',
  'test/examples/django',
  'test/e2e/guides',
  'test/e2e/command-faults',
  'test/containers',
  'test/security/personal-data',
  'test/outbox/',
];

/**
 * Suites that wait for deadlines of others than themselves: of calls whose servers are in their own process, of alerts, and of
 * processes that are replaced under load. Two of them have a processor each.
 */
const BY_TWOS = [
  'test/simulation/mongo-contract.test.ts',
  'test/e2e/alerts.test.ts',
  'test/e2e/reused-port.test.ts',
  'test/e2e/client-conformance.test.ts',
];

/** Suites that load the whole machine: concurrently, each would measure the load of the others. */
const ALONE = ['test/security/core-port-bounds.test.ts', 'test/crash/overload.test.ts'];

/** The longest time that a test, a hook or a wait may take on a machine that is busy with other work; milliseconds. */
const PATIENCE_MS = 300_000;

// The suites start real servers and processes, which share two cores on a small machine.
const test = {
  root: `${import.meta.dirname}/..`,
  testTimeout: PATIENCE_MS,
  hookTimeout: PATIENCE_MS,
  expect: { poll: { timeout: PATIENCE_MS / 3 } },
  tags: RULE_TAGS,
  // Whole titles: planted bugs name tests by them.
  taskTitleValueFormatTruncate: 0,
};

/**
 * Most suites wait for servers, processes and deadlines most of the time. Files share loaded modules, so no test may leave state in
 * them.
 */
const TOGETHER = { maxWorkers: 5, isolate: false };

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
    projects:
      process.env.LANE === 'fast'
        ? [project('fast', [...FAST], TOGETHER)]
        : [
            project('quick', [...QUICK], { ...TOGETHER, globalSetup: `${import.meta.dirname}/print-left-out.ts` }),
            project('together', [...LEFT_OUT], { ...TOGETHER, exclude: [...BY_TWOS, ...ALONE] }),
            project('by twos', BY_TWOS, { maxWorkers: 2, sequence: { groupOrder: 1 } }),
            project('alone', ALONE, { fileParallelism: false, sequence: { groupOrder: 2 } }),
          ],
  },
});
