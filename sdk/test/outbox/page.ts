import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { ServedService } from '../../../test/tools/served-service.ts';
import { REASON_UNREADABLE } from '../../outcomes.ts';
import { unknownKey } from '../support/key-secret.ts';
import type { OutboxUnderTest } from './on-each-database.ts';
import { aCapture, TABLE, type Website } from './website.ts';

const JSON_TYPE = 'application/json';
const ACCEPTS_JSON = { Accept: JSON_TYPE };
/** The headers that the page's script sends. */
const OF_PAGE = { 'Content-Type': JSON_TYPE, 'X-Outbox-Page': '1' };

interface Response {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Returns a request of the page with lower-case header names, as in Node. */
const makeRequest = (method: string, headers: Readonly<Record<string, string>>, body?: string) => ({
  method,
  headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  ...(body !== undefined && { body }),
});

/** Returns the page's response to one request. */
async function ask(website: Website, request: object, args: object = {}, settings: object = {}): Promise<Response> {
  const { result } = await website.run('page', { requests: [request], ...args }, settings);
  return (result.responses as Response[])[0] as Response;
}

/** Returns the JSON of a response that must be 200. */
function reportIn({ status, body }: Response): Record<string, unknown> {
  expect(status, body).toBe(200);
  return JSON.parse(body);
}

const act = (action: object) => makeRequest('POST', OF_PAGE, JSON.stringify(action));

/** Defines the tests of the page. `testOnce` defines those that depend on no database. */
export function testPage(
  service: ServedService,
  { name, others, aWebsite, prepareDrivers }: OutboxUnderTest,
  testOnce: ReturnType<typeof test.runIf>,
): void {
  // @proves page-1
  test(`${name}: the page reports the same JSON in each language, and retries or discards leads`, async () => {
    const website = await aWebsite();
    const [good, bad, broken] = [aCapture(), aCapture({ note: 'Zoë 😀 </script>' }), aCapture()];
    const nowhere = { ...bad, contact: { type: 'email', value: 'nowhere' } } as const;
    const [goodKey, badKey, brokenKey] = await website.add(good, nowhere, { ...broken, contact: nowhere.contact });
    await website.run('deliver');
    await website.database.run(
      `UPDATE ${TABLE} SET capture = 'no JSON', reason = '${REASON_UNREADABLE}', created_at = created_at + 1 WHERE idempotency_key = '${brokenKey}'`,
    );
    await website.database.run(`UPDATE ${TABLE} SET created_at = 1 WHERE idempotency_key = '${badKey}'`);
    await website.add(aCapture(), aCapture());
    await website.run('deliver', {}, { apiKey: unknownKey() });

    const readTime = async (key: string | undefined) =>
      new Date((await website.rows()).find((row) => row.idempotency_key === key)?.created_at ?? 0).toISOString();
    const get = makeRequest('GET', ACCEPTS_JSON);
    const needy = reportIn(await ask(website, get, { mayCompare: false }));
    const [oldest] = (await website.rows()).filter(({ state }) => state === 'waiting');
    const waiting = {
      count: 2,
      since: await readTime(oldest?.idempotency_key),
      reasons: { '401 integration_key_invalid': 1, 'not tried yet': 1 },
    };
    const refused = (key: string | undefined, createdAt: string, reason: unknown, capture: unknown) => {
      return { idempotencyKey: key, state: 'refused', createdAt, attempts: 1, reason, capture };
    };
    const entries = [
      refused(badKey, '1970-01-01T00:00:00.001Z', expect.stringMatching(/^400 integration_invalid_request: /), nowhere),
      refused(brokenKey, await readTime(brokenKey), REASON_UNREADABLE, null),
      { state: 'waiting', reason: expect.stringMatching(/^401 /) },
    ];
    expect(needy).toEqual({
      needsAttention: { count: 3, entries: [...entries.slice(0, 2), expect.objectContaining(entries[2])] },
      waiting,
      comparison: null,
      mayCompare: false,
    });

    const since = (await website.rows()).find((row) => row.idempotency_key === goodKey)?.settled_at ?? 0;
    const compared = reportIn(await ask(website, act({ action: 'compare' })));
    expect(compared).toEqual({
      ...needy,
      mayCompare: true,
      comparison: {
        ...{
          isComplete: true,
          stoppedBecause: null,
          startedAt: expect.any(String),
          since: new Date(since).toISOString(),
        },
        ...{ sent: 1, there: 1, alreadyOpen: 0, openLeadThere: 0, otherData: 0, notRead: 0, withoutId: 0, left: 0 },
        ...{ waiting: 2, refused: 2, requests: 1, differences: [], summary: expect.stringContaining('1 sent since ') },
      },
    });
    const [sent] = await website.rows().then((rows) => rows.filter(({ state }) => state === 'delivered'));
    await service.eraseLead(website.studio.studioId, sent?.lead_id ?? '');
    const different = reportIn(await ask(website, act({ action: 'compare' })));
    expect(different.comparison).toMatchObject({
      differences: [
        {
          ...{ idempotencyKey: goodKey, leadId: sent?.lead_id, state: 'delivered', kind: 'not_there' },
          ...{ createdAt: await readTime(goodKey), reason: expect.stringMatching(/^not there: /) },
        },
      ],
    });
    for (const other of others) {
      const same = website.by(await prepareDrivers(other));
      expect(reportIn(await ask(same, get)), other.name).toEqual(different);
    }

    const retried = reportIn(await ask(website, act({ action: 'retry', idempotencyKey: badKey })));
    expect(retried).toMatchObject({
      needsAttention: { count: 3 },
      waiting: { count: 3, since: '1970-01-01T00:00:00.001Z' },
    });
    const discarded = reportIn(await ask(website, act({ action: 'discard', idempotencyKey: brokenKey })));
    expect(discarded).toMatchObject({ needsAttention: { count: 2 } });
    const states = (await website.rows()).map((row) => [row.idempotency_key, row.state, row.capture]);
    expect(states).toContainEqual([brokenKey, 'discarded', null]);
    expect(states).toContainEqual([badKey, 'waiting', expect.stringContaining('nowhere')]);
  });

  // @proves page-2
  testOnce(`${name}: the page refuses requests that are not its own, and then changes nothing`, async () => {
    const website = await aWebsite();
    const [sent, kept] = await website.add(aCapture(), aCapture({ contact: { type: 'email', value: 'nowhere' } }));
    await website.run('deliver');
    const before = await website.rows();
    const discard = JSON.stringify({ action: 'discard', idempotencyKey: kept });
    const { 'Content-Type': _, ...untyped } = OF_PAGE;
    const refusals: readonly (readonly [object, number, RegExp])[] = [
      [makeRequest('POST', { 'Content-Type': JSON_TYPE }, discard), 403, /X-Outbox-Page/],
      [makeRequest('POST', { ...OF_PAGE, 'X-Outbox-Page': '0' }, discard), 403, /X-Outbox-Page/],
      [makeRequest('POST', untyped, discard), 415, /application\/json/],
      ...['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=application/json'].map(
        (type) =>
          [makeRequest('POST', { ...OF_PAGE, 'Content-Type': type }, discard), 415, /application\/json/] as const,
      ),
      [makeRequest('POST', OF_PAGE, '{"action":'), 400, /JSON/],
      [makeRequest('POST', { ...OF_PAGE, 'X-Outbox-Page': ' 2 ' }, discard), 403, /X-Outbox-Page/],
      [makeRequest('POST', OF_PAGE, ''), 400, /JSON/],
      [makeRequest('POST', OF_PAGE, `\ufeff${discard}`), 400, /JSON/],
      [makeRequest('POST', OF_PAGE, `${discard}${' '.repeat(64 * 1024)}`), 413, /64 KiB/],
      [makeRequest('POST', OF_PAGE, '{"action":"discard","idempotencyKey":"\\ud800"}'), 400, /(JSON|action)/],
      [makeRequest('POST', OF_PAGE, `${'['.repeat(600)}${']'.repeat(600)}`), 400, /(JSON|action)/],
      ...[
        'null',
        '{"action":"discard","idempotencyKey":"\\u0000"}',
        '5',
        '"discard"',
        '[]',
        '{}',
        '{"action":"erase"}',
        '{"action":"discard"}',
        '{"action":"retry","idempotencyKey":1}',
      ].map((body) => [makeRequest('POST', OF_PAGE, body), 400, /action/] as const),
      [act({ action: 'retry', idempotencyKey: sent }), 409, /delivered/],
      [act({ action: 'discard', idempotencyKey: sent }), 409, /delivered/],
      [act({ action: 'discard', idempotencyKey: "none' OR 1=1 --" }), 409, /no lead/i],
      [makeRequest('DELETE', ACCEPTS_JSON), 405, /GET/],
    ];
    const { result } = await website.run('page', { requests: refusals.map(([request]) => request) });
    const responses = (result.responses as Response[]).map(({ status, body }) => [status, JSON.parse(body)]);
    expect(responses).toEqual(
      refusals.map(([, status, error]) => [
        status,
        { error: expect.stringMatching(new RegExp(`^(?=.*${error.source})[A-Z].*[.]$`, error.flags)) },
      ]),
    );
    const compare = act({ action: 'compare' });
    const blind = await service.aStudioWithKey({ scopes: ['leads.create'] });
    expect(await ask(website, compare, { mayCompare: false })).toMatchObject({
      status: 409,
      body: expect.stringContaining('leads.read'),
    });
    expect(await ask(website, compare, {}, { apiKey: blind.secret })).toMatchObject({
      status: 409,
      body: expect.stringContaining('leads.read'),
    });
    expect(await ask(website, makeRequest('GET', ACCEPTS_JSON), {}, { table: 'away' })).toMatchObject({
      status: 409,
      body: expect.stringContaining('table'),
    });
    expect(await website.rows()).toEqual(before);

    const driver = website.begin('page', {
      requests: [...refusals.map(([request]) => request), makeRequest('GET', ACCEPTS_JSON)],
    });
    await driver.result();
    expect(driver.process.output()).toMatch(/^\{"result".+\}\n$/);
  });

  // @proves page-1
  testOnce(`${name}: the page shows a lead as unreadable unless each language gives the same JSON`, async () => {
    const website = await aWebsite();
    const nested = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
    const rows: readonly (readonly [string, unknown])[] = [
      ['{"a":{},"b":[],"__proto__":{"toString":1},"c":[{}]}', 'same'],
      [nested(100), 'same'],
      ...[101, 509, 600].map((depth) => [nested(depth), null] as const),
      ...['1e400', '-1e400', 'NaN', 'Infinity', '9'.repeat(400), '"\\ud800"', '{"\\udc00":1}'].map(
        (value) => [`{"a":[${value}]}`, null] as const,
      ),
      ['\ufeff{}', null],
      ['[]', null],
    ];
    const keys = await website.add(...rows.map(() => aCapture()));
    for (const [index, [text]] of rows.entries())
      await website.database.run(
        `UPDATE ${TABLE} SET state = 'refused', reason = '', created_at = ${index}, capture = '${text}' WHERE idempotency_key = '${keys[index]}'`,
      );
    const get = makeRequest('GET', ACCEPTS_JSON);
    const { entries } = reportIn(await ask(website, get)).needsAttention as { entries: Record<string, unknown>[] };
    expect(entries.map(({ capture, reason }) => [JSON.stringify(capture), reason])).toEqual(
      rows.map(([text, shown]) => [shown === null ? 'null' : JSON.stringify(JSON.parse(text)), null]),
    );
    await website.database.run(`UPDATE ${TABLE} SET created_at = -9e17 WHERE created_at = 0`);
    await website.database.run(`UPDATE ${TABLE} SET created_at = 9e17, state = 'later' WHERE created_at = 1`);
    const odd = reportIn(await ask(website, get)).needsAttention as { entries: Record<string, unknown>[] };
    expect(odd.entries[0]).toMatchObject({ createdAt: '0001-01-01T00:00:00.000Z' });
    expect(odd.entries.at(-1)).toMatchObject({ createdAt: '9999-12-31T23:59:59.999Z', state: 'refused' });
    const discarded = await ask(website, act({ action: 'discard', idempotencyKey: keys[0] }));
    expect(reportIn(discarded).needsAttention).toMatchObject({ count: rows.length - 1 });
  });

  // @proves page-3
  testOnce(`${name}: the page says so when the database or the settings fail, and shows what it can`, async () => {
    const website = await aWebsite();
    const [key] = await website.add(aCapture());
    const compare = act({ action: 'compare' });
    const get = makeRequest('GET', ACCEPTS_JSON);
    const { result } = await website.run('page', { requests: [compare, get], lazily: true }, { apiKey: 'a wrong key' });
    const [refused, report] = result.responses as Response[];
    expect(refused).toMatchObject({ status: 409, body: expect.stringContaining('tell whoever runs the website.') });
    expect(reportIn(report as Response)).toMatchObject({ mayCompare: true, waiting: { count: 1 } });
    expect(reportIn(await ask(website, compare, { lazily: true }))).toMatchObject({ comparison: { isComplete: true } });
    await website.database.run(`ALTER TABLE ${TABLE} RENAME COLUMN reason TO cause`);
    for (const request of [get, act({ action: 'retry', idempotencyKey: key })]) {
      const { status, headers, body } = await ask(website, request);
      expect([status, headers['Content-Type']]).toEqual([500, JSON_TYPE]);
      expect(JSON.parse(body)).toEqual({ error: expect.stringMatching(/^The website has failed, .*\.$/) });
    }
  });

  testOnce(`${name}: the page is the file, with headers against caches, search engines and framing`, async () => {
    const website = await aWebsite();
    const { status, headers, body } = await ask(website, makeRequest('GET', { Accept: 'text/html,*/*;q=0.8' }));
    const file = readFileSync(new URL('../../outbox/page.html', import.meta.url), 'utf8');
    expect([status, body.trimEnd()]).toEqual([200, file.trimEnd()]);
    const own = { 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer', 'X-Robots-Tag': 'noindex' };
    expect(headers).toMatchObject({ ...own, 'Content-Type': 'text/html; charset=utf-8' });
    expect(headers['Content-Security-Policy']).toMatch(/^default-src 'none'; .*frame-ancestors 'none'$/);
    const report = await ask(website, makeRequest('GET', ACCEPTS_JSON));
    expect(report.headers).toEqual({ ...headers, 'Content-Type': JSON_TYPE });
    expect(await ask(website, makeRequest('HEAD', {}))).toMatchObject({ status: 200 });
  });
}
