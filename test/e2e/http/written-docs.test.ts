import { hash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { isKeySecret, secretsIn } from '../../../common/rules/key-secret.ts';
import { openSite } from '../../../gateway/docs/site.ts';
import { PROBLEMS } from '../../../gateway/problems.ts';
import { lines, rawRequest } from '../../support/raw-http.ts';
import { aSeparateService, aService, expectProblem, PUBLIC_URL } from '../../support/service.ts';
import { bash, hasShellAndCurl } from '../../tools/processes.ts';

const service = aService({ gateway: { QUOTA_LIMIT: '4321', QUOTA_WINDOW_SECONDS: '77' } });

const TRY_IT_OUT = '/docs/try-it-out';
const CODES = Object.entries(PROBLEMS);
const VALUES = { publicUrl: PUBLIC_URL, limit: 4321, windowSeconds: 77 };
const FILES = [...openSite(VALUES).paths];
/** Returns the paths of files whose names have the given ending. */
const listPaths = (ending: string) => FILES.filter(([, name]) => name.endsWith(ending)).map(([path]) => path);
const PAGES = listPaths('.html');

const get = (path: string, headers = {}, redirect: 'follow' | 'manual' = 'follow') =>
  fetch(service.url + path, { headers, redirect });
const readText = async (path: string) => (await get(path)).text();

/** The headers of every page and asset. */
const SECURITY = {
  'cache-control': 'public, max-age=300',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'content-security-policy': expect.stringMatching(/^default-src 'none'; .*frame-ancestors 'none'/),
};

describe('every page', () => {
  test.each(PAGES)('every page is public and has the security headers: %s', { tags: ['10.docs'] }, async (path) => {
    const response = await get(path);
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      ...SECURITY,
    });
    expect(response.headers.has('ratelimit')).toBe(false);
    if (path !== TRY_IT_OUT) expect(response.headers.get('content-security-policy')).not.toMatch(/unsafe/);
    // Link checkers send HEAD requests.
    const head = await fetch(service.url + path, { method: 'HEAD' });
    expect([head.status, head.headers.get('etag'), await head.text()]).toEqual([200, response.headers.get('etag'), '']);
    const html = await response.text();
    expect(html).toMatch(/<title>\S[^<]* [|·] Lead Intake API<\/title>/);
    // The content security policy forbids inline scripts and styles, and every placeholder is filled.
    expect(html).not.toMatch(/<script>|<style| style="| on\w+="|\{\{\w|\.invalid/);
  });

  test('every link of every page works', async () => {
    const linked = new Set<string>();
    for (const path of PAGES) {
      for (const [, link = ''] of (await readText(path)).matchAll(/(?:href|src)="([^"]*)"/g)) {
        const { origin, pathname, hash } = new URL(link.replace(PUBLIC_URL, ''), service.url + path);
        if (origin === service.url) linked.add(pathname + hash);
        else
          expect({ path, link }).toEqual({ path, link: expect.stringMatching(/^https:\/\/|^http:\/\/127\.0\.0\.1\b/) });
      }
    }
    expect([...linked]).toEqual(expect.arrayContaining(['/docs/limits', '/v1/openapi.json', '/docs/assets/scalar.js']));
    for (const link of linked) {
      const [path = '', anchor] = link.split('#');
      const response = await get(path);
      expect({ link, status: response.status }).toEqual({ link, status: 200 });
      if (anchor) expect(await response.text()).toContain(` id="${decodeURIComponent(anchor)}"`);
    }
  });

  test('every script, style and picture has the path of PUBLIC_URL as its prefix', async () => {
    const own = await aSeparateService({ gateway: { PUBLIC_URL: 'https://leads.example.test/some/prefix' } });
    const page = await (await fetch(`${own.url}/docs/limits`)).text();
    const links = [...page.matchAll(/(?:href|src)="(\/[^"]*)"/g)].map(([, link = '']) => link);
    expect(links.length).toBeGreaterThan(20);
    expect(links.filter((link) => !link.startsWith('/some/prefix/docs/'))).toEqual([]);
  });

  test.each(['icon.svg', 'outbox.svg', 'reference.js', 'scalar.js'])(
    'an asset has the same ETag from each gateway, because it is a hash of its bytes: %s',
    async (name) => {
      const response = await get(`/docs/assets/${name}`, { 'accept-encoding': 'identity' });
      const bytes = Buffer.from(await response.arrayBuffer());
      expect(response.headers.get('etag')).toBe(`W/"${hash('sha256', bytes, 'base64url')}"`);
    },
  );

  test.each(['/docs/assets/scalar.js', '/docs/assets/icon.svg', '/docs', '/docs/limits'])(
    'unchanged pages and assets get 304: %s',
    async (path) => {
      // Reloads as a browser does; without the second header `fetch` would send `Cache-Control: no-cache`.
      const reload = (tag: string) => get(path, { 'if-none-match': tag, 'cache-control': 'max-age=0' });
      const etag = (await get(path)).headers.get('etag') ?? '';
      expect(etag).toMatch(/^W\/"\S+"$/);
      const same = await reload(etag);
      expect({ status: same.status, bytes: (await same.text()).length }).toEqual({ status: 304, bytes: 0 });
      expect(same.headers.get('cache-control')).toBe('public, max-age=300');
      expect((await reload('W/"other"')).status).toBe(200);
    },
  );
});

// @proves docs-3
describe('the docs for programs', () => {
  const INDEX = '/llms.txt';
  const WHOLE = '/llms-full.txt';
  const texts = [INDEX, WHOLE, ...listPaths('.md')];

  test.each(texts)('each page exists as Markdown with absolute links that work: %s', async (path) => {
    const response = await get(path);
    expect(response.headers.get('content-type')).toBe(
      [INDEX, WHOLE].includes(path) ? 'text/plain; charset=utf-8' : 'text/markdown; charset=utf-8',
    );
    expect(response.headers.get('cache-control')).toBe('public, max-age=300');
    const text = await response.text();
    expect(text).toMatch(/^# \S/);
    // Templates of recipes have braces with white space, and code has brackets.
    expect(text).not.toMatch(/\{\{\w/);
    for (const [, link = ''] of text.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/\]\(([^)]+)\)/g)) {
      // Manuals also link to the packages of others.
      if (/^https:/.test(link) && !link.startsWith(PUBLIC_URL)) continue;
      expect(link).toMatch(PUBLIC_URL);
      const linked = link.slice(PUBLIC_URL.length);
      expect({ linked, status: (await get(linked)).status }).toEqual({ linked, status: 200 });
    }
  });

  test('an index of every page is at each address where programs look', async () => {
    for (const path of [INDEX, WHOLE]) {
      const { status, headers } = await get(`/docs${path}`, {}, 'manual');
      expect([status, headers.get('location')]).toEqual([308, `..${path}`]);
    }
    const index = await readText(INDEX);
    for (const path of texts.filter((path) => /^\/docs\/[\w-]+\.md$/.test(path)))
      expect(index).toContain(`](${PUBLIC_URL}${path})`);
  });
});

describe('a page requested as Markdown', () => {
  test.each([
    ['text/markdown', 'markdown'],
    ['text/markdown, text/html;q=0.9, */*;q=0.1', 'markdown'],
    ['Text/Markdown;Q=0.5, text/html;q=0.5', 'markdown'],
    ['text/html, text/markdown;q=0.9', 'html'],
    ['text/markdown;q=0', 'html'],
    ['text/markdown;q=much', 'html'],
    ['*/*', 'html'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'html'],
    ['__proto__, constructor;q=1', 'html'],
  ])('a page is sent as Markdown or HTML, whichever the Accept header prefers: %s', async (accept, type) => {
    const [page, answer] = [await get('/docs/limits', { accept: 'text/html' }), await get('/docs/limits', { accept })];
    expect(answer.headers.get('content-type')).toBe(`text/${type}; charset=utf-8`);
    // This header prevents caches from mixing up the two forms.
    expect(answer.headers.get('vary')).toBe('accept');
    expect(await answer.text()).toBe(await readText(type === 'html' ? '/docs/limits' : '/docs/limits.md'));
    expect(answer.headers.get('etag') === page.headers.get('etag')).toBe(type === 'html');
  });

  test('a page that exists in only one form is sent in that form', async () => {
    for (const path of [TRY_IT_OUT, '/docs/limits.md', '/llms.txt']) {
      const answer = await get(path, { accept: 'text/markdown' });
      expect({ path, status: answer.status, vary: answer.headers.get('vary') }).toEqual({
        path,
        status: 200,
        vary: null,
      });
      expect(await answer.text()).toBe(await readText(path));
    }
  });
});

describe('an asset', () => {
  test.each([
    ['scalar.js', 'application/javascript; charset=utf-8'],
    ['reference.js', 'application/javascript; charset=utf-8'],
    ['try-it-out.css', 'text/css; charset=utf-8'],
    ['icon.svg', 'image/svg+xml'],
    ['outbox.svg', 'image/svg+xml'],
  ])('an asset is served whole, with the security headers: %s', async (name, mediaType) => {
    const path = `/docs/assets/${name}`;
    const response = await get(path, { range: 'bytes=0-9' });
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': mediaType,
      ...SECURITY,
    });
    for (const header of ['ratelimit', 'last-modified', 'accept-ranges']) {
      expect({ header, given: response.headers.has(header) }).toEqual({ header, given: false });
    }
  });

  const script = (acceptEncoding: string) => get('/docs/assets/scalar.js', { 'accept-encoding': acceptEncoding });

  test.each([
    ['GZIP', true],
    ['br, gzip', true],
    ['*', true],
    ['identity', false],
    ['gzip;q=0', false],
    ['*;q=0', false],
  ])('a long asset is compressed if gzip is accepted: %s, %s', async (acceptEncoding, isCompressed) => {
    const [plain, answer] = [await script('identity'), await script(acceptEncoding)];
    const [text, same] = [await plain.text(), await answer.text()];
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-encoding')).toBe(isCompressed ? 'gzip' : null);
    expect(answer.headers.get('vary')).toBe('accept-encoding');
    if (isCompressed) expect(Number(answer.headers.get('content-length'))).toBeLessThan(text.length / 3);
    expect(same === text).toBe(true);
  });
});

test('the root redirects browsers to the docs, under any prefix, and is 404 to programs', async () => {
  const { status, headers } = await get('/', { accept: 'text/html,*/*;q=0.8' }, 'manual');
  expect([status, headers.get('location')]).toEqual([302, 'docs']);
  await expectProblem(await get('/'), 404, 'route_not_found');
});

// @proves hostile-6
test.each([
  '/docs/problems/unknown',
  '/docs/nothing',
  '/docs/assets',
  '/docs/index',
  '/docs/assets/',
  '/docs/assets/ICON.svg',
  '/docs/404',
  '/docs/quick-start.html',
  '/docs/assets/scalar.js.gz',
])('a missing page gets the usual 404, and browsers get a page: %s', async (path) => {
  await expectProblem(await get(path), 404, 'route_not_found');
  const page = await get(path, { accept: 'text/html,*/*;q=0.8' });
  expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
});

// @proves hostile-6
test.each([
  '/docs/../package.json',
  '/docs/assets/../site.ts',
  '/docs/assets/../../../package.json',
  '/docs/assets/%2e%2e/site.ts',
  '/docs/assets/..%2f..%2f..%2fpackage.json',
  '/docs/assets/%252e%252e%252fsite.ts',
  '/docs/assets//icon.svg',
  '/docs/assets/icon.svg%00',
  '/docs/assets/.env',
  '/docs/assets/%2fetc%2fpasswd',
  '/docs/site/limits.html',
])('no path leads out of the docs or to another spelling of a page: %s', async (path) => {
  const answer = await rawRequest(service.url, lines(`GET ${path} HTTP/1.1`, 'Host: a', ''));
  await expectProblem(answer, 404, 'route_not_found');
});

/** The header that a response with this status must have. */
const HEADERS: Readonly<Record<number, RegExp>> = {
  401: /\nwww-authenticate: Bearer\n/,
  405: /\nallow: GET, POST\n/,
  429: /\nretry-after: 17\n/,
  503: /\nretry-after: 1\n/,
};

describe('the page of a problem', () => {
  // @proves docs-2
  test.each(CODES)(
    "the URL of an error's type is a page that explains what to do: %s",
    { tags: ['2.5.page'] },
    async (code, { status, title }) => {
      const page = await readText(`/docs/problems/${code}.md`);
      expect(page).toMatch(new RegExp(`^# ${title}\n\n\`${code}\`, status ${status}\n`));
      for (const heading of ['What happened', 'Was anything written?', 'What to do', 'Example'])
        expect(page).toContain(`\n## ${heading}\n`);
      expect(await readText(`/docs/problems/${code}`)).toContain(title);
      expect(page).toMatch(/Was anything written\?\s+(No\.|Not by this request\.|Unknown\.)/);
      expect(page).toMatch(HEADERS[status] ?? /content-type/);
      const [, example = ''] = /HTTP\/1\.1 \d+ .*\n\n(\{[\s\S]*\n\})/.exec(page.replace(/\n[a-z-]+: .*/g, '')) ?? [];
      expect(JSON.parse(example)).toMatchObject({ type: `${PUBLIC_URL}/docs/problems/${code}`, title, status, code });
    },
  );
});

test('the page about keys describes secrets as the service validates them', async () => {
  const page = await readText('/docs/keys.md');
  const [shape = ''] = /lik_\[.*\}/.exec(page) ?? [];
  const vectors = [...page.matchAll(/\| `(lik_\S+)` \| (a secret|not a secret)/g)];
  expect(vectors.map(([, , what]) => what)).toEqual([
    'a secret',
    'a secret',
    'a secret',
    'not a secret',
    'not a secret',
  ]);
  for (const [, text = '', what] of vectors) {
    expect([text, isKeySecret(text)]).toEqual([text, what === 'a secret']);
    expect((await secretsIn([`KEY="${text}"`])).secrets).toEqual(what === 'a secret' ? [text] : []);
    if (what === 'a secret') expect(text).toMatch(new RegExp(`^${shape}$`));
  }
});

describe('the page of limits', () => {
  test('the page about limits has the configured quota', async () => {
    const page = await readText('/docs/limits.md');
    expect(page).toContain('4321 requests per 77 seconds');
    const { secret } = await service.aStudioWithKey();
    const { headers } = await service.get(secret);
    expect(page).toContain(`RateLimit-Policy: ${headers.get('ratelimit-policy')}`);
  });
});

test.skipIf(!hasShellAndCurl)('the request on the start page gets the response that the page shows', async () => {
  const { secret } = await service.aStudioWithKey();
  const page = await readText('/docs.md');
  const [, command = ''] = /^```sh\n(curl -i [\s\S]*?)^```/m.exec(page) ?? [];
  const [, shown = ''] = /^```http\n([\s\S]*?)^```/m.exec(page) ?? [];
  const answer = await bash(command.replace(PUBLIC_URL, service.url), { KEY: secret, ID: crypto.randomUUID() });
  const withoutIds = (text: string) =>
    text
      .replaceAll(/[\da-f-]{36}/g, 'ID')
      .replaceAll('\r', '')
      .toLowerCase();
  for (const line of withoutIds(shown).split('\n')) expect(withoutIds(answer)).toContain(line.replace(/,…\}\}$/, ','));
});

test.skipIf(!hasShellAndCurl)('the commands of the quick start do what the page says', async () => {
  const { secret } = await service.aStudioWithKey();
  // sdk/test/packages-installed.test.ts runs the earlier commands, which install clients.
  const [, page = ''] = (await readText('/docs/quick-start.md')).split('## Without a client');
  const [set = '', create = '', read = ''] = [...page.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, text]) => text);
  const own = set.replace('lik_…', secret).replace(PUBLIC_URL, service.url);

  const commands = [`${own}\n${create}`, create, read].join('\necho @\n');
  const [first = '', second = '', list = ''] = (await bash(commands)).split('@\n');

  expect(first).toContain('HTTP/1.1 201 Created');
  const [, body = ''] = /^(\{.*\})$/m.exec(first) ?? [];
  const [, example = ''] = /^```json\n([\s\S]*?)^```/m.exec(page) ?? [];
  const toTexts = (text: string) => JSON.parse(text, (key, value) => (/^id$|At$/.test(key) ? typeof value : value));
  expect(toTexts(example)).toEqual(toTexts(body));
  expect(second).toContain('idempotent-replayed: true');
  expect(list).toContain('"displayName":"Joan Clarke"');
  expect(list).toContain('{"lead":{"id":');
});
