import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, test } from 'vitest';
import { describeWithMongo } from '../support/mongodb.ts';
import { ROOT } from '../tools/processes.ts';
import type { VariantReport } from './planted-bug.ts';
import { ALL, PLANTED_BUGS } from './planted-bugs.ts';

/** The timeout for the variants on one database; milliseconds. */
const RUN_MS = ALL ? 3_600_000 : 1_500_000;

describe('on SQLite', () => expectAllCaught('SQLite', () => ({})));

describeWithMongo('on MongoDB', (mongoUrl) => expectAllCaught('MongoDB', () => ({ MONGODB_TEST_URL: mongoUrl() })));

function expectAllCaught(database: keyof typeof PLANTED_BUGS, env: () => Record<string, string>): void {
  const bugs = PLANTED_BUGS[database];
  let reports: readonly VariantReport[] = [];
  beforeAll(async () => {
    reports = await runVariants(database, env());
  }, RUN_MS);

  const findReport = (name: string): VariantReport =>
    reports.find(({ variant }) => variant === name) ?? {
      variant: name,
      caught: [],
      errors: ['was not run'],
    };

  // @proves crashes-39
  test.each(bugs)('the planted bug is caught: $name', ({ name, caughtBy }) => {
    const { caught, errors } = findReport(name);
    expect(caught, errors.join('\n')).toContain(caughtBy);
  });
}

/** Runs the tests on all variants that they must catch. */
async function runVariants(
  database: keyof typeof PLANTED_BUGS,
  env: Record<string, string>,
): Promise<readonly VariantReport[]> {
  const command = ['run', '--config', join(import.meta.dirname, 'vitest.config.ts')];
  const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', ...command], {
    cwd: ROOT,
    env: { ...process.env, ...env, PLANTED_BUGS_ON: database },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const printed = await text(child.stdout);
  return JSON.parse(printed.trimEnd().split('\n').at(-1) ?? '');
}
