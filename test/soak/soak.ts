/**
 * `npm run soak [-- PART...]`: runs the named parts of a soak, or all, one after another. Prints a table of what ran. Sizes that
 * the environment sets stay. Ends with status 1 if a test has failed, or a part has run none.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { PARTS } from './parts.ts';

const ROOT = join(import.meta.dirname, '../..');
const REPORTS = join(ROOT, '.test-report');

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly success: boolean;
}

const named = process.argv.slice(2);
const unknown = named.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0) {
  console.error(`unknown parts: ${unknown.join(', ')}; the parts are ${Object.keys(PARTS).join(', ')}`);
  process.exit(2);
}
const parts = Object.entries(PARTS).filter(([name]) => named.length === 0 || named.includes(name));

mkdirSync(REPORTS, { recursive: true });
const rows = parts.map(([name, suites]) => {
  const began = performance.now();
  const report = runPart(name, suites);
  const minutes = ((performance.now() - began) / 60_000).toFixed(1);
  if (!report?.success || report.numPassedTests === 0) process.exitCode = 1;
  return `| ${name} | ${report?.numPassedTests ?? 'no report'} | ${report?.numFailedTests ?? ''} | ${minutes} |`;
});
console.log(['', '| part | passed | failed | minutes |', '|---|--:|--:|--:|', ...rows].join('\n'));

/** Runs the suites of a part. Returns Vitest's report, or undefined if it has written none. */
function runPart(name: string, suites: readonly string[]): Report | undefined {
  const file = join(REPORTS, `soak-${name}.json`);
  rmSync(file, { force: true });
  console.log(`\n== ${name}`);
  const vitest = [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--config', 'test/vitest.config.ts'];
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
  const env = { PLANTED_BUGS: 'all', SCHEMATHESIS_SECONDS: '600', ...process.env, SOAK: 'yes' };
  spawnSync(process.execPath, [...vitest, ...reporters, ...suites], { cwd: ROOT, env, stdio: 'inherit' });
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}
