import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { describeIf } from './servers.ts';

const CHROMIUM = (process.env.PATH ?? '')
  .split(delimiter)
  .map((folder) => join(folder, 'chromium'))
  .find((file) => existsSync(file));

/** How long something may take to show on a machine that is busy with other tests; milliseconds. */
const PATIENCE_MS = 60_000;

/**
 * Opens an address in a window of a browser that knows nothing of other windows. The test fails when the page complains,
 * or asks for anything from another host.
 */
export type OpenPage = (url: string, options?: BrowserContextOptions) => Promise<Page>;

/** A suite that needs a browser. */
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
      page.setDefaultTimeout(PATIENCE_MS);
      const complaints: string[] = [];
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
      });
      page.on('pageerror', ({ message }) => complaints.push(message));
      page.on('request', (request) => {
        const { protocol, origin } = new URL(request.url());
        if (protocol !== 'data:' && origin !== new URL(url).origin) complaints.push(`asked for ${request.url()}`);
      });
      onTestFinished(async () => {
        await context.close();
        expect(complaints).toEqual([]);
      });
      await page.goto(url);
      return page;
    });
  });
}
