import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ROOT, temporaryFolder } from './support/processes.ts';

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

test('licences.md lists the licence of every production dependency, and of no other', async () => {
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
  const rowsOf = (section: string) => [...section.matchAll(/^\| `([^`]+)` \| (.+) \|$/gm)].map(([, name]) => name);

  test.each([
    ['that runs in production', production, packageJson.dependencies],
    ['of development', development, packageJson.devDependencies],
  ])('has a reason for every direct dependency %s, and no other', (_, section, dependencies) => {
    expect(rowsOf(section)).toEqual(Object.keys(dependencies).toSorted());
  });

  test('every direct dependency has an exact version', () => {
    const versions = Object.values({ ...packageJson.dependencies, ...packageJson.devDependencies });
    expect(versions.filter((version) => !/^\d+\.\d+\.\d+$/.test(String(version)))).toEqual([]);
  });
});

// @proves secrets-13
describe('the audit', () => {
  /** Runs the audit against a registry with one response to every request. */
  async function audit(status: number, advisories: object): Promise<{ code: number; output: string }> {
    const registry = createServer(({ method, url = '' }, response) => {
      const name = decodeURIComponent(url.slice(1));
      const isAudit = method === 'POST';
      response.writeHead(isAudit ? status : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(isAudit ? advisories : { name, versions: installed(name) }));
    }).listen(0, '127.0.0.1');
    await once(registry, 'listening');
    onTestFinished(() => void registry.close());
    const { port } = registry.address() as AddressInfo;
    const env = {
      ...process.env,
      npm_config_registry: `http://127.0.0.1:${port}/`,
      npm_config_fetch_retries: '0',
      // npm caches advisories.
      npm_config_cache: temporaryFolder(),
    };
    return new Promise((resolve) => {
      const child = execFile(join(ROOT, '.ci/audit'), { env }, (_error, stdout, stderr) =>
        resolve({ code: child.exitCode ?? -1, output: stdout + stderr }),
      );
    });
  }

  /** Returns the versions of a package in a registry that has only the installed ones. */
  function installed(name: string): object {
    const { version, dependencies } = json(join('node_modules', name, 'package.json'));
    return { [version]: { name, version, dependencies } };
  }

  const advisory = (severity: string) => ({
    fastify: [{ id: 1, url: 'https://example.test/1', title: 'Weak', severity, vulnerable_versions: '<999.0.0' }],
  });

  test.each(['high', 'critical'])(
    'fails on a %s vulnerability of a production dependency, and names it',
    async (severity) => {
      const { code, output } = await audit(200, advisory(severity));
      expect({ code, output }).toEqual({ code: 1, output: expect.stringContaining(`${severity}: fastify`) });
    },
  );

  test.each([
    ['nothing is known', {}],
    ['less is known', advisory('moderate')],
  ])('passes when %s', async (_, advisories) => {
    const { code, output } = await audit(200, advisories);
    expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining(', 0 with a high or critical') });
  });

  test('warns that it did not run when the registry does not support it', async () => {
    const { code, output } = await audit(405, {});
    expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/^NOT RUN: the audit\./) });
  });
});
