/**
 * Shows which tests only repeat what others prove: runs suites with each planted bug, and prints which files fail.
 *
 *   npm run matrix -- [--bugs PATTERN] FILTER...
 *
 * - `--bugs`: only bugs whose names match
 * - FILTER: the suites, as in `vitest run`
 *
 * Prints two Markdown tables. The first has the number of failed tests of each file, for each bug. The second has the duration
 * of each file and what only it proves: bugs that no other file catches, and rules and promises that no other file names. As far
 * as those go, a file with none is redundant. With all suites it takes some minutes for each bug.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { PROMISES, PROOFS } from '../proofs.ts';
import { ruleRows } from '../rule-table.ts';
import { ROOT } from '../tools/processes.ts';
import { ALL_BUGS } from './planted-bugs.ts';

/** The results of a file: its failed tests, and its duration; seconds. */
interface FileResult {
  readonly failed: number;
  readonly seconds: number;
}

/** Runs the suites with a planted bug, or with none, and returns the results by file. */
async function resultsWith(bug: string, filters: readonly string[]): Promise<ReadonlyMap<string, FileResult>> {
  const report = join(mkdtempSync(join(tmpdir(), 'matrix-')), 'report.json');
  const config = join(import.meta.dirname, 'matrix.config.ts');
  const options = ['run', '--config', config, '--reporter=json', `--outputFile=${report}`, ...filters];
  const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', ...options], {
    cwd: ROOT,
    env: { ...process.env, PLANTED_BUG: bug },
    stdio: 'ignore',
  });
  await new Promise((resolve) => child.once('close', resolve));
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as {
    testResults: {
      name: string;
      status: string;
      startTime: number;
      endTime: number;
      assertionResults: { status: string }[];
    }[];
  };
  return new Map(
    testResults.map(({ name, status, startTime, endTime, assertionResults }) => {
      const failed = assertionResults.filter((result) => result.status === 'failed').length;
      // A suite that fails as a whole counts as one failed test.
      const result = {
        failed: failed || Number(status === 'failed'),
        seconds: Math.round((endTime - startTime) / 1000),
      };
      return [relative(ROOT, name), result];
    }),
  );
}

const { values, positionals: filters } = parseArgs({ allowPositionals: true, options: { bugs: { type: 'string' } } });
const pattern = new RegExp(values.bugs ?? '');
const bugs = ALL_BUGS.map(({ name }) => name).filter((name) => pattern.test(name));

const healthy = await resultsWith('', filters);
const files = [...healthy.keys()].toSorted();
/** The proofs that need no planted bug: the rules of the contract, and the promises that a file names. */
const promises = PROMISES.map(({ id }) => ({
  name: id,
  files: PROOFS.filter(({ ids }) => ids.includes(id)).map(({ file }) => file),
}));
const rules = (await ruleRows()).map(({ rule, tests }) => ({ name: rule as string, files: tests }));

console.log('| Planted bug | Failed tests, by file |\n|---|---|');
const caught: { readonly name: string; readonly files: readonly string[] }[] = [];
for (const name of bugs) {
  const results = await resultsWith(name, filters);
  // A file that fails without the bug, too, does not catch it.
  const failing = files.filter((file) => results.get(file)?.failed && !healthy.get(file)?.failed);
  caught.push({ name, files: failing });
  console.log(`| ${name} | ${failing.map((file) => `${file}: ${results.get(file)?.failed}`).join('<br>') || '–'} |`);
}

console.log('\n| File | Seconds | Planted bugs | Rules and promises | Only here |\n|---|--:|--:|--:|---|');
for (const file of files) {
  const isHere = (proven: { readonly files: readonly string[] }) => proven.files.includes(file);
  const isOnlyHere = ({ files }: { readonly files: readonly string[] }) =>
    new Set(files).size === 1 && files[0] === file;
  const claims = [...rules, ...promises].filter(isHere);
  const only = [...caught, ...claims].filter(isOnlyHere).map(({ name }) => name);
  const figures = [healthy.get(file)?.seconds, caught.filter(isHere).length, claims.length];
  console.log(`| ${[file, ...figures, only.join('<br>') || '–'].join(' | ')} |`);
}
