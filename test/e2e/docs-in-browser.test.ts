import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PROBLEMS } from '../../gateway/problems.ts';
import { describeWithChromium } from '../support/browser.ts';
import { aService, leadOf } from '../support/service.ts';

const PREFIX = '/some/prefix';
const PHONE = { width: 390, height: 844 };
const WRITTEN_PAGES = [
  ...['quick-start', 'clients', 'retries', 'outbox', 'limits', 'keys', 'problems'].map((name) => `/docs/${name}`),
  ...Object.keys(PROBLEMS).map((code) => `/docs/problems/${code}`),
];

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

  test('the reference sends a request, which creates a lead', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const page = await open(`${publicUrl}/docs`);

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
      for (const path of WRITTEN_PAGES) {
        await page.goto(publicUrl + path);
        const found = { faults: await page.evaluate(FAULTS_OF_TEXT), shown: await page.evaluate(SHOWN_WIDTH) };
        expect({ path, ...found }).toEqual({ path, faults: [], shown: width });
      }
    }
  });

  test('the reference shows an operation with each official client, and with curl', async () => {
    const page = await open(`${publicUrl}/docs`);
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
      const page = await open(`${publicUrl}/docs`, { viewport: PHONE, colorScheme });
      await page.getByRole('heading', { name: 'Create a lead' }).waitFor();
      const [text, ground] = colorScheme === 'dark' ? ['light', 'dark'] : ['dark', 'light'];
      for (const path of ['/docs', '/docs/limits']) {
        if (path !== '/docs') await page.goto(publicUrl + path);
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
