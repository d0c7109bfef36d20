import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Patch, patched } from '../planted-bugs/patch.ts';
import { ALL_BUGS } from '../planted-bugs/planted-bugs.ts';
import { ROOT, temporaryFolder } from '../tools/processes.ts';

/** Checks all patches in seconds. Running the planted bugs takes minutes. */
describe('every planted bug', () => {
  test.each(ALL_BUGS)('a planted bug has a suite: $name', ({ suite }) => {
    expect(existsSync(join(ROOT, suite)), `${suite} must catch it, and does not exist`).toBe(true);
  });

  test.each(ALL_BUGS)('a planted bug matches the product: $name', ({ patches }) => {
    // A variant that cannot be loaded fails every test and proves nothing.
    for (const faulty of faultyFiles(patches).values()) expect(() => stripTypeScriptTypes(faulty)).not.toThrow();
  });

  // A ReferenceError also fails the test, but the faulty behaviour never runs.
  test('no planted bug has undeclared variables', () => {
    const folder = temporaryFolder();
    for (const { name, patches } of ALL_BUGS) {
      for (const [file, faulty] of faultyFiles(patches)) {
        const path = join(folder, name, file);
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, faulty);
      }
    }
    const args = ['lint', '--only=correctness/noUndeclaredVariables', '--max-diagnostics=none'];
    const biome = join(ROOT, 'node_modules/.bin/biome');
    const { stdout, stderr, status } = spawnSync(biome, args, { cwd: folder, encoding: 'utf8' });
    expect(status, stdout + stderr).toBe(0);
  });
});

/** Returns the patched files of a bug, by path. */
function faultyFiles(patches: readonly Patch[]): Map<string, string> {
  const sources = new Map<string, string>();
  for (const patch of patches) {
    const source = sources.get(patch.file) ?? readFileSync(join(ROOT, patch.file), 'utf8');
    sources.set(patch.file, patched(source, patch));
  }
  return sources;
}

test('each planted bug has a unique name', () => {
  const names = ALL_BUGS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});
