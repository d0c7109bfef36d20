import { defineConfig } from 'vitest/config';
import { RULE_TAGS } from '../rule-tags.ts';
import { plant } from './planted-bug.ts';
import { ALL_BUGS } from './planted-bugs.ts';

const bug = ALL_BUGS.find(({ name }) => name === process.env.PLANTED_BUG);

/** Runs suites on the product with the bug that PLANTED_BUG names, or with none. `matrix.ts` uses it. */
export default defineConfig({
  plugins: bug ? [plant(bug.patches)] : [],
  test: {
    root: `${import.meta.dirname}/../..`,
    include: ['{test,sdk/test,examples/test}/**/*.test.ts'],
    exclude: ['test/planted-bugs/**', 'test/unit/planted-bugs.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 20_000 } },
    tags: RULE_TAGS,
    maxWorkers: 3,
    isolate: false,
    // Some bugs keep a suite from ending.
    teardownTimeout: 5000,
  },
});
