import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { APART, CLIENTS, CONFORMANCE, EXAMPLES, FAST, LONGEST, QUICK, TOGETHER } from './lanes.ts';
import { RULE_TAGS } from './rule-tags.ts';

// Hundreds of processes load the same modules, so they share a compile cache, which the next run uses, too.
process.env.NODE_COMPILE_CACHE ??= `${import.meta.dirname}/../node_modules/.cache/compiled`;

/** The longest time of a test or a hook on a machine that is busy with other work; milliseconds. */
const PATIENCE_MS = 600_000;

// The suites start real servers and processes, which share two cores on a small machine.
const test = {
  root: `${import.meta.dirname}/..`,
  testTimeout: PATIENCE_MS,
  hookTimeout: PATIENCE_MS,
  expect: { poll: { timeout: PATIENCE_MS / 6 } },
  tags: RULE_TAGS,
  // Titles are not truncated, because planted bugs name tests by them.
  taskTitleValueFormatTruncate: 0,
};

/**
 * Most suites spend their time waiting for servers, processes and deadlines, so several run at once. Files share loaded
 * modules, so no test may leave state in them.
 */
const SHARED = { maxWorkers: 5, isolate: false };

function project(name: string, suites: readonly string[], more: object) {
  return { test: { ...test, name, include: [...suites], ...more } };
}

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const findRank = ({ moduleId }: TestSpecification) => {
      const rank = LONGEST.findIndex((name) => moduleId.includes(name));
      return rank < 0 ? LONGEST.length : rank;
    };
    return (await super.sort(files)).toSorted((a, b) => findRank(a) - findRank(b));
  }
}

export default defineConfig({
  test: {
    globalSetup: `${import.meta.dirname}/build-docs.ts`,
    sequence: { sequencer: LongestFirst },
    reporters: [`${import.meta.dirname}/print-left-out.ts`, 'default'],
    projects:
      process.env.LANE === 'fast'
        ? [project('fast', FAST, SHARED)]
        : [
            project('quick', QUICK, SHARED),
            project('together', TOGETHER, SHARED),
            ...Object.entries(APART).map(([name, { workers: maxWorkers, suites }], at) =>
              project(name, suites, { maxWorkers, sequence: { groupOrder: at + 1 } }),
            ),
            project('clients', CLIENTS, { ...SHARED, sequence: { groupOrder: 10 } }),
            project('clients, conformance', [CONFORMANCE], { maxWorkers: 2, sequence: { groupOrder: 11 } }),
            project('examples', EXAMPLES, { ...SHARED, sequence: { groupOrder: 12 } }),
          ],
  },
});
