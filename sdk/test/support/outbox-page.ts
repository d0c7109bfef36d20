import { expect } from 'vitest';

/** A website that shows the page of its outbox behind a password. */
export interface PageOfWebsite {
  readonly url: string;
  readonly password: string;
  /** Whether the page is that of a client, which limits the bodies that it reads. */
  readonly isOfClient?: boolean;
  /** The rows of its outbox, which has one lead, refused by the service. */
  rows(): readonly Record<string, unknown>[] | Promise<readonly Record<string, unknown>[]>;
}

const OF_PAGE = { 'content-type': 'application/json', 'x-outbox-page': '1' };

/** Expects that only the office can see the page of an outbox, send its lead again and discard it. */
export async function expectPage({ url, password, rows, isOfClient = false }: PageOfWebsite): Promise<void> {
  const ask = async (headers: Record<string, string>, body?: string, given?: string) => {
    const login = given !== undefined && {
      authorization: `Basic ${Buffer.from(`office:${given}`).toString('base64')}`,
    };
    const method = body === undefined ? 'GET' : 'POST';
    const response = await fetch(url, {
      method,
      headers: { ...headers, ...login },
      redirect: 'manual',
      ...(body && { body }),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const report = async (headers: Record<string, string> = { accept: 'application/json' }, body?: string) => {
    const { status, text } = await ask(headers, body, password);
    expect(status, text).toBe(200);
    return JSON.parse(text);
  };
  const before = await rows();
  expect(before).toHaveLength(1);

  const { needsAttention, ...rest } = await report();
  const { idempotencyKey, ...entry } = needsAttention.entries[0];
  expect([Object.keys(rest), needsAttention.count]).toEqual([['waiting', 'comparison', 'mayCompare'], 1]);
  expect(entry).toEqual({
    ...{ state: 'refused', attempts: 1, createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) },
    ...{ reason: expect.stringMatching(/^400 /), capture: expect.objectContaining({ contact: expect.anything() }) },
  });
  expect(rest.waiting).toEqual({ count: 0, since: null, reasons: {} });

  const discard = JSON.stringify({ action: 'discard', idempotencyKey });
  for (const given of [undefined, '', `${password}x`]) {
    for (const body of [undefined, discard]) {
      const { status, headers, text } = await ask(OF_PAGE, body, given);
      expect([status, headers.get('www-authenticate'), text.includes(idempotencyKey)]).toEqual([
        ...[401, expect.stringMatching(/^Basic /), false],
      ]);
    }
  }
  const { headers, text } = await ask({ accept: 'text/html' }, undefined, password);
  expect(text).toContain('<title>Leads of this website</title>');
  expect(headers.get('content-type')?.toLowerCase()).toBe('text/html; charset=utf-8');
  expect(headers.get('cache-control')).toContain('no-store');
  expect(headers.get('x-robots-tag')).toBe('noindex');
  expect(headers.get('referrer-policy')).toBe('no-referrer');
  expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'sha256-/);

  // The scheme Basic is case-insensitive.
  const authorization = `basic ${Buffer.from(`anyone:${password}`).toString('base64')}`;
  expect(await fetch(url, { headers: { authorization } })).toMatchObject({ status: 200 });
  const form = 'application/x-www-form-urlencoded';
  const long = JSON.stringify({ action: 'discard', idempotencyKey, more: 'a'.repeat(64 * 1024) });
  for (const [sent, body, status] of [
    ...(isOfClient ? ([[OF_PAGE, long, 413]] as const) : []),
    [{ 'content-type': 'application/json' }, discard, 403],
    [{ ...OF_PAGE, 'content-type': form }, `action=discard&idempotencyKey=${idempotencyKey}`, 415],
    [{ ...OF_PAGE, 'content-type': 'text/plain' }, discard, 415],
    [OF_PAGE, '{"action":"discard"}', 400],
    [OF_PAGE, '{"action":"discard","idempotencyKey":"none"}', 409],
  ] as const) {
    const refusal = await ask(sent, body, password);
    expect([refusal.status, JSON.parse(refusal.text)]).toEqual([status, expect.anything()]);
  }
  expect(await rows()).toEqual(before);

  const act = (action: string) => report(OF_PAGE, JSON.stringify({ action, idempotencyKey }));
  const again = await act('retry');
  expect(again.waiting).toEqual({ count: 1, since: entry.createdAt, reasons: { 'not tried yet': 1 } });
  expect(await rows()).toEqual([expect.objectContaining({ state: 'waiting' })]);
  await act('discard');
  expect(await rows()).toEqual([expect.objectContaining({ state: 'discarded', capture: null })]);
}
