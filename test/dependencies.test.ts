import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from './tools/processes.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const json = (path: string) => JSON.parse(read(path));

/** Licences under which the product may be used, changed and sold without publishing its source. */
const ALLOWED = [
  '(Apache-2.0 AND BSD-3-Clause)',
  '(MIT OR CC0-1.0)',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'ISC',
  'MIT',
  'Unlicense',
];

/** The packages that run in production, with their licences. */
const inProduction = Object.entries<{ dev?: boolean }>(json('package-lock.json').packages)
  .filter(([path, { dev }]) => path !== '' && !dev)
  .map(([path]): { name: string; license?: string } => json(join(path, 'package.json')));

// @proves secrets-13
test('every production dependency has an allowed licence', () => {
  expect(inProduction.length).toBeGreaterThan(50);
  expect(inProduction.filter(({ license = 'none' }) => !ALLOWED.includes(license))).toEqual([]);
});

// @proves supply-1
test('no production dependency is bound to one kind of machine or has an install script', () => {
  const locked = Object.entries<Record<string, unknown>>(json('package-lock.json').packages);
  const bound = locked.filter(([path, { dev, os, cpu, hasInstallScript }]) => {
    return path !== '' && !dev && (os || cpu || hasInstallScript);
  });
  expect(bound.map(([path]) => path)).toEqual([]);
  expect(locked.filter(([path, { integrity }]) => path !== '' && !integrity)).toEqual([]);
});

test('licences.md lists exactly the licences of the production dependencies', async () => {
  const byLicence = Object.groupBy(inProduction, ({ license = 'none' }) => license);
  const sections = Object.entries(byLicence)
    .toSorted()
    .map(([licence, packages = []]) => {
      const names = new Set(packages.map(({ name }) => name));
      return `## ${licence}\n\n${[...names].toSorted().join(', ')}\n`;
    });
  const page = ['# Licences of production dependencies\n', ...sections].join('\n');
  await expect(page).toMatchFileSnapshot(join(ROOT, 'docs/reference/licences.md'));
});

// @proves secrets-13
describe('docs/reference/dependencies.md', () => {
  const [, production = '', development = ''] = read('docs/reference/dependencies.md').split(/^## /m);
  const packageJson = json('package.json');
  const listRows = (section: string) => [...section.matchAll(/^\| `([^`]+)` \| (.+) \|$/gm)].map(([, name]) => name);

  test.each([
    ['for production', production, packageJson.dependencies],
    ['for development', development, packageJson.devDependencies],
  ])('dependencies.md has a reason for exactly the direct dependencies %s', (_, section, dependencies) => {
    expect(listRows(section)).toEqual(Object.keys(dependencies).toSorted());
  });

  test('every direct dependency has an exact version', () => {
    const versions = Object.values({ ...packageJson.dependencies, ...packageJson.devDependencies });
    expect(versions.filter((version) => !/^\d+\.\d+\.\d+$/.test(String(version)))).toEqual([]);
  });
});
