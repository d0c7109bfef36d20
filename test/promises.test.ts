import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { gatewaySettings } from '../gateway/config.ts';
import { coreSettings } from '../src/config.ts';
import { ROOT } from './support/processes.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** Each row of the tables of promises: what is promised, and the arguments of the command that proves it. */
const promises = [...read('docs/promises.md').matchAll(/^\| ([^|]+) \|[^|]*\| `([^`|]+)` \|$/gm)].map(
  ([, promise = '', proof = '']) => ({ promise, proofs: proof.split(' ') }),
);

describe('docs/promises.md', () => {
  test('proves every promise by something', () => {
    const rows = read('docs/promises.md').match(/^\| (?!Promise |---)/gm) ?? [];
    expect(rows.length).toBeGreaterThan(20);
    expect(promises).toHaveLength(rows.length);
  });

  test.each(promises)('$promise: by commands that there are', ({ proofs }) => {
    const { scripts } = JSON.parse(read('package.json'));
    for (const proof of proofs) {
      const tests = globSync([proof, `${proof}/**/*.test.ts`], { cwd: ROOT }).filter((path) =>
        path.endsWith('.test.ts'),
      );
      expect(proof in scripts || tests.length > 0, proof).toBe(true);
    }
  });
});

describe.each(['SECURITY.md', 'docs/promises.md', 'docs/dependencies.md'])('%s', (page) => {
  const text = read(page);

  test('leads only to what is there', () => {
    const targets = [...text.matchAll(/\]\(([^)#]+)\)/g)].map(([, target = '']) => join(ROOT, page, '..', target));
    expect(targets.filter((target) => !existsSync(target))).toEqual([]);
  });

  test('names only settings that there are', () => {
    const settings = Object.keys({ ...coreSettings, ...gatewaySettings });
    const named = [...text.matchAll(/`((?:CORE|GATEWAY|REDIS|DATABASE|QUOTA|SHUTDOWN|PUBLIC|LOG)_[A-Z_]+\*?)/g)].map(
      ([, name = '']) => name,
    );
    const isThere = (name: string) =>
      name.endsWith('*') || settings.includes(name) || settings.includes(name.replace(/_FILE$/, ''));
    expect(named.filter((name) => !isThere(name))).toEqual([]);
  });
});
