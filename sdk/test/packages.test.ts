import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { unzipSync } from 'fflate';
import { describe, expect, test } from 'vitest';
import {
  PACKAGE_KINDS,
  PACKAGE_SETTINGS,
  type PackageRelease,
  type PackageSettings,
} from '../../common/package-settings.ts';
import { validateBom } from '../../test/tools/bills-of-materials.ts';
import { commandsIn, runCommands } from '../../test/tools/commands.ts';
import { MARKDOWN_PAGES } from '../../test/tools/markdown.ts';
import { ROOT, sharedFolder } from '../../test/tools/processes.ts';
import { filesOfTgz } from '../packages/archives.ts';
import { buildPackages, VERSION } from '../packages/build-packages.ts';

const scratch = sharedFolder();
const releases = new Map<PackageSettings, PackageRelease>();

/** Builds the packages with these settings, once. */
function built(settings: PackageSettings = PACKAGE_SETTINGS) {
  const folder = join(scratch(), settings.pypi);
  const release = releases.get(settings) ?? buildPackages(folder, settings);
  releases.set(settings, release);
  return { folder, release };
}

const readContents = (folder: string) =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'base64')]));

/** Returns the files of each archive as text, by the kind of package. */
function filesIn(folder: string, release: PackageRelease): Record<string, Record<string, string>> {
  return Object.fromEntries(
    release.packages.map(({ kind, file }) => {
      const bytes = readFileSync(join(folder, file));
      const files = file.endsWith('.tgz') ? [...filesOfTgz(bytes)] : Object.entries(unzipSync(bytes));
      return [kind, Object.fromEntries(files.map(([path, content]) => [path, Buffer.from(content).toString()]))];
    }),
  );
}

// @proves supply-3 others-18
describe('the packages', () => {
  test('a build in another time zone, locale and umask makes the same packages, byte for byte', () => {
    const { folder } = built();
    const other = join(scratch(), 'again');
    const env = { ...process.env, TZ: 'Pacific/Chatham', LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8' };
    const build = `umask 077; exec "$0" "$1" "$2"`;
    const main = join(ROOT, 'sdk/packages/main.ts');
    execFileSync('bash', ['-c', build, process.execPath, main, other], { cwd: scratch(), env });
    expect(Object.keys(readContents(other)).length).toBe(2 * PACKAGE_KINDS.length + 2);
    expect(readContents(other)).toEqual(readContents(folder));
  });

  test('packages have their files, and all but the recipes are free of tests and drivers', () => {
    const { folder, release } = built();
    const files = filesIn(folder, release);
    expect(Object.keys(files.npm ?? {})).toEqual(
      expect.arrayContaining([
        'package/package.json',
        'package/README.md',
        'package/SKILL.md',
        'package/dist/index.d.ts',
      ]),
    );
    expect(Object.keys(files.python ?? {}).at(-1)).toBe(`lead_intake-${VERSION}.dist-info/RECORD`);
    expect(Object.keys(files.python ?? {})).toContain('lead_intake/SKILL.md');
    const php = ['composer.json', 'SKILL.md', 'src/LeadIntakeClient.php'];
    expect(Object.keys(files.php ?? {})).toEqual(expect.arrayContaining(php));
    expect(Object.keys(files.wordpress ?? {})).toContain('lead-intake/lead-intake.php');
    expect(Object.keys(files.wordpress ?? {})).toContain('lead-intake/client/LeadIntakeClient.php');
    expect(Object.keys(files.proto ?? {})).toContain('lead-intake-proto/leadintake/v1/lead_intake.proto');
    expect(Object.keys(files.recipes ?? {})).toContain('recipes/django/leads/tests.py');
    const { recipes: _, ...others } = files;
    const all = Object.values(others).flatMap((each) => Object.keys(each));
    expect(all.length).toBeGreaterThan(150);
    expect(all.filter((path) => /driver|conformance|test|__pycache__|node_modules|^\/|\.\./.test(path))).toEqual([]);
    const manifest = JSON.parse(files.npm?.['package/package.json'] ?? '');
    for (const field of ['private', 'scripts', 'devDependencies']) expect(manifest).not.toHaveProperty(field);
    for (const readme of [files.npm?.['package/README.md'], files.php?.['README.md']]) {
      expect(readme).not.toMatch(/\]\(\.\.?\/|<!-- /);
      expect(readme).toContain('(`/docs/retries`)');
    }
  });

  test('the Python wheel has a RECORD with the hash and size of each file', () => {
    const { folder, release } = built();
    const files = filesIn(folder, release).python ?? {};
    const [, record = ''] = Object.entries(files).find(([path]) => path.endsWith('/RECORD')) ?? [];
    const rows = record.trim().split('\n');
    expect(rows.length).toBe(Object.keys(files).length);
    for (const [path, content] of Object.entries(files).filter(([path]) => !path.endsWith('/RECORD'))) {
      const digest = createHash('sha256').update(content).digest('base64url');
      expect(rows).toContain(`${path},sha256=${digest},${Buffer.byteLength(content)}`);
    }
  });

  test('sha256sum accepts the checksums, and the release file has the sizes and hashes', () => {
    const { folder, release } = built();
    const sums = readFileSync(join(folder, release.checksums), 'utf8');
    const hash = (algorithm: string, name: string) =>
      createHash(algorithm)
        .update(readFileSync(join(folder, name)))
        .digest('hex');
    for (const { file, sbom, sha1, sha256, bytes } of release.packages) {
      expect([sha1, sha256, bytes]).toEqual([
        hash('sha1', file),
        hash('sha256', file),
        statSync(join(folder, file)).size,
      ]);
      for (const name of [file, sbom]) expect(sums).toContain(`${hash('sha256', name)}  ${name}\n`);
    }
  });
});

const OWN = {
  npm: '@studio-crm/leads',
  composer: 'studio-crm/leads',
  pypi: 'Studio.CRM_leads',
  licence: 'MIT',
  author: { name: 'Studio CRM', email: 'leads@example.com' },
  homepage: 'https://leads.example.com',
};

// @proves packages-6
describe('the settings of the packages', () => {
  test('the package settings determine all names, the licence, the author and the homepage', () => {
    const { folder, release } = built(OWN);
    expect(release.packages.slice(0, 3).map(({ name, file }) => [name, file])).toEqual([
      [OWN.npm, `studio-crm-leads-${VERSION}.tgz`],
      [OWN.pypi, `studio_crm_leads-${VERSION}-py3-none-any.whl`],
      [OWN.composer, `studio-crm-leads-php-${VERSION}.zip`],
    ]);
    const files = filesIn(folder, release);
    const { author, homepage } = OWN;
    const common = { version: VERSION, license: 'MIT', homepage };
    const manifest = JSON.parse(files.npm?.['package/package.json'] ?? '');
    expect(manifest).toMatchObject({ name: OWN.npm, ...common, author });
    expect(JSON.parse(files.php?.['composer.json'] ?? '')).toMatchObject({
      name: OWN.composer,
      ...common,
      authors: [author],
    });
    const metadata = files.python?.[`studio_crm_leads-${VERSION}.dist-info/METADATA`] ?? '';
    for (const line of [
      ...[`Name: ${OWN.pypi}`, 'License-Expression: MIT', 'Author: Studio CRM'],
      ...['Author-email: Studio CRM <leads@example.com>', `Project-URL: Homepage, ${homepage}`],
    ]) {
      expect(metadata).toContain(`\n${line}\n`);
    }
    expect(files.npm?.['package/README.md']).toContain(`from '${OWN.npm}/outbox'`);
    const recipes = Object.values(files.recipes ?? {});
    expect(recipes.join('')).toContain(`/docs/packages/studio-crm-leads-${VERSION}.tgz`);
    const pages = Object.values(release.packages.find(({ kind }) => kind === 'recipes')?.pages ?? {});
    const own = [files.npm?.['package/README.md'], files.php?.['README.md'], files.php?.['composer.json']];
    const texts = [...own, ...recipes, ...pages].join('');
    for (const name of [PACKAGE_SETTINGS.npm, PACKAGE_SETTINGS.composer]) expect(texts).not.toContain(name);
  });
});

// @proves supply-2 supply-3
describe('a bill of materials', () => {
  test.each([
    ['a custom licence', PACKAGE_SETTINGS],
    ['an SPDX licence', OWN],
  ])('with %s, each bill of materials is valid and lists exactly the dependencies', (_, settings) => {
    const { folder, release } = built(settings);
    for (const { kind, name, sbom, sha256 } of release.packages) {
      const document = JSON.parse(readFileSync(join(folder, sbom), 'utf8'));
      expect({ kind, valid: validateBom(document), faults: validateBom.errors }).toEqual({
        kind,
        valid: true,
        faults: null,
      });
      expect(document.metadata.component).toMatchObject({ name, version: VERSION, hashes: [{ content: sha256 }] });
      // Otherwise a scanner would take a stranger's package of the same name for ours.
      expect(document.metadata.component.purl).toMatch(/^pkg:generic\//);
      const parts = document.components.map((each: { name: string }) => each.name);
      expect({ kind, parts }).toEqual({ kind, parts: kind === 'python' ? ['httpx2', 'anyio'] : [] });
    }
  });
});

// @proves packages-1
test("the packages guide's commands work, and npm start rebuilds missing or outdated packages", async () => {
  const guide = readFileSync(join(ROOT, 'docs/how-to/packages.md'), 'utf8');
  const kept = join(scratch(), 'kept');
  mkdirSync(kept);
  for (const name of ['build-packages', 'verify-packages', 'keep-packages']) {
    const outcome = await runCommands(commandsIn(guide, name), { KEPT_PACKAGES_FOLDER: kept });
    expect({ name, ...outcome }).toMatchObject({ status: 0 });
  }
  expect(readdirSync(kept)).toContain(`release-${VERSION}.json`);

  const release = join(ROOT, `packages/release-${VERSION}.json`);
  const start = () => execFileSync('node', ['sdk/packages/before-start.ts'], { cwd: ROOT, encoding: 'utf8' });
  expect(start()).toBe('');
  utimesSync(release, 0, 0);
  expect(start()).toMatch(/^Building the packages/);
  rmSync(release);
  expect(start()).toMatch(/^Building the packages/);
  expect(statSync(release).mtimeMs).toBeGreaterThan(0);
});

test('package addresses in the docs have the version of the release', () => {
  const addresses = MARKDOWN_PAGES.flatMap(({ path }) =>
    [...readFileSync(join(ROOT, path), 'utf8').matchAll(/docs\/packages\/[\w.-]+?[-_](\d+\.\d+\.\d+)/g)].map(
      ([, version]) => ({ path, version }),
    ),
  );
  expect(addresses.length).toBeGreaterThan(3);
  expect(addresses.filter(({ version }) => version !== VERSION)).toEqual([]);
});

/** Third-party packages that pages install by name. */
const OTHERS = ['django', 'node', 'standardwebhooks'];

/** Matches the start of a command that installs packages, and the rest of its line. */
const INSTALLS =
  /(?:^|[\s;&|("`/])((?:npm|pnpm|yarn|bun) (?:install|i|add)|pip3? install|pip3? wheel|uv (?:add|pip install)|poetry add|composer(?: \S+)? require)(?![\w-])([^\n`|;&#)]*)/gm;

/** Whether an argument is an address, a path, a variable, or a file of the repository. */
const isAddress = (argument: string) =>
  /^["']?(?:https?:|file:|\.{0,2}\/|~\/|\$|\{\{\w+Address\}\}|(?:examples|sdk)\/)/.test(argument);

/** Returns a page's commands that install our packages by name from the manager's default registry. */
function namedInstallations(page: string): string[] {
  const faults: string[] = [];
  const code = [...page.matchAll(/```[\s\S]*?```|`[^`\n]+`/g)].join('\n');
  for (const [line, command = '', rest = ''] of code.matchAll(INSTALLS)) {
    const given = rest.split(/\s+/).filter((word) => word !== '' && !word.startsWith('-') && !isAddress(word));
    const names = given.map((word) => word.replaceAll(/["']/g, '').replace(/(?!^)[@=<>~^:[].*$/, ''));
    const own = names.filter((name) => !OTHERS.includes(name));
    const isOfAddress = command.startsWith('composer')
      ? /composer config repositories\.\S+ composer ["']?(?:https?:|\$|\{\{)/.test(code)
      : /--index-url ["']?(?:https?:|\$|\{\{)/.test(rest) && !rest.includes('--extra-index-url');
    if (own.length > 0 && !isOfAddress) faults.push(line.trim());
  }
  return faults;
}

// @proves packages-6
describe('package names that somebody else could register', () => {
  test.each(MARKDOWN_PAGES.map(({ path }) => path))('%s installs no package that others could register', (path) => {
    expect(namedInstallations(readFileSync(join(ROOT, path), 'utf8'))).toEqual([]);
  });

  test.each([
    'npm install lead-intake-sdk',
    'pip install lead-intake',
    'pip install --extra-index-url https://api.example.com/simple/ --index-url https://api.example.com lead-intake',
    'uv add lead-intake',
    'composer require lead-intake/client:^1',
  ])('the check reports %s', (text) => {
    expect(namedInstallations(`\`${text}\``)).toHaveLength(1);
  });

  test('no manifest of an example names one of our packages, which others could register', () => {
    const manifests = globSync('examples/**/{package.json,composer.json,requirements*.txt,pyproject.toml}', {
      cwd: ROOT,
      exclude: (name) => /^(?:node_modules|\.venv|build)$/.test(name),
    });
    expect(manifests.length).toBeGreaterThan(2);
    const { npm, composer, pypi } = PACKAGE_SETTINGS;
    const name = new RegExp(`(?<![\\w/-])(?:${[npm, composer, pypi].join('|')})(?![\\w/-])`);
    const naming = manifests.filter((file) => name.test(readFileSync(join(ROOT, file), 'utf8')));
    expect(naming).toEqual([]);
  });
});
