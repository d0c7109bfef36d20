import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PACKAGE_KINDS, PACKAGES_FOLDER, type PackageRelease } from '../../../common/package-settings.ts';
import { findPackages, missingPackage } from '../../../gateway/docs/packages.ts';
import { filesOfTgz } from '../../../sdk/packages/archives.ts';
import { buildPackages, VERSION } from '../../../sdk/packages/build-packages.ts';
import { lines, rawRequest } from '../../support/raw-http.ts';
import { aSeparateService } from '../../support/service.ts';
import { ROOT, temporaryFolder } from '../../tools/processes.ts';
import { aServiceWithPackages } from '../../tools/served-packages.ts';

/** The version of the packages of an earlier release. */
const EARLIER = '1.0.77';

const { service, folder, url, readPage } = aServiceWithPackages((folder) => {
  for (const version of [EARLIER, VERSION]) buildPackages(folder, undefined, version);
});

/** The versions that the gateway serves, newest first. The folder of the project keeps the packages of releases that were built in it. */
const listVersions = () => findPackages([PACKAGES_FOLDER, folder()]).releases.map(({ version }) => version);

const PACKAGES = '/docs/packages';

const get = (path: string, options: RequestInit = {}) => fetch(`${url()}${PACKAGES}/${path}`, options);
const aRelease = (version: string): PackageRelease =>
  JSON.parse(readFileSync(join(folder(), `release-${version}.json`), 'utf8'));
const anArchive = (kind: string, version = VERSION) =>
  aRelease(version).packages.find((each) => each.kind === kind)?.file ?? '';

/** Returns the detail of a problem, which contains the address of this deployment. */
async function expectProblem(response: Response, status: number, code: string): Promise<string | undefined> {
  expect([response.status, response.headers.get('content-type')]).toEqual([status, 'application/problem+json']);
  expect(response.headers.get('cache-control')).toBe('no-store');
  const problem = (await response.json()) as { code: string; detail?: string };
  expect(problem).toMatchObject({ status, code, type: `${url()}/docs/problems/${code}` });
  return problem.detail;
}

const RECIPES = ['django', 'laravel', 'nextjs', 'php-form', 'rails'].map((name) => `recipes/${name}`);

// @proves docs-4
test.each(['typescript', 'php', 'python', 'wordpress', ...RECIPES])(
  'the manual of a package is a page with working links: %s',
  async (name) => {
    const page = await fetch(`${url()}/docs/${name}`);
    expect(page.status).toBe(200);
    const html = await page.text();
    expect(html).not.toMatch(
      /\{\{\w|&lt;!--|api\.example\.com|examples\/recipes|href="(?!#|https?:|\/lead-api\/docs\/)/,
    );
    for (const [link] of html.matchAll(/(?<=href=")\/lead-api\/docs[^"#]*/g)) {
      const { status } = await fetch(new URL(link, url()));
      expect({ link, status }).toEqual({ link, status: 200 });
    }
    for (const path of ['docs.md', 'llms.txt']) {
      expect(await (await fetch(`${url()}/${path}`)).text()).toContain(`](${url()}/docs/${name}.md)`);
    }
    expect(await (await fetch(`${url()}/docs/limits`)).text()).toContain(`href="/lead-api/docs/${name}"`);
  },
);

// @proves docs-4
test.each(RECIPES)("a recipe's page and the archive have all of its files, as the tests run them: %s", async (path) => {
  const files = execFileSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard', `examples/${path}`],
    {
      cwd: ROOT,
      encoding: 'utf8',
    },
  );
  const archive = filesOfTgz(readFileSync(join(folder(), anArchive('recipes'))));
  const page = await readPage(path);
  // Maps each path in the archive to its source. Only the clients' folder has the page of the outboxes.
  const own = files.split('\0').filter(Boolean);
  const expected = new Map(own.map((file) => [file.slice('examples/'.length), file]));
  if (path === 'recipes/rails') expected.set(`${path}/app/views/leads/page.html`, 'sdk/outbox/page.html');
  const inArchive = [...archive.keys()].filter((each) => each.startsWith(`${path}/`));
  expect(inArchive.toSorted()).toEqual([...expected.keys()].toSorted());
  for (const [file, source] of expected) {
    const content = readFileSync(join(ROOT, source), 'utf8');
    expect(Buffer.from(archive.get(file) ?? []).toString()).toBe(content);
    if (!file.endsWith('README.md')) expect(page).toContain(`### \`${file.slice(`${path}/`.length)}\`\n`);
    if (!file.endsWith('README.md')) expect(page).toContain(content.trimEnd());
  }
});

test('a website with the plugin can read the newest version and its checksum', async () => {
  const file = anArchive('wordpress');
  const sha256 = createHash('sha256')
    .update(readFileSync(join(folder(), file)))
    .digest('hex');
  const update = await (await get('wordpress.json')).json();
  expect(update).toEqual({
    version: VERSION,
    package: file,
    sha256,
    requires: '6.1',
    requires_php: '8.1',
    tested: expect.any(String),
  });
});

// @proves packages-2
describe('an archive', () => {
  test.each(PACKAGE_KINDS)('an archive has the bytes that were built, and may be cached forever: %s', async (kind) => {
    const file = anArchive(kind);
    const bytes = readFileSync(join(folder(), file));
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const response = await get(file);
    expect([response.status, Buffer.from(await response.arrayBuffer()).equals(bytes)]).toEqual([200, true]);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': file.endsWith('.tgz') ? 'application/gzip' : 'application/zip',
      'content-length': `${bytes.length}`,
      'cache-control': 'public, max-age=31536000, immutable',
      etag: `"${sha256}"`,
      'x-content-type-options': 'nosniff',
    });
    for (const header of ['ratelimit', 'vary', 'content-encoding', 'last-modified']) {
      expect({ header, given: response.headers.has(header) }).toEqual({ header, given: false });
    }
    const head = await get(file, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length'), head.headers.get('etag')]).toEqual([
      200,
      `${bytes.length}`,
      `"${sha256}"`,
    ]);
  });

  test.each([
    ['the tag', (tag: string) => tag, 304],
    ['the tag, weakened by a proxy', (tag: string) => `W/${tag}`, 304],
    ['the tag among others', (tag: string) => `"other", ${tag}`, 304],
    ['any', () => '*', 304],
    ['another tag', () => '"other"', 200],
  ])('a request whose If-None-Match has %s gets an archive again only if it changed', async (_, ask, status) => {
    const file = anArchive('python');
    const tag = (await get(file)).headers.get('etag') ?? '';
    const headers = { 'if-none-match': ask(tag), 'cache-control': 'max-age=0' };
    const response = await get(file, { headers });
    expect([response.status, (await response.arrayBuffer()).byteLength === 0]).toEqual([status, status === 304]);
    if (status === 304) expect(response.headers.get('etag')).toBe(tag);
  });

  test.each([
    ['range', 'bytes=10-19'],
    ['range', 'bytes=99999999-'],
    ['if-match', '"other"'],
    ['if-unmodified-since', 'Thu, 01 Jan 1970 00:00:00 GMT'],
    ['accept-encoding', 'gzip, br'],
    ['accept', 'text/html'],
  ])('an archive is served whole, whatever part or form is requested: %s: %s', async (name, value) => {
    const file = anArchive('npm');
    const response = await get(file, { headers: { [name]: value } });
    expect(response.status).toBe(200);
    const { length } = readFileSync(join(folder(), file));
    expect((await response.arrayBuffer()).byteLength).toBe(length);
  });

  test.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('an archive is not changed by %s', async (method) => {
    const response = await get(anArchive('npm'), { method });
    await expectProblem(response, 405, 'method_not_allowed');
    expect(response.headers.get('allow')).toBe('GET, HEAD');
  });
});

// @proves packages-2
test('the page and checksums list this release, and the indexes also list the earlier one', async () => {
  const index = (await (await get('index.json')).json()) as {
    version: string;
    packages: { url: string; sbom: string; version: string; sha256: string }[];
  };
  expect(index.version).toBe(VERSION);
  expect(index.packages.map(({ version }) => version)).toEqual(
    listVersions().flatMap((each) => PACKAGE_KINDS.map(() => each)),
  );
  expect([listVersions()[0], listVersions().at(-1)]).toEqual([VERSION, EARLIER]);
  for (const { url, sbom, sha256 } of index.packages) {
    const bytes = Buffer.from(await (await fetch(url)).arrayBuffer());
    expect({ url, sha256: createHash('sha256').update(bytes).digest('hex') }).toEqual({ url, sha256 });
    expect(await (await fetch(sbom)).json()).toMatchObject({ bomFormat: 'CycloneDX' });
  }
  const page = await readPage('packages');
  const sums = await (await get(aRelease(VERSION).checksums)).text();
  for (const { file, sha256 } of aRelease(VERSION).packages) {
    expect(page).toContain(`(${url()}${PACKAGES}/${file}) | \`${sha256}\``);
    expect(sums).toContain(`${sha256}  ${file}\n`);
  }
  for (const path of ['index.json', 'packages.json', 'simple/', 'simple/lead-intake/']) {
    const [got, head] = [await get(path), await get(path, { method: 'HEAD' })];
    expect([path, got.status, head.status]).toEqual([path, 200, 200]);
    expect(got.headers.get('cache-control')).toBe('public, max-age=300');
    expect(await head.text()).toBe('');
  }
});

// @proves packages-3
describe('a missing package', () => {
  test('a missing package gets a 404 that names the available versions', async () => {
    const detail = await expectProblem(await get('lead-intake-sdk-9.9.9.tgz'), 404, 'route_not_found');
    const [, ...earlier] = listVersions();
    expect(detail).toBe(
      `This deployment has the packages of release ${VERSION}, and those of ${earlier.join(', ')}: see ${url()}${PACKAGES}.`,
    );
  });

  test.each([
    `release-${VERSION}.json`,
    'secret.txt',
    '.hidden',
    'simple',
    'simple/other/',
    'simple/lead-intake',
    '../packages.json',
    '%2e%2e/packages.ts',
    '..%2f..%2fpackage.json',
    '..%5c..%5cpackage.json',
    '%252e%252e%252fpackage.json',
    '/packages.json',
    'packages.json/',
    'packages.json%00',
    '%2fetc%2fpasswd',
    'PACKAGES.JSON',
  ])('no path leads to another file or to another spelling of one: %s', async (path) => {
    mkdirSync(join(folder(), 'below'), { recursive: true });
    for (const name of ['secret.txt', '.hidden']) writeFileSync(join(folder(), name), 'secret');
    const answer = await rawRequest(service.url, lines(`GET ${PACKAGES}/${path} HTTP/1.1`, 'Host: a', ''));
    await expectProblem(answer, 404, 'route_not_found');
  });
});

// @proves packages-3
describe('a folder of earlier packages', () => {
  const aCopy = () => {
    const copy = temporaryFolder();
    for (const { file, sbom } of aRelease(EARLIER).packages) {
      for (const name of [file, sbom]) cpSync(join(folder(), name), join(copy, name));
    }
    const release = aRelease(EARLIER);
    cpSync(join(folder(), release.checksums), join(copy, release.checksums));
    return {
      copy,
      archive: anArchive('npm', EARLIER),
      writeRelease: (changed: object) =>
        writeFileSync(join(copy, `release-${EARLIER}.json`), JSON.stringify({ ...release, ...changed })),
    };
  };

  // @proves packages-1
  test('the packages of earlier releases are served without those of this release', () => {
    const { copy, writeRelease } = aCopy();
    writeRelease({});
    const packages = findPackages([copy, join(copy, 'none')]);
    expect([packages.current, packages.releases.map(({ version }) => version)]).toEqual([undefined, [EARLIER]]);
    expect(missingPackage(packages, url())).toMatch(/packages of this release are not here: .* npm run build:packages/);
  });

  test.each([
    ['lacks a file', ({ copy, archive }: ReturnType<typeof aCopy>) => rmSync(join(copy, archive)), 'ENOENT'],
    [
      'has a part of a file',
      ({ copy, archive }: ReturnType<typeof aCopy>) => writeFileSync(join(copy, archive), 'part'),
      'has 4 bytes instead of',
    ],
  ])('a gateway does not start if its folder of earlier packages %s', async (_, harm, fault) => {
    const made = aCopy();
    made.writeRelease({});
    harm(made);
    const start = aSeparateService({ gateway: { KEPT_PACKAGES_FOLDER: made.copy } });
    await expect(start).rejects.toThrow(
      new RegExp(`^reading the packages of .*release-.*${fault}.*; copy all files of that release again`),
    );
  });

  test.each(['../secret', '.hidden', 'a/b', ''])('earlier packages cannot name a file elsewhere: %j', (file) => {
    const { copy, writeRelease } = aCopy();
    writeRelease({ checksums: file });
    expect(() => findPackages([copy])).toThrow('is not the name of a file');
  });

  test('a gateway with a missing folder of earlier packages does not start and names the setting', async () => {
    await expect(aSeparateService({ gateway: { KEPT_PACKAGES_FOLDER: '/nowhere' } })).rejects.toThrow(
      'KEPT_PACKAGES_FOLDER names no folder: /nowhere',
    );
  });
});
