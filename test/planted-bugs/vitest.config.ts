import { defineConfig } from 'vitest/config';
import type { TestModule } from 'vitest/node';
import { RULE_TAGS } from '../rule-tags.ts';
import { plant, type VariantReport } from './planted-bug.ts';
import { PLANTED_BUGS } from './planted-bugs.ts';

const bugs = PLANTED_BUGS[process.env.PLANTED_BUGS_ON as keyof typeof PLANTED_BUGS];

const projects = bugs.map(({ name, suite, caughtBy, patches }) => project(name, suite, caughtBy, plant(patches)));

/**
 * Runs suites on faulty variants of the product, and finally prints the reports as JSON. Each variant for the database
 * PLANTED_BUGS_ON is a project. `planted-bugs.test.ts` uses it.
 */
export default defineConfig({ test: { projects, reporters: [{ onTestRunEnd: report }], maxWorkers: 3 } });

function project(name: string, suite: string, title: string, plugin: ReturnType<typeof plant>) {
  return {
    plugins: [plugin],
    test: {
      name,
      include: [suite],
      root: `${import.meta.dirname}/../..`,
      testTimeout: 600_000,
      hookTimeout: 600_000,
      expect: { poll: { timeout: 20_000 } },
      tags: RULE_TAGS,
      taskTitleValueFormatTruncate: 0,
      pool: 'threads',
      provide: { title },
      // For child processes. SOAK is empty, so that suites keep their usual size even in a soak.
      env: { PLANTED_BUG: name, SOAK: '' },
      setupFiles: [`${import.meta.dirname}/only-title.ts`],
    },
  };
}

function report(modules: readonly TestModule[]): void {
  const reports = projects.map(({ test: { name } }): VariantReport => {
    const own = modules.filter((module) => module.project.name === name);
    const tests = own.flatMap((module) => [...module.children.allTests()]);
    const failures = tests.flatMap((test) =>
      (test.result().errors ?? []).map((error) => ({
        title: test.name,
        // The error of a failed property has the assertion as its cause.
        isCatch: [error, error.cause].some((each) => each?.name === 'AssertionError'),
        error,
      })),
    );
    const suites = own.flatMap((module) => [module, ...module.children.allSuites()]);
    return {
      variant: name,
      caught: failures.filter(({ isCatch }) => isCatch).map(({ title }) => title),
      errors: [
        ...failures.filter(({ isCatch }) => !isCatch).map(({ title, error }) => `${title}: ${error.message}`),
        ...suites.flatMap((suite) => suite.errors().map(({ message }) => message)),
      ],
    };
  });
  process.stdout.write(`\n${JSON.stringify(reports)}\n`);
}
