import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { expect, onTestFinished, test, vi } from 'vitest';
import { describeWithChromium, listAccessFaults, SHOWN_WIDTH } from '../../test/tools/browser.ts';
import { aServedService } from '../../test/tools/served-service.ts';
import { createLeadIntakeClient } from '../index.ts';
import { createOutbox, createOutboxPage } from '../outbox/index.ts';
import { unknownKey } from './support/key-secret.ts';

const service = aServedService();

/** A visitor may have entered this to take over the page of whoever reads it. */
const HOSTILE = '<img src=x onerror="document.title=1"><script>document.title = 2</script>';
const NOWHERE = { type: 'email', value: 'nowhere' } as const;

/** Starts a website that serves the page of its outbox at an address with a prefix and a query. Its database is in memory. */
async function aWebsite() {
  const { secret, studioId } = await service.aStudioWithKey();
  const client = createLeadIntakeClient({ baseUrl: service.url, apiKey: secret });
  const database = new DatabaseSync(':memory:');
  const outbox = createOutbox({ table: 'leads' });
  await outbox.setUp(database);
  let reader = client;
  const page = createOutboxPage({ outbox, connection: database, client: () => reader });
  let failure: number | undefined;
  const server = createServer(async (request, response) => {
    if (failure === undefined) return page.handle(request, response);
    return failure === 0 ? request.destroy() : response.writeHead(failure).end('{"error":"Bad Request"}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    // Below /v1, where a browser's own messages about refusals are expected.
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/office/leads?of=today`,
    database,
    studioId,
    add: (displayName: string, note?: string, contact: { type: 'email'; value: string } = NOWHERE) =>
      outbox.add(database, { displayName, contact, ...(note && { note }) }),
    deliver: () => outbox.deliver(database, client),
    key(kind: 'right' | 'unknown') {
      reader = kind === 'right' ? client : createLeadIntakeClient({ baseUrl: service.url, apiKey: unknownKey() });
    },
    /** Answers each request with a status, or not at all: 0. */
    fail(status: number | undefined) {
      failure = status;
    },
  };
}

const section = (page: Page, name: string) => page.getByRole('region', { name });
const needy = (page: Page) => section(page, 'Leads that need attention');
const message = (page: Page) => page.getByRole('status');

// @proves bounds-222
test('a comparison by the page ends after 20 seconds, and the next one continues it', async () => {
  const outbox = createOutbox({ table: 'leads' });
  const limits: unknown[] = [];
  const client = createLeadIntakeClient({ baseUrl: service.url, apiKey: (await service.aStudioWithKey()).secret });
  const connection = new DatabaseSync(':memory:');
  await outbox.setUp(connection);
  const reconcile: typeof outbox.reconcile = (by, reader, options) => {
    limits.push(options);
    return outbox.reconcile(by, reader, options);
  };
  const page = createOutboxPage({ outbox: { ...outbox, reconcile }, connection, client });
  const headers = { 'content-type': 'application/json', 'x-outbox-page': '1' };
  expect(await page.respond({ method: 'POST', headers, body: { action: 'compare' } })).toMatchObject({ status: 200 });
  expect(limits).toEqual([{ maxMs: 20_000 }]);
});

// @proves bounds-223
test("answers each request of Node's server, whatever its body", async () => {
  const { url, database } = await aWebsite();
  const headers = { 'content-type': 'application/json', 'x-outbox-page': '1' };
  const post = (body: string | Uint8Array) => fetch(url, { method: 'POST', headers, body });
  const utf16 = Buffer.from('\ufeff{"action":"compare"}', 'utf16le');
  for (const [body, status] of [
    ['{"action":"compare"}', 200],
    ['', 400],
    [utf16, 400],
    [Buffer.from([0x22, 0xff, 0x22]), 400],
    [`"${'a'.repeat(64 * 1024)}"`, 413],
  ] as const) {
    const response = await post(body);
    expect([response.status, response.headers.get('content-type')]).toEqual([status, 'application/json']);
  }
  const { port, pathname } = new URL(url);
  const aborted = request({ port, path: pathname, method: 'POST', headers: { ...headers, 'content-length': 100 } });
  aborted.on('error', () => {});
  const end = new Promise((resolve) => aborted.on('close', resolve));
  aborted.write('{"action":', () => aborted.destroy());
  await end;
  const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
  onTestFinished(() => printed.mockRestore());
  database.exec('ALTER TABLE leads RENAME COLUMN reason TO cause');
  const failed = await post('{"action":"compare"}');
  expect([failed.status, await failed.json()]).toEqual([
    500,
    { error: expect.stringMatching(/^The website has failed/) },
  ]);
  expect(printed).toHaveBeenCalledExactlyOnceWith(expect.any(String), expect.stringContaining('no such column'));
});

describeWithChromium('the page of an outbox, in a browser', (open) => {
  // @proves page-3
  test('says in words when there is nothing to do', async () => {
    const { url } = await aWebsite();
    const page = await open(url);
    await needy(page).getByText('Nothing. No lead needs attention.').waitFor();
    await section(page, 'Waiting leads').getByText('Nothing. Every lead was sent, or needs attention.').waitFor();
    await section(page, 'Has everything arrived?').getByText('Nothing was compared yet.').waitFor();
    expect(await message(page).textContent()).toBe('');
  });

  // @proves page-3
  test('runs nothing that visitors wrote, and sends again or erases what a person chooses', async () => {
    const website = await aWebsite();
    const hostile = website.add(HOSTILE, `One\nTwo ${HOSTILE}`);
    const mary = website.add('Mary');
    const broken = website.add('Broken');
    await website.deliver();
    website.database.exec(
      `UPDATE leads SET reason = '400 ${HOSTILE.replaceAll("'", "''")}' WHERE idempotency_key = '${hostile}'`,
    );
    website.database.exec(`UPDATE leads SET capture = '[]' WHERE idempotency_key = '${broken}'`);
    const page = await open(website.url.replace('//', '//office:password@'));

    await needy(page).getByRole('heading', { name: HOSTILE }).waitFor();
    expect(await needy(page).locator('dd').allTextContents()).toEqual(
      expect.arrayContaining([`One\nTwo ${HOSTILE}`, 'nowhere']),
    );
    await needy(page).getByText(`Reason: 400 ${HOSTILE}`).waitFor();
    await needy(page).getByText(`Data that cannot be read, ${broken}`).waitFor();
    expect(await page.getByRole('button', { name: 'Send again: Data' }).count()).toBe(0);
    expect(await page.locator('img, main script').count()).toBe(0);
    expect(await page.title()).toBe('Leads of this website');

    await page.getByRole('button', { name: 'Send again: Mary' }).click();
    await message(page).getByText('It will be sent again: Mary').waitFor();
    await section(page, 'Waiting leads').getByText('1 lead waits to be sent').waitFor();
    await section(page, 'Waiting leads').getByText('1: To be sent next.').waitFor();
    expect(await needy(page).getByRole('heading', { name: 'Mary' }).count()).toBe(0);

    const discard = page.getByRole('button', { name: `Discard: ${HOSTILE}` });
    await discard.click();
    await page
      .getByRole('dialog')
      .getByText('Its data is erased from this website, and it is not sent again.')
      .waitFor();
    await page.getByRole('button', { name: 'Keep it' }).click();
    await expect.poll(() => discard.evaluate((button) => button === button.ownerDocument.activeElement)).toBe(true);
    await discard.press('Enter');
    await page.keyboard.press('Escape');
    const readState = (key: string) =>
      website.database
        .prepare('SELECT state, capture IS NULL AS isErased FROM leads WHERE idempotency_key = ?')
        .get(key);
    expect(readState(hostile)).toEqual({ state: 'refused', isErased: 0 });
    await discard.click();
    await page.getByRole('button', { name: 'Erase the data' }).click();
    await message(page).getByText(`Discarded: ${HOSTILE}`).waitFor();
    expect(readState(hostile)).toEqual({ state: 'discarded', isErased: 1 });
    expect(readState(mary)).toEqual({ state: 'waiting', isErased: 0 });
    expect(await needy(page).getByRole('heading', { level: 3 }).allTextContents()).toEqual([
      `Data that cannot be read, ${broken}`,
    ]);
    // A keyboard user continues at the list.
    expect(await page.evaluate('document.activeElement.id')).toBe('need');
  });

  // @proves page-3
  test('compares, continues where it stopped, and shows what differs', async () => {
    const website = await aWebsite();
    website.add('Grace', undefined, { type: 'email', value: 'grace@example.org' });
    await website.deliver();
    const page = await open(website.url);
    await page.getByRole('button', { name: 'Compare' }).click();
    await message(page).getByText('Compared.').waitFor();
    await page.getByText(/^1 sent since \S+, 1 there\.$/).waitFor();
    website.database.exec(
      `UPDATE leads_memo SET value = json_set(value, '$.isComplete', json('false'), '$.stoppedBecause', 'time is up')`,
    );
    const [lead] = await service.readLeads(website.studioId);
    await service.eraseLead(website.studioId, lead?.id ?? '');
    await page.getByRole('button', { name: 'Refresh' }).click();
    website.key('unknown');
    await page.getByRole('button', { name: 'Continue' }).click();
    await message(page)
      .getByText('Not finished. The API key is no longer valid. Tell whoever runs the website.')
      .waitFor();
    website.key('right');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('button', { name: 'Compare' }).waitFor();
    website.database.exec('DELETE FROM leads_memo');
    await page.getByRole('button', { name: 'Compare' }).click();
    const cells = page.getByRole('table', { name: 'What differs' }).getByRole('cell');
    await cells.first().waitFor();
    expect(await cells.allTextContents()).toEqual([
      expect.stringContaining(`Delivered, lead ${lead?.id}, key `),
      expect.stringMatching(/\d/),
      expect.stringMatching(/^not there: erased/),
    ]);
  });

  // @proves page-3
  test('says what each lead needs, in words for the office', async () => {
    const website = await aWebsite();
    const change = (key: string, change: string) =>
      website.database.exec(`UPDATE leads SET ${change} WHERE idempotency_key = '${key}'`);
    change(website.add('Ahead'), "created_at = created_at + 90000000, reason = 'no answer: refused'");
    const page = await open(website.url);
    await needy(page).getByText('1 lead needs attention.', { exact: true }).waitFor();
    await needy(page).getByText('The clock of the website was wrong when it was stored').waitFor();
    change(website.add('Key'), "reason = '401 integration_key_invalid: no (request 1)'");
    change(website.add('Again'), 'attempts = 1, created_at = 1');
    for (const state of ['already_open', 'delivered']) {
      const odd = JSON.stringify({ displayName: state, toString: 'one', note: 'Hello' }).replace(
        '{',
        '{"__proto__":"two",',
      );
      change(website.add(state), `state = '${state}', reason = '${state.split('_')[0]}: why', capture = '${odd}'`);
    }
    await page.getByRole('button', { name: 'Refresh' }).click();
    await needy(page).getByText('The API key is no longer valid. Tell whoever runs the website.').waitFor();
    await needy(page).getByText('Reason: 401 integration_key_invalid: no (request 1)').waitFor();
    await needy(page).getByText('It waits to be tried again.').waitFor();
    await needy(page).getByText('This contact has an open lead.').waitFor();
    expect((await needy(page).locator('dt').allTextContents()).filter((label) => /_|S/.test(label))).toEqual(
      expect.arrayContaining(['toString', '__proto__']),
    );
    expect((await page.getByRole('button', { name: 'Send again' }).allTextContents()).length).toBe(3);
    await page.getByRole('button', { name: 'Discard: Key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('it is not sent again. An attempt in flight may still arrive.').waitFor();
    await page.getByRole('button', { name: 'Keep it' }).click();
    await page.getByRole('button', { name: 'Seen: erase it: already_open' }).click();
    await dialog.getByText('Its data is erased from this website. Nobody can bring it back.').waitFor();
    await page.getByRole('button', { name: 'Erase the data' }).click();
    await message(page).getByText('Erased: already_open').waitFor();
  });

  // @proves page-3
  test('says what to do when a request fails, and since when the shown leads may be out of date', async () => {
    const website = await aWebsite();
    const key = website.add('Mary');
    await website.deliver();
    const page = await open(website.url);
    const again = page.getByRole('button', { name: 'Send again: Mary' });
    await again.waitFor();
    website.database.exec(`UPDATE leads SET state = 'delivered', capture = NULL WHERE idempotency_key = '${key}'`);
    await again.click();
    await message(page).getByText('In the meantime, this lead was sent, or somebody discarded it.').waitFor();
    await needy(page).getByText('Nothing. No lead needs attention.').waitFor();
    const shown = needy(page);
    for (const [status, words] of [
      [503, /^The website has failed \(503\), .* What you see is as of \d\d:\d\d( [AP]M)?\.$/],
      [0, /^The website does not answer\. .* What you see is as of /],
      [403, 'You are no longer signed in, or may not use this page.'],
    ] as const) {
      website.fail(status);
      await page.getByRole('button', { name: 'Refresh' }).click();
      await message(page).getByText(words).waitFor();
      expect(await shown.count(), String(status)).toBe(status === 403 ? 0 : 1);
    }
    website.fail(undefined);
    await page.getByRole('button', { name: 'Refresh' }).click();
    await needy(page).getByText('Nothing. No lead needs attention.').waitFor();
  });

  // @proves page-3
  test.each(['light', 'dark'] as const)('meets WCAG AA, and fits on a phone: %s', async (colorScheme) => {
    const website = await aWebsite();
    website.add('W'.repeat(160), 'On Saturday, with two children.');
    website.add('Grace', undefined, { type: 'email', value: 'grace@example.org' });
    await website.deliver();
    website.add('Waits');
    const [lead] = await service.readLeads(website.studioId);
    await service.eraseLead(website.studioId, lead?.id ?? '');
    const page = await open(website.url, { viewport: { width: 390, height: 844 }, colorScheme });
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.getByRole('table').waitFor();
    await page.evaluate(axe.source);
    expect(await page.evaluate(listAccessFaults())).toEqual([]);
    expect(await page.evaluate(SHOWN_WIDTH)).toBe(390);
    await page.getByRole('button', { name: 'Discard' }).first().click();
    await page.getByRole('dialog').waitFor();
    expect(await page.evaluate(listAccessFaults())).toEqual([]);
    expect(await page.evaluate(SHOWN_WIDTH)).toBe(390);
  });
});
