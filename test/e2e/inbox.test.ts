import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { ApiKeyScope } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { times } from '../support/builders.ts';
import { aCapture, aService, readLead } from '../support/service.ts';
import { describeWithChromium, listAccessFaults, SHOWN_WIDTH } from '../tools/browser.ts';

const LIMIT = 80;
/** A visitor may enter this text to run a script in the reader's page. */
const HOSTILE = '<img src=x onerror="document.title=1">{{ document.title = 2 }}';

describeWithChromium('the inbox, in a browser', (open) => {
  const service = aService({ gateway: { QUOTA_LIMIT: `${LIMIT}`, QUOTA_WINDOW_SECONDS: '3600' } });
  const address = (key = '') => `${service.url}/docs/inbox${key && `#key=${key}`}`;
  const create = async (secret: string, changes: Record<string, unknown>) =>
    readLead(await service.post(secret, aCapture(changes)), 201);
  /** Opens the inbox. It polls only when a test moves the clock, so a slow machine adds no request. */
  async function openWithPausedClock(): Promise<Page> {
    const page = await open(address());
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    return page;
  }
  const names = (page: Page) => page.locator('.leads summary strong').allTextContents();

  // @proves docs-6
  test('the inbox shows the leads of a key as they arrive, and can forget the key', async () => {
    const { secret } = await service.aStudioWithKey();
    await create(secret, { displayName: 'Grace Hopper', note: 'On Saturday, with two children.' });
    const page = await open(address(secret));
    await page.getByText('Grace Hopper').first().waitFor();
    expect(page.url()).toBe(address());
    expect(await page.evaluate('JSON.stringify([localStorage, sessionStorage, history.state])')).not.toContain(secret);
    const lead = await create(secret, { displayName: 'Alan Turing' });
    await page.getByText('Alan Turing').first().waitFor();
    expect(await names(page)).toEqual(['Alan Turing', 'Grace Hopper']);
    await page.getByText('Alan Turing').first().click();
    await page.getByText(lead.id).waitFor();
    await page.getByText('the API does not return it').first().waitFor();
    await page.getByText(`of ${LIMIT} requests left`).waitFor();
    await page.getByRole('button', { name: 'Forget the key' }).click();
    expect(await names(page)).toEqual([]);
    await page.reload();
    await page.getByRole('button', { name: 'Show the leads' }).waitFor();
  });

  test('the inbox forgets a key even while a request is in flight, and sends no more requests', async () => {
    const { secret } = await service.aStudioWithKey();
    await create(secret, { displayName: 'Grace Hopper' });
    const page = await openWithPausedClock();
    await page.getByLabel('API key').fill(secret);
    await page.getByRole('button', { name: 'Show the leads' }).click();
    await page.getByText('Grace Hopper').first().waitFor();
    const held = Promise.withResolvers<void>();
    let requests = 0;
    await page.route('**/v1/**', async (route) => {
      requests += 1;
      await held.promise;
      await route.continue().catch(() => {});
    });
    await page.clock.fastForward(31_000);
    await expect.poll(() => requests).toBe(1);
    await page.getByRole('button', { name: 'Forget the key' }).click();
    held.resolve();
    await page.clock.fastForward(31_000);
    await page.getByRole('button', { name: 'Show the leads' }).waitFor();
    await page.clock.fastForward(31_000);
    expect([await names(page), requests]).toEqual([[], 1]);
  });

  // @proves docs-6
  test("the inbox shows visitors' text as written and runs none of it", async () => {
    const { secret } = await service.aStudioWithKey();
    await create(secret, { displayName: HOSTILE, note: `${HOSTILE}<script>document.title = 3</script>` });
    const page = await open(address(secret));
    await page.getByText(HOSTILE).first().waitFor();
    await page.getByText(HOSTILE).first().click();
    expect(await page.locator('.leads dd').allTextContents()).toEqual(
      expect.arrayContaining([HOSTILE, `${HOSTILE}<script>document.title = 3</script>`]),
    );
    expect(await page.locator('.leads img, .leads script').count()).toBe(0);
    expect(await page.title()).toBe('Inbox | Lead Intake API');
  });

  test('the inbox loads older leads, and drops them when new leads leave a gap', async () => {
    const { secret } = await service.aStudioWithKey();
    for (const number of times(27, (index) => index)) await create(secret, { displayName: `Lead ${number}` });
    const page = await openWithPausedClock();
    await page.getByLabel('API key').fill(secret);
    await page.getByRole('button', { name: 'Show the leads' }).click();
    await page.getByRole('button', { name: 'Load older leads' }).click();
    await page.getByText('Lead 0').first().waitFor();
    expect(await names(page)).toEqual(times(27, (index) => `Lead ${26 - index}`));
    expect(await page.getByRole('button', { name: 'Load older leads' }).count()).toBe(0);
    for (const number of times(26, (index) => index)) await create(secret, { displayName: `Later ${number}` });
    await page.clock.fastForward(31_000);
    await page.getByText('Later 25').first().waitFor();
    expect(await names(page)).toEqual(times(25, (index) => `Later ${25 - index}`));
    await page.getByRole('button', { name: 'Load older leads' }).click();
    await page.getByText('Later 0').first().waitFor();
    expect((await names(page)).slice(24, 27)).toEqual(['Later 1', 'Later 0', 'Lead 26']);
  });

  test('the inbox leaves half of the quota to other clients', async () => {
    const { secret } = await service.aStudioWithKey();
    const page = await openWithPausedClock();
    let requests = 0;
    page.on('response', (response) => {
      if (response.url().includes('/v1/')) requests += 1;
    });
    await page.getByLabel('API key').fill(secret);
    await page.getByRole('button', { name: 'Show the leads' }).click();
    const left = page.locator('.quota');
    await left.waitFor();
    for (let polls = 1; polls < LIMIT / 2 + 5; polls += 1) {
      await page.clock.fastForward(31_000);
      await expect.poll(() => requests).toBe(Math.min(polls + 1, LIMIT / 2 + 1));
    }
    expect(await left.textContent()).toContain(`${LIMIT / 2 - 1} of ${LIMIT} requests left`);
  });

  test('the inbox keeps showing the last known quota when later reads fail', async () => {
    const { secret } = await service.aStudioWithKey();
    const page = await openWithPausedClock();
    await page.getByLabel('API key').fill(secret);
    await page.getByRole('button', { name: 'Show the leads' }).click();
    await page.getByText('No lead yet').waitFor();
    await page.route('**/v1/**', (route) => route.abort());
    const shown = await page.locator('.quota').textContent();
    await page.clock.fastForward(31_000);
    await page.getByText('The service does not answer').waitFor();
    expect(await page.locator('.quota').textContent()).toBe(shown);
  });

  test.each([
    [401, 'is missing, revoked, replaced or expired. Paste the whole key', false],
    [403, 'does not allow this operation. This page needs a key with the scope leads.read', false],
    [429, 'This page asks again at', true],
    [503, 'This page asks again at', true],
    [0, 'The service does not answer. This page asks again at', true],
  ] as const)('the inbox explains what to do about a %s', async (status, text, asksAgain) => {
    const scopes = status === 403 ? [ApiKeyScope.LEADS_CREATE] : [ApiKeyScope.LEADS_READ];
    const { secret } = await service.aStudioWithKey({ scopes });
    if (status === 429) for (const _ of times(LIMIT, () => 0)) await service.get(secret);
    const page = await openWithPausedClock();
    await page.route('**/v1/**', (route) => {
      if (status === 503) return route.fulfill({ status, headers: { 'retry-after': '7' }, body: 'busy' });
      return status === 0 ? route.abort() : route.continue();
    });
    await page.getByLabel('API key').fill(status === 401 ? `${secret}x` : secret);
    await page.getByRole('button', { name: 'Show the leads' }).click();
    await page.getByRole('alert').getByText(text).waitFor();
    if (status >= 400 && status < 500)
      expect(await page.getByRole('link', { name: 'What to do' }).getAttribute('href')).toContain('/docs/problems/');
    const again = page.waitForResponse('**/v1/**', { timeout: 20_000 }).then(
      () => true,
      () => false,
    );
    await page.unroute('**/v1/**');
    if (!asksAgain) return;
    await page.clock.fastForward(3_700_000);
    expect(await again).toBe(true);
  });

  // @proves docs-5
  test('the quick start sends a first lead, a repetition, other data and a new key', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const page = await open(`${service.url}/docs/quick-start`, { viewport: { width: 390, height: 844 } });
    await page.getByRole('textbox', { name: 'API key' }).fill(secret);
    const first = page.locator('.attempts li').first();
    for (const [button, ...texts] of [
      ['Send', 'HTTP 201', '"stage": "new"'],
      ['Send it again', 'HTTP 201', 'Idempotent-Replayed: true'],
      ['Change the name, same key', 'HTTP 409', 'integration_idempotency_conflict'],
      ['Same person, new key', 'HTTP 409', 'integration_lead_already_open'],
    ] as const) {
      await page.getByRole('button', { name: button, exact: true }).click();
      await first.locator('strong', { hasText: button }).waitFor();
      for (const text of texts) expect(await first.textContent()).toContain(text);
      // The page scrolls to the newest response, which a phone shows below the buttons.
      await expect.poll(async () => (await first.boundingBox())?.y).toBeLessThan(844);
    }
    expect(await service.countLeads(studioId)).toBe(1);
  });

  // @proves docs-3
  test.each(['light', 'dark'] as const)('the inbox meets WCAG AA and fits on a phone: %s', async (colorScheme) => {
    const { secret } = await service.aStudioWithKey();
    await create(secret, { displayName: 'W'.repeat(160), note: 'On Saturday.' });
    const page = await open(address(secret), { viewport: { width: 390, height: 844 }, colorScheme });
    await page.getByText('On Saturday.').first().click();
    await page.getByText('Send a lead from here').click();
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByText('HTTP 201').waitFor();
    await page.evaluate(axe.source);
    expect(await page.evaluate(listAccessFaults())).toEqual([]);
    expect(await page.evaluate(SHOWN_WIDTH)).toBe(390);
  });
});
