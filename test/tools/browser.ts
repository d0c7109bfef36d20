import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { describeIf } from './servers.ts';

const CHROMIUM = (process.env.PATH ?? '')
  .split(delimiter)
  .map((folder) => join(folder, 'chromium'))
  .find((file) => existsSync(file));

/** How long an element may take to appear on a machine that is busy with other tests; milliseconds. */
const TIMEOUT_MS = 60_000;

/**
 * Opens an address in a separate browser context. The test fails when the page logs an error or warning, or requests
 * anything from another host.
 */
export type OpenPage = (url: string, options?: BrowserContextOptions) => Promise<Page>;

/** Defines a suite that needs a browser. */
export function describeWithChromium(name: string, body: (open: OpenPage) => void): void {
  describeIf(CHROMIUM !== undefined, name, 'install chromium', () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await chromium.launch({ executablePath: CHROMIUM ?? '', args: ['--no-sandbox'] });
    });
    afterAll(() => browser?.close());

    body(async (url, options) => {
      const context = await browser.newContext(options);
      const page = await context.newPage();
      page.setDefaultTimeout(TIMEOUT_MS);
      const problems: string[] = [];
      page.on('console', (message) => {
        // The API may refuse requests of a page, and Chromium requests the icon of a host by itself.
        if (/\/v1\/|^\/favicon\.ico$/.test(new URL(message.location().url || url).pathname)) return;
        if (['error', 'warning'].includes(message.type())) problems.push(`${message.text()} ${message.location().url}`);
      });
      page.on('pageerror', ({ message }) => problems.push(message));
      page.on('request', (request) => {
        const { protocol, origin } = new URL(request.url());
        if (protocol !== 'data:' && origin !== new URL(url).origin) problems.push(`requested ${request.url()}`);
      });
      onTestFinished(async () => {
        await context.close();
        expect(problems).toEqual([]);
      });
      await page.goto(url);
      return page;
    });
  });
}

/** JavaScript that measures the width of its page. */
export const SHOWN_WIDTH = 'document.documentElement.scrollWidth';

/** Rules of axe whose outcome depends on the colour scheme. */
export const COLOUR_RULES: readonly string[] = ['color-contrast', 'link-in-text-block'];

/** Returns JavaScript that lists the accessibility faults of its page by these rules or tags. The page must have loaded axe. */
export const listAccessFaults = (
  rules: readonly string[] = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
): string => `axe.run({ resultTypes: ['violations'], runOnly: ${JSON.stringify(rules)} }).then(({ violations }) =>
  violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html.slice(0, 200))))`;
