import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import axe from 'axe-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PROBLEMS } from '../../gateway/problems.ts';
import { buildPackages } from '../../sdk/packages/build-packages.ts';
import { aService, leadOf } from '../support/service.ts';
import { describeWithChromium } from '../tools/browser.ts';
import { sharedFolder } from '../tools/processes.ts';

const PREFIX = '/some/prefix';
const PHONE = { width: 390, height: 844 };
const MANUALS = [
  ...['wordpress', 'typescript', 'python', 'php'],
  ...['nextjs', 'rails', 'laravel', 'php-form'].map((name) => `recipes/${name}`),
].map((name) => `/docs/${name}`);
const WRITTEN_PAGES = [
  '/docs',
  '/docs/recipes/django',
  ...['quick-start', 'clients', 'retries', 'outbox', 'limits', 'keys', 'problems', 'reference'].map(
    (name) => `/docs/${name}`,
  ),
  ...Object.keys(PROBLEMS).map((code) => `/docs/problems/${code}`),
];

const FOUND_FIRST = {
  401: 'problems/integration_key_invalid',
  nextjs: 'recipes/nextjs',
  laravel: 'recipes/laravel',
  spam: 'wordpress#',
  'form key': 'clients#the-key-of-a-form',
  'key nosuchword': 'problems/integration_key_invalid',
};

describeWithChromium('the docs, in a browser and behind a prefix', (open) => {
  let proxy: Server;
  let publicUrl: string;
  beforeAll(async () => {
    proxy = createServer((incoming, outgoing) => {
      const { method, headers, url = '' } = incoming;
      const path = url.startsWith(PREFIX) ? url.slice(PREFIX.length) : '/outside';
      const passedOn = request(service.url + path, { method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(outgoing);
      });
      incoming.pipe(passedOn);
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    publicUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${PREFIX}`;
  });
  afterAll(async () => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const packages = sharedFolder();
  beforeAll(() => void buildPackages(packages()));
  const service = aService(() => ({ gateway: { PUBLIC_URL: publicUrl, KEPT_PACKAGES_FOLDER: packages() } }));

  test('the reference sends a request, which creates a lead', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const page = await open(`${publicUrl}/docs/try-it-out`);

    await page.getByPlaceholder('Token').first().fill(secret);
    await page.getByRole('button', { name: /Test Request.*post/ }).click();
    const answered = page.waitForResponse((response) => response.request().method() === 'POST');
    await page.getByRole('button', { name: /^Send post request/ }).click();

    const answer = await answered;
    const response = new Response(await answer.text(), { status: answer.status(), headers: answer.headers() });
    const { id } = await leadOf(response, 201);
    await page.getByText(id).first().waitFor();
    expect(await service.countLeads(studioId)).toBe(1);
  });

  test('no page breaks a word, cuts a command or is wider than the screen, at any width', async () => {
    const page = await open(`${publicUrl}/docs/quick-start`);
    for (const width of [320, 768]) {
      await page.setViewportSize({ width, height: 844 });
      for (const path of [...WRITTEN_PAGES, ...MANUALS]) {
        await page.goto(publicUrl + path);
        const found = { faults: await page.evaluate(FAULTS_OF_TEXT), shown: await page.evaluate(SHOWN_WIDTH) };
        expect({ path, ...found }).toEqual({ path, faults: [], shown: width });
      }
    }
  });

  // @proves docs-3
  test.each(['light', 'dark'] as const)('every page has what WCAG AA asks of it: %s', async (colorScheme) => {
    const page = await open(`${publicUrl}/docs/quick-start`, { colorScheme });
    for (const path of WRITTEN_PAGES) {
      await page.goto(publicUrl + path);
      await page.getByRole('searchbox').waitFor();
      await page.evaluate(axe.source);
      expect({ path, faults: await page.evaluate(FAULTS_OF_ACCESS) }).toEqual({ path, faults: [] });
    }
  });

  test('a language is chosen once, for every page', async () => {
    const page = await open(`${publicUrl}/docs/clients`);
    const shown = () => page.locator('figure:visible').allTextContents();
    const containing = (...texts: string[]) => texts.map((text) => expect.stringContaining(text));
    expect(await shown()).toEqual(
      containing('npm install', 'await check(', 'createLeadIntakeClient({', 'stop.abort()'),
    );
    await page.getByRole('tab', { name: 'TypeScript' }).first().press('ArrowRight');
    expect(await shown()).toEqual(
      containing('composer require', 'LeadIntakeClient::check(', 'new LeadIntakeClient(', 'isCancelled'),
    );
    await page.getByRole('tab', { name: 'Python' }).last().click();
    await page.goto(`${publicUrl}/docs/reference`);
    expect(await page.getByRole('tab', { selected: true }).allTextContents()).toEqual(['Python', 'Python', 'Python']);
    for (const text of await shown()) expect(text).toContain('from lead_intake import');
  });

  // @proves docs-3
  test('the search leads to the section that has the words', async () => {
    const page = await open(`${publicUrl}/docs/keys`);
    const search = page.getByRole('searchbox');
    await search.fill('IDEMPOTENCY different nosuchword');
    await page.getByText('Nothing has all of these words.').waitFor();
    await search.fill('back off jitter');
    await page.getByRole('link', { name: 'Idempotency and retries › What to repeat, and when' }).click();
    await page.waitForURL(`${publicUrl}/docs/retries#what-to-repeat-and-when`);
    await search.fill('oapi-codegen');
    await search.press('Enter');
    await page.waitForURL(`${publicUrl}/docs#all-pages`);
  });

  // @proves docs-3
  test('the search works again after answers that were cut off', async () => {
    const page = await open(`${publicUrl}/docs/keys`);
    const answers = ['[{"path":', ''];
    await page.route('**/docs/search.json', (route) => {
      const body = answers.shift();
      return body === undefined ? route.continue() : route.fulfill({ body });
    });
    const search = page.getByRole('searchbox');
    for (const query of ['back', 'back off']) {
      await search.fill(query);
      await page.getByText('The search does not answer. Please try again.').waitFor();
      await search.press('Escape');
    }
    await search.fill('back off jitter');
    await page.getByRole('link', { name: 'Idempotency and retries › What to repeat, and when' }).waitFor();
  });

  // @proves docs-3
  test('the search finds first what people ask for', async () => {
    const page = await open(`${publicUrl}/docs/keys`);
    for (const [query, path] of Object.entries(FOUND_FIRST)) {
      await page.getByRole('searchbox').fill(query);
      const found = page.locator(`.results li:has(a):nth-child(1 of :has(a)) a[href^="${publicUrl}/docs/${path}"]`);
      await found.waitFor({ timeout: 10_000 });
    }
    await page.goto(`${publicUrl}/docs/try-it-out`);
    await page.getByRole('heading', { name: 'Create a lead' }).waitFor();
    expect(await page.getByRole('searchbox').count()).toBe(1);
    expect(await page.getByText('Search', { exact: true }).count()).toBe(0);
  });

  test('a block of code is copied as it is, and a heading has an address', async () => {
    const page = await open(`${publicUrl}/docs/quick-start`, { permissions: ['clipboard-read', 'clipboard-write'] });
    const block = page.locator('.block').filter({ hasText: 'curl -i' });
    await block.getByRole('button', { name: 'Copy' }).click();
    await block.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(await block.locator('code').textContent());
    await page.getByRole('heading', { name: 'Read leads' }).getByRole('link').click();
    expect(page.url()).toBe(`${publicUrl}/docs/quick-start#read-leads`);
  });

  // @proves docs-3 docs-5
  test('without scripts every page shows all that it has', async () => {
    const page = await open(`${publicUrl}/docs/clients`, { javaScriptEnabled: false });
    expect(await page.locator('figure:visible').count()).toBe(12);
    expect(await page.getByRole('searchbox').isVisible()).toBe(false);
    await page.goto(`${publicUrl}/docs/try-it-out`);
    await page.getByText('a POST creates a lead').waitFor();
    await page.getByRole('link', { name: 'the reference', exact: true }).click();
    await page.getByRole('heading', { name: 'Create a lead' }).waitFor();
  });

  test('the reference shows an operation with each official client, and with curl', async () => {
    const page = await open(`${publicUrl}/docs/try-it-out`);
    const sample = (text: string) => page.locator('pre, code').filter({ hasText: text }).first();
    await sample("from 'lead-intake-sdk'").waitFor();
    let shown = 'JavaScript, TypeScript';
    for (const [client, text] of [
      ['PHP', 'use LeadIntake\\'],
      ['Python', 'from lead_intake import'],
      ['cURL', 'curl '],
    ] as const) {
      await page.getByRole('button', { name: shown }).first().click();
      await page.getByRole('option', { name: client, exact: true }).first().click();
      await sample(text).waitFor();
      shown = client;
    }
  });

  test.each(['light', 'dark'] as const)(
    'the reference and a page fit on a phone, and follow its colour scheme: %s',
    async (colorScheme) => {
      const page = await open(`${publicUrl}/docs/try-it-out`, { viewport: PHONE, colorScheme });
      await page.getByRole('heading', { name: 'Create a lead' }).waitFor();
      const [text, ground] = colorScheme === 'dark' ? ['light', 'dark'] : ['dark', 'light'];
      for (const path of ['/docs/try-it-out', '/docs/limits']) {
        if (path !== '/docs/try-it-out') await page.goto(publicUrl + path);
        const shown = {
          width: await page.evaluate(SHOWN_WIDTH),
          text: toneOf(await page.evaluate('getComputedStyle(document.querySelector("h1")).color')),
          ground: toneOf(await page.evaluate('getComputedStyle(document.body).backgroundColor')),
        };
        expect({ path, ...shown }).toEqual({ path, width: PHONE.width, text, ground });
      }
    },
  );
});

/** In the page: its width. */
const SHOWN_WIDTH = 'document.documentElement.scrollWidth';

/** In the page, once axe is there: what it finds. */
const FAULTS_OF_ACCESS = `axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }).then(({ violations }) =>
  violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html.slice(0, 200))))`;

/** In the page: the words in tables that stand on two lines, and the blocks of code of which a part cannot be seen. */
const FAULTS_OF_TEXT = `(() => {
  const faults = [];
  for (const cell of document.querySelectorAll('th, td')) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const { 0: word, index } of texts.currentNode.data.matchAll(/[\\p{L}\\p{N}_]+/gu)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, index);
        range.setEnd(texts.currentNode, index + word.length);
        if (new Set([...range.getClientRects()].map(({ top }) => top)).size > 1) faults.push(word);
      }
    }
  }
  for (const code of document.querySelectorAll('pre')) if (code.scrollWidth > code.clientWidth) faults.push(code.innerText);
  return faults;
})()`;

/** Returns whether a colour is nearer to white or to black. */
function toneOf(colour: string): 'light' | 'dark' {
  const [red = 0, green = 0, blue = 0] = colour.match(/[\d.]+/g)?.map(Number) ?? [];
  return red + green + blue > 382 ? 'light' : 'dark';
}
