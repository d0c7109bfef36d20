import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import axe from 'axe-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSite } from '../../gateway/docs/site.ts';
import { aService, readLead } from '../support/service.ts';
import { COLOUR_RULES, describeWithChromium, listAccessFaults, SHOWN_WIDTH } from '../tools/browser.ts';
import { run } from '../tools/processes.ts';

const PREFIX = '/some/prefix';
const PHONE = { width: 390, height: 844 };
const paths = [...openSite({ publicUrl: 'https://api.example.com', limit: 1, windowSeconds: 1 }).paths];
const PAGES = paths
  .filter(([path, name]) => name.endsWith('.html') && path !== '/docs/try-it-out')
  .map(([path]) => path);

const FOUND_FIRST = {
  401: 'problems/integration_key_invalid',
  nextjs: 'recipes/nextjs',
  laravel: 'recipes/laravel',
  spam: 'wordpress#',
  'form key': 'clients#the-key-of-a-form',
  integration_lead_already_open: 'problems/integration_lead_already_open',
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
  const service = aService(() => ({ gateway: { PUBLIC_URL: publicUrl } }));

  test('on a phone the reference shows the response, and gives the next request a new key', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const page = await open(`${publicUrl}/docs/try-it-out`, { viewport: PHONE });

    await page.getByPlaceholder('Token').first().fill(secret);
    await page.getByRole('button', { name: /Test Request.*post/ }).click();
    const answered = page.waitForResponse((response) => response.request().method() === 'POST');
    await page.getByRole('button', { name: /^Send post request/ }).click();

    const answer = await answered;
    const response = new Response(await answer.text(), { status: answer.status(), headers: answer.headers() });
    const { id } = await readLead(response, 201);
    await page.getByText(id).first().waitFor();
    // The page scrolls to the response, which is below the request.
    await expect.poll(async () => (await page.getByText(id).first().boundingBox())?.y).toBeLessThan(PHONE.height);
    // The second request has another key.
    const again = page.waitForResponse((response) => response.request().method() === 'POST');
    await page.getByRole('button', { name: /^Send post request/ }).click();
    expect(JSON.parse(await (await again).text())).toMatchObject({ code: 'integration_lead_already_open' });
    expect(await service.countLeads(studioId)).toBe(1);
  });

  // @proves docs-3
  test('no page breaks a word, cuts a command, is too wide or misses WCAG AA, light or dark', async () => {
    const page = await open(`${publicUrl}/docs/quick-start`);
    for (const path of PAGES) {
      await page.goto(publicUrl + path);
      for (const width of [320, PHONE.width, 768, 1280]) {
        await page.setViewportSize({ width, height: PHONE.height });
        const found = { faults: await page.evaluate(LAYOUT_FAULTS), shown: await page.evaluate(SHOWN_WIDTH) };
        expect({ path, width, ...found }).toEqual({ path, width, faults: [], shown: width });
      }
      await page.getByRole('button', { name: 'Search' }).waitFor();
      await page.evaluate(KEEP_ONE_TOKEN_PER_STYLE);
      await page.evaluate(axe.source);
      await page.evaluate(END_TRANSITIONS);
      expect({ path, faults: await page.evaluate(listAccessFaults()) }).toEqual({ path, faults: [] });
      await page.emulateMedia({ colorScheme: 'dark' });
      await page.locator('html.dark').waitFor();
      await page.evaluate(END_TRANSITIONS);
      expect({ path, faults: await page.evaluate(listAccessFaults(COLOUR_RULES)) }).toEqual({ path, faults: [] });
      await page.emulateMedia({ colorScheme: 'light' });
    }
  });

  test('a language chosen on one page is shown on every page', async () => {
    const page = await open(`${publicUrl}/docs/clients`);
    const shown = () => page.locator('.vp-code-group .active').allTextContents();
    const containing = (...texts: string[]) => texts.map((text) => expect.stringContaining(text));
    await expect
      .poll(shown)
      .toEqual(containing('npm install', 'await check(', 'createLeadIntakeClient({', 'stop.abort()'));
    await page.getByRole('radio', { name: 'TypeScript' }).first().press('ArrowRight');
    await expect
      .poll(shown)
      .toEqual(containing('pip install', 'LeadIntakeClient.check(', 'LeadIntakeClient(os', 'Cancellation()'));
    await page.getByText('PHP', { exact: true }).last().click();
    await page.goto(`${publicUrl}/docs/reference`);
    await expect.poll(shown).toEqual(containing('use LeadIntake', 'use LeadIntake', 'use LeadIntake'));
  });

  test('the menu leads to every page, and a page leads to the next one and to its sections', async () => {
    const page = await open(`${publicUrl}/docs`);
    await page.getByRole('link', { name: 'Quick start' }).first().click();
    await page.waitForURL(`${publicUrl}/docs/quick-start`);
    await page.getByRole('navigation').getByRole('link', { name: 'Limits' }).click();
    await page.waitForURL(`${publicUrl}/docs/limits`);
    await page.getByRole('link', { name: 'Next page Keys' }).click();
    await page.waitForURL(`${publicUrl}/docs/keys`);
    await page.getByLabel('On this page').getByRole('link', { name: 'The format of a secret' }).click();
    await page.waitForURL(`${publicUrl}/docs/keys#the-format-of-a-secret`);
    await page.goBack();
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
    // This is another document, whose script needs another Content-Security-Policy.
    await page.goto(`${publicUrl}/docs`);
    await page.getByRole('link', { name: 'to try out' }).click();
    await page.getByRole('heading', { name: 'Create a lead' }).waitFor();
  });

  // @proves docs-3
  test('a keyboard shortcut opens the search, which lists the best page first', async () => {
    const page = await open(`${publicUrl}/docs/keys`);
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
    for (const [query, path] of Object.entries(FOUND_FIRST)) {
      await page.locator('body').press(path.startsWith('problems') ? '/' : 'Control+k');
      await page.getByRole('searchbox').fill(query);
      const first = page.locator(
        `#localsearch-list > li:first-child a[href^="${new URL(publicUrl).pathname}/docs/${path}"]`,
      );
      await first.waitFor({ timeout: 10_000 });
      await page.keyboard.press('Escape');
    }
    await page.locator('body').press('/');
    await page.getByRole('searchbox').fill('back off jitter');
    await page.locator('#localsearch-list > li:nth-child(2)').waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${publicUrl}/docs/retries#what-to-repeat-and-when`);
  });

  test('code has colours and is copied unchanged, and a heading has an address', async () => {
    const page = await open(`${publicUrl}/docs/quick-start`, { permissions: ['clipboard-read', 'clipboard-write'] });
    const block = page.locator('div[class*="language-"]').filter({ hasText: 'curl -i' });
    const colours = await page.evaluate(
      "new Set([...document.querySelectorAll('pre code span')].map((part) => getComputedStyle(part).color)).size",
    );
    expect(colours).toBeGreaterThan(1);
    await block.hover();
    await block.getByRole('button', { name: 'Copy' }).click();
    await block.locator('.copied').waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(await block.locator('code').textContent());
    await page.getByRole('heading', { name: 'Read leads' }).getByRole('link').click();
    expect(page.url()).toBe(`${publicUrl}/docs/quick-start#read-leads`);
  });

  // @proves docs-3 docs-5
  test('every page shows all of its content without scripts', async () => {
    const page = await open(`${publicUrl}/docs/clients`, { javaScriptEnabled: false });
    expect(await page.locator('.vp-code-group pre:visible').count()).toBe(12);
    expect(await page.getByRole('button', { name: 'Search' }).isVisible()).toBe(false);
    expect(await page.getByRole('link', { name: 'integration_key_invalid' }).isVisible()).toBe(true);
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
          text: judgeTone(await page.evaluate('getComputedStyle(document.querySelector("h1")).color')),
          ground: judgeTone(await page.evaluate('getComputedStyle(document.body).backgroundColor')),
        };
        expect({ path, ...shown }).toEqual({ path, width: PHONE.width, text, ground });
      }
    },
  );
});

describeWithChromium('npm run docs', (open) => {
  // @proves docs-2
  test("npm run docs serves the operator's pages with those of /docs, one menu and one search", async () => {
    const running = run('gateway/docs/generator/serve.ts');
    const [, url = ''] = await running.printed(/Local:.*?(http:\S+\/docs)\//);
    const page = await open(`${url}/project/docs/how-to/deploy`);
    await page.getByRole('heading', { name: 'Start a gateway' }).waitFor();
    await page.getByRole('link', { name: 'Quick start' }).first().click();
    await page.getByRole('heading', { name: 'Get a key' }).waitFor();
    await page.locator('body').press('/');
    await page.getByRole('searchbox').fill('TRUSTED_PROXIES');
    await page.locator('#localsearch-list a[href*="/project/"]').first().waitFor();
  });
});

/** Runs in the page: returns words in tables that are split over two lines, blocks of code that are cut, and rows that are too high. */
const LAYOUT_FAULTS = `(() => {
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
  for (const row of document.querySelectorAll('tr')) if (row.offsetHeight > innerHeight) faults.push(row.innerText);
  return faults;
})()`;

/** Runs in the page: keeps one token of each style in code, because axe would judge the colours of thousands. */
const KEEP_ONE_TOKEN_PER_STYLE = `(() => {
  const seen = new Set();
  for (const token of document.querySelectorAll('pre .line > span')) {
    const style = [token, token.parentNode, token.closest('div')].map((each) => each.className + each.style.cssText).join();
    if (seen.has(style)) token.replaceWith(token.textContent);
    seen.add(style);
  }
})()`;

/** Runs in the page: ends the transitions after a change of the window or of the colour scheme. */
const END_TRANSITIONS = 'document.getAnimations().forEach((each) => each.finish())';

/** Returns whether a colour is nearer to white or to black. */
function judgeTone(colour: string): 'light' | 'dark' {
  const [red = 0, green = 0, blue = 0] = colour.match(/[\d.]+/g)?.map(Number) ?? [];
  return red + green + blue > 382 ? 'light' : 'dark';
}
