import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { expect, test, vi } from 'vitest';
import { aServedService } from '../../../test/tools/served-service.ts';
import { freePort } from '../../../test/tools/servers.ts';
import formKeys from '../../conformance/form-keys.json' with { type: 'json' };
import { createLeadIntakeClient, type LeadCapture } from '../../index.ts';
import { createOutbox } from '../../outbox/index.ts';
import { PROBLEM_CODES, REASON_NOT_TAKEN, REASON_REPLAYED, REASON_UNREADABLE } from '../../outcomes.ts';
import { unknownKey } from '../support/key-secret.ts';
import { testArrival } from './arrival.ts';
import { KILLS, testKills } from './kills.ts';
import { onEachDatabase } from './on-each-database.ts';
import { testPage } from './page.ts';
import { testRandomly } from './random.ts';
import { aCapture, eventually, TABLE } from './website.ts';

const service = aServedService();

const HOUR_MS = 60 * 60 * 1000;
const NOTHING_DONE = { delivered: 0, alreadyOpen: 0, refused: 0, postponed: 0, waiting: 0, stoppedBecause: null };

/** A response that makes all leads of a website wait. */
interface Cause {
  readonly status: number;
  /** The beginning of the reason. */
  readonly reason: string;
  /** The header, longer than the client's deadline, so that the client does not repeat the request; seconds. */
  readonly retryAfter?: number;
  /** Whether the response is a problem of the service, and not the page of an intermediary. */
  readonly isOfService: boolean;
  readonly isForAPerson?: boolean;
  /** Whether the attempt counts, because it may have written the lead. */
  readonly isCounted?: boolean;
}

const CAUSES: readonly Cause[] = [
  ...[401, 402, 403, 404, 405].map((status) => ({
    status,
    reason: `${status} internal_error`,
    isOfService: true,
    isForAPerson: true,
  })),
  { status: 429, reason: '429 internal_error', retryAfter: 120, isOfService: true },
  { status: 503, reason: '503 internal_error', retryAfter: 120, isOfService: true, isCounted: true },
  { status: 429, reason: 'wait asked for', retryAfter: 3600, isOfService: false, isCounted: true },
  { status: 503, reason: 'wait asked for', retryAfter: 3600, isOfService: false, isCounted: true },
  { status: 404, reason: '404 no answer', isOfService: false, isForAPerson: true, isCounted: true },
];

/** A stored UUID. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

// The suite starts hundreds of processes on two cores.
vi.setConfig({ testTimeout: 600_000 + KILLS * 20_000 });

test('the outbox for TypeScript names an argument in the wrong place', async () => {
  const outbox = createOutbox({ table: 'leads' });
  const database = new DatabaseSync(':memory:');
  await outbox.setUp(database);
  const client = createLeadIntakeClient({ baseUrl: 'http://localhost', apiKey: unknownKey() });
  const swapped = [client, database] as never as [DatabaseSync, typeof client];
  const first = 'The first argument must be a connection of node:sqlite, better-sqlite3 or pg.';
  await expect(outbox.deliver(...swapped)).rejects.toThrow(new TypeError(first));
  await expect(outbox.reconcile(...swapped)).rejects.toThrow(new TypeError(first));
  expect(() => outbox.add(swapped[0], aCapture())).toThrow(new TypeError(first));
  await expect(outbox.deliver(database, database as never)).rejects.toThrow(/^The second argument must be a client/);
});

// A timer whose delay is too long, or not a number, fires immediately.
test.each([
  { limit: 1.5 },
  { limit: Number.POSITIVE_INFINITY },
  { keepSettledDays: -0.5 },
  { keepSettledDays: Number.NaN },
  { pollMs: Number.NaN },
  { pollMs: 2 ** 31 },
])('the outbox for TypeScript refuses %o', async (options) => {
  const [connection, outbox] = [new DatabaseSync(':memory:'), createOutbox({ table: 'leads' })];
  const client = createLeadIntakeClient({ baseUrl: 'http://localhost', apiKey: unknownKey() });
  const refusal = new RegExp(`^${Object.keys(options)} must be `);
  if (!('pollMs' in options)) await expect(outbox.deliver(connection, client, options)).rejects.toThrow(refusal);
  const worker = outbox.run(connection, client, { ...options, signal: AbortSignal.timeout(1000), onError: () => {} });
  await expect(worker).rejects.toThrow(refusal);
});

// @proves leads-17
onEachDatabase(service, (outbox) => {
  const { name, kind, language, others, aWebsite, prepareDrivers } = outbox;
  /** Defines a test that depends on no database: it runs on the first one of the language, and in a soak on all. */
  const testOnce = test.runIf(process.env.SOAK || kind === language.databases[0]);

  testKills(service, outbox, testOnce);
  testArrival(service, outbox, testOnce);
  testPage(service, outbox, testOnce);
  testRandomly(outbox, testOnce);

  test(`${name}: sends each committed lead once, and none that was rolled back or cut off`, async () => {
    const website = await aWebsite();
    const [first, second, undone, cut] = [aCapture({ note: 'Zoë 😀 «ä»' }), aCapture(), aCapture(), aCapture()];
    const key = randomUUID();
    const { contact, ...others } = first;
    const { before } = await website.run('add', {
      leads: [
        { capture: first, key },
        { capture: undone, end: 'rollback' },
        // A double click may send the fields in another order.
        { capture: { sourceId: null, contact, ...others }, key: key.toUpperCase() },
        { capture: second },
      ],
    });
    expect(before).toEqual([
      { added: key },
      { rolledBack: expect.stringMatching(UUID) },
      { added: key },
      { added: expect.stringMatching(UUID) },
    ]);
    const killed = website.begin('add', { leads: [{ capture: cut, end: 'hang' }] });
    await killed.process.printed(/hanging/);
    await killed.process.kill();

    expect(await website.rows()).toMatchObject([
      { state: 'waiting', attempts: 0, settled_at: null, lead_id: null, reason: null },
      { state: 'waiting' },
    ]);
    expect((await website.run('deliver')).result).toEqual({ ...NOTHING_DONE, delivered: 2 });
    expect(await website.leads()).toEqual([first.displayName, second.displayName].sort());
    const settled = {
      state: 'delivered',
      capture: null,
      attempts: 1,
      reason: null,
      lead_id: expect.stringMatching(UUID),
    };
    expect(await website.rows()).toMatchObject([settled, settled]);
    expect(await website.database.run('SELECT note FROM visits')).toHaveLength(3);
    expect((await website.run('deliver')).result).toEqual(NOTHING_DONE);

    // A third click comes after the data was erased.
    expect((await website.run('add', { leads: [{ capture: aCapture(), key }] })).before).toEqual([{ added: key }]);
    expect((await website.run('deliver')).result).toEqual(NOTHING_DONE);
  });

  testOnce(`${name}: the service accepts what a form's own limits allow`, async () => {
    const website = await aWebsite();
    // A browser counts a line break as one character, and posts two.
    const lines = Array.from({ length: 20 }, () => 'ä'.repeat(99)).concat('');
    const posted: Partial<LeadCapture>[] = [
      { note: '', sourceId: '' },
      { note: ' \t\r\n\u00a0\u2003\ufeff'.repeat(400), sourceId: '\u3000 ' },
      { note: lines.join('\r\n') },
      { note: '\rone\r\n\r\ntwo\n' },
      { displayName: '😀'.repeat(160), note: '😀'.repeat(2000) },
      { displayName: 'e\u0301'.repeat(80), note: 'e\u0301'.repeat(1000) },
    ];
    const written = [null, null, lines.join('\n'), '\none\n\ntwo\n', '😀'.repeat(2000), 'e\u0301'.repeat(1000)];
    const keys = await website.add(...posted.map((fields) => aCapture(fields)));
    expect((await website.run('deliver')).result).toEqual({ ...NOTHING_DONE, delivered: posted.length });
    const notes = await Promise.all(
      (await website.rows()).map(async ({ idempotency_key: key, lead_id: id }) => {
        const response = await service.get(website.studio.secret, `/${id}`);
        const { lead } = (await response.json()) as { lead: { note: string | null } };
        return [key, lead.note];
      }),
    );
    expect(Object.fromEntries(notes)).toEqual(Object.fromEntries(keys.map((key, index) => [key, written[index]])));
  });

  // @proves leads-24
  testOnce(`${name}: rejects invalid leads and keys, and leaves the website's transaction usable`, async () => {
    const website = await aWebsite();
    const [capture, key] = [aCapture(), randomUUID()];
    const anyway = { end: 'commit-anyway' };
    const { before } = await website.run('add', {
      leads: [
        { capture, key },
        { capture: aCapture(), key, ...anyway },
        { capture, key: key.replaceAll('-', ''), ...anyway },
        // UUID versions that the service does not accept.
        { capture, key: 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa', ...anyway },
        { capture, key: '0f9b1c6c-6c1e-9c55-9a5e-3d2b7f1c8a10', ...anyway },
        { capture: { ...capture, note: 'ä'.repeat(33_000) }, ...anyway },
        { capture: ['no', 'object'], ...anyway },
      ],
    });
    const refused = { refused: expect.stringMatching(/./) };
    expect(before).toEqual([{ added: key }, ...Array.from({ length: 6 }, () => refused)]);
    expect(await website.database.run('SELECT note FROM visits')).toHaveLength(7);
    expect(await website.rows()).toMatchObject([{ idempotency_key: key, state: 'waiting' }]);
    expect(JSON.stringify(before)).not.toContain(capture.contact.value);
  });

  test(`${name}: creates the table concurrently, and from its SQL`, async () => {
    const website = await aWebsite();
    const table = 'wp_7_Leads';
    await Promise.all([1, 2, 3].map(() => website.run('set-up', {}, { table })));
    const missing = /^(?:\w+: )?the table of the outbox does not exist: call set_?up/i;
    for (const [command, args] of [
      ['add', { leads: [{ capture: aCapture() }] }],
      ['needs-attention', {}],
      ['deliver', {}],
    ] as const)
      expect(await website.refusal(command, args, { table: 'not_there' })).toMatch(missing);
    await website.run('add', { leads: [{ capture: aCapture() }] }, { table });
    expect((await website.run('deliver', {}, { table })).result).toMatchObject({ delivered: 1 });
    expect(await website.rows()).toEqual([]);

    await website.database.run(`DROP TABLE ${TABLE}`);
    await website.database.run(String((await website.run('set-up-sql')).result.sql));
    await website.run('set-up');
    await website.add(aCapture());
    expect((await website.run('deliver')).result).toMatchObject({ delivered: 1 });
    expect(await website.refusal('deliver', {}, { table: `${TABLE}; DROP TABLE visits` })).toMatch(/./);
  });

  if (kind === 'SQLite') {
    testOnce(`${name}: a pass prints nothing by itself, because cron would mail it each minute`, async () => {
      const website = await aWebsite();
      await website.add(aCapture(), aCapture({ contact: { type: 'email', value: 'nowhere' } }));
      // The deadline leaves time for a retry.
      const outage = { baseUrl: 'http://127.0.0.1:1', deadlineMs: 2000 };
      for (const [settings, result] of [
        [outage, { postponed: 2 }],
        [{}, { delivered: 1, refused: 1 }],
      ] as const) {
        await website.letTimePass();
        const driver = website.begin('deliver', {}, settings);
        expect(await driver.result()).toMatchObject(result);
        expect(driver.process.output()).toMatch(/^\{.+\}\n$/);
      }
    });

    testOnce(`${name}: warns of the deprecated default table when it is set up, and never otherwise`, async () => {
      const website = await aWebsite();
      const commands: readonly [command: string, args: object, table?: string][] = [
        ['set-up', {}],
        ['set-up', {}, 'example_com_leads'],
        ['add', { leads: [{ capture: aCapture() }] }],
      ];
      const warned: unknown[] = [];
      for (const [command, args, table] of commands) {
        const driver = website.begin(command, args, table === undefined ? {} : { table });
        expect(await driver.result()).not.toHaveProperty('error');
        if (/deprecated/i.test(driver.process.output())) warned.push([command, table]);
      }
      expect(warned).toEqual([['set-up', undefined]]);
    });
  }

  // @proves leads-18
  testOnce(`${name}: finishes already open leads, and keeps refused ones for a person`, async () => {
    const website = await aWebsite();
    const open = aCapture();
    await service.post(website.studio.secret, open);
    const wrong = aCapture({ contact: { type: 'email', value: 'visitor-without-an-at-sign' } });
    const hopeless = { ...aCapture(), favouriteColour: 'green' };
    const [openKey, wrongKey = '', hopelessKey = ''] = await website.add({ ...open, note: 'Again!' }, wrong, hopeless);

    const { result, before } = await website.run('deliver', { onSettled: 'print' });
    expect(result).toEqual({ ...NOTHING_DONE, alreadyOpen: 1, refused: 2 });
    expect(before).toEqual([
      {
        settled: {
          key: openKey,
          outcome: 'already_open',
          leadId: expect.stringMatching(UUID),
          capture: expect.objectContaining({ note: 'Again!' }),
          reason: REASON_NOT_TAKEN,
        },
      },
    ]);
    const { result: needs } = await website.run('needs-attention');
    const entries = needs.entries as { key: string; reason: string }[];
    const refused = { state: 'refused', attempts: 1, createdAt: expect.any(Number), reason: expect.any(String) };
    expect(needs.count).toBe(2);
    expect(new Set(entries)).toEqual(
      new Set([
        { ...refused, key: wrongKey, capture: wrong },
        { ...refused, key: hopelessKey, capture: hopeless },
      ]),
    );
    const reason = entries.find(({ key }) => key === wrongKey)?.reason;
    expect(reason).toMatch(/^400 integration_invalid_request: .*contact\.value: .+ \(request .+\)$/);
    expect(reason).not.toContain('visitor');
    expect((await website.run('needs-attention', { limit: 1 })).result).toMatchObject({ count: 2, entries: [{}] });

    // Refused leads are not retried automatically.
    expect((await website.run('deliver')).result).toEqual(NOTHING_DONE);
    const mended = aCapture();
    await website.run('retry', { key: wrongKey, capture: mended });
    await website.run('discard', { key: hopelessKey });
    expect((await website.run('deliver')).result).toEqual({ ...NOTHING_DONE, delivered: 1 });
    expect(await website.leads()).toEqual([open.displayName, mended.displayName].sort());
    const rows = await website.rows();
    expect(rows.map(({ state }) => state).sort()).toEqual(['already_open', 'delivered', 'discarded']);
    for (const row of rows) {
      expect(row).toMatchObject({ capture: null, reason: null, settled_at: expect.any(Number) });
    }
    expect(await website.refusal('retry', { key: wrongKey })).toMatch(/ is delivered, .+ another key/);
    expect(await website.refusal('discard', { key: wrongKey })).toMatch(/ is delivered, .+ another key/);
    await website.refusal('retry', { key: hopelessKey });
    expect(await website.refusal('discard', { key: randomUUID() })).toMatch(/ compare the key and the table/);
    await website.run('discard', { key: hopelessKey });

    // Settled rows are deleted after a month.
    await website.database.run(`UPDATE ${TABLE} SET settled_at = settled_at - ${29 * 24 * HOUR_MS}`);
    await website.run('deliver');
    expect(await website.rows()).toHaveLength(3);
    await website.run('deliver', { keepSettledDays: 28 });
    expect(await website.rows()).toEqual([]);
  });

  testOnce(`${name}: keeps a visitor's message until somebody has it`, async ({ onTestFinished }) => {
    const website = await aWebsite();
    const [open, other, earlier] = [aCapture(), aCapture(), aCapture({ note: 'Hello' })];
    for (const capture of [open, other]) await service.post(website.studio.secret, capture);
    // This is the form of a cached page, whose first lead the website has deleted.
    const key = randomUUID();
    await service.post(website.studio.secret, earlier, { 'idempotency-key': key });
    const { before } = await website.run('add', {
      leads: [{ capture: { ...open, note: 'Again!' } }, { capture: other }, { capture: earlier, key }],
    });
    const [noted, , replayed] = before.map(({ added }) => String(added));
    expect((await website.run('deliver')).result).toEqual({ ...NOTHING_DONE, alreadyOpen: 2, delivered: 1 });

    const inNeed = async () => {
      const { result } = await website.run('needs-attention');
      return Object.fromEntries((result.entries as { key: string }[]).map(({ key: each, ...entry }) => [each, entry]));
    };
    const entry = { attempts: 1, createdAt: expect.any(Number) };
    const both = {
      [`${noted}`]: { ...entry, state: 'already_open', reason: REASON_NOT_TAKEN, capture: { ...open, note: 'Again!' } },
      [`${replayed}`]: { ...entry, state: 'delivered', reason: REASON_REPLAYED, capture: earlier },
    };
    expect(await inNeed()).toEqual(both);
    // Such leads are neither sent again nor deleted.
    expect((await website.run('deliver', { keepSettledDays: 0 })).result).toEqual(NOTHING_DONE);
    expect(await inNeed()).toEqual(both);
    const ofNobody = (await website.rows()).filter(({ capture }) => capture === null);
    for (const row of ofNobody) expect(row).toMatchObject({ reason: null, settled_at: expect.any(Number) });

    // It still counts as a lead of another visit when a person sends this one again.
    await website.run('retry', { key: replayed });
    expect((await website.run('deliver')).result).toEqual({ ...NOTHING_DONE, delivered: 1 });
    expect(await inNeed()).toEqual(both);

    // A listener gets the data, which is then erased.
    await website.run('retry', { key: noted });
    const { before: settled } = await website.run('deliver', { onSettled: 'print' });
    expect(settled).toEqual([
      { settled: expect.objectContaining({ key: noted, outcome: 'already_open', reason: REASON_NOT_TAKEN }) },
    ]);
    expect(Object.keys(await inNeed())).toEqual([replayed]);
    await website.run('discard', { key: replayed });
    expect(await inNeed()).toEqual({});
    for (const row of await website.rows()) expect(row).toMatchObject({ capture: null, reason: null });

    // A retry of the outbox's own attempt is a delivery: in the same pass, in a later one, or when a person asks for it.
    let answerFirst: ((response: ServerResponse) => void) | undefined;
    const settings = await aServer(onTestFinished, (_, response) => {
      if (answerFirst) {
        answerFirst(response);
        answerFirst = undefined;
        return;
      }
      response.setHeader('idempotent-replayed', 'true');
      answer(response, 201, { lead: { id: randomUUID() } });
    });
    const cut = (response: ServerResponse) => response.destroy();
    const endPass = (response: ServerResponse) => response.writeHead(502, { 'retry-after': '3600' }).end();
    for (const [first, isRetried] of [[cut], [endPass], [endPass, true]] as const) {
      answerFirst = first;
      const [key] = await website.add(aCapture());
      const { result } = await website.run('deliver', {}, settings);
      expect(result).toMatchObject(first === cut ? { delivered: 1 } : { postponed: 1 });
      if (isRetried) await website.run('retry', { key });
      await website.letTimePass();
      await website.run('deliver', {}, settings);
    }
    expect(await inNeed()).toEqual({});
  });

  // @proves leads-19 clients-11
  testOnce(`${name}: the key of a form is the same within an hour, and in each language`, async () => {
    const website = await aWebsite();
    const submissions = formKeys.map(({ formKey, at, capture }) => ({ formKey, at, capture }));
    const { result } = await website.run('keys-for', { submissions });
    expect(result).toEqual({ keys: formKeys.map(({ key }) => key) });
  });

  // @proves leads-18
  testOnce(`${name}: an invalid key or an unavailable service delays all leads and loses none`, async () => {
    const website = await aWebsite();
    const captures = Array.from({ length: 5 }, () => aCapture());
    await website.add(...captures);
    const states = async () => (await website.rows()).map(({ attempts }) => attempts).sort();

    // A listener that throws does not change the result.
    const away = { baseUrl: `http://127.0.0.1:${await freePort()}`, deadlineMs: 1, onAttempt: 'throw' } as const;
    const { result } = await website.run('deliver', {}, away);
    expect(result).toEqual({
      ...NOTHING_DONE,
      postponed: 3,
      waiting: 5,
      stoppedBecause: expect.stringMatching(/^no answer: (?:connection refused|timed out)\b/),
    });
    expect(await states()).toEqual([0, 0, 1, 1, 1]);
    const wait = (await website.rows())
      .filter(({ attempts }) => attempts === 1)
      .map((row) => row.next_attempt_at - Date.now());
    for (const each of wait) expect(each).toBeLessThanOrEqual(30_000);
    // Three leads are not due. The response to the first of the other two stops the pass.
    const { result: forbidden } = await website.run('deliver', {}, { apiKey: unknownKey() });
    const reason = expect.stringMatching(/^401 integration_key_invalid: /);
    expect(forbidden).toEqual({ ...NOTHING_DONE, postponed: 1, waiting: 5, stoppedBecause: reason });
    // An attempt that failed because of the key does not count.
    expect(await states()).toEqual([0, 0, 1, 1, 1]);
    expect((await website.run('needs-attention')).result).toMatchObject({
      count: 1,
      entries: [{ state: 'waiting', reason, attempts: 0 }],
    });

    const untried = 'attempts = 0 AND reason IS NULL';
    // A lead that has waited for a day needs attention too, and a clock that was ahead delays no lead.
    await website.database.run(`UPDATE ${TABLE} SET created_at = created_at - ${25 * HOUR_MS} WHERE ${untried}`);
    expect((await website.run('needs-attention')).result).toMatchObject({ count: 2, entries: [{ attempts: 0 }, {}] });
    await website.database.run(`UPDATE ${TABLE} SET created_at = created_at + ${50 * HOUR_MS} WHERE ${untried}`);
    expect((await website.run('needs-attention')).result).toMatchObject({ count: 2, entries: [{}, { attempts: 0 }] });
    const ahead = Date.now() + 26 * HOUR_MS;
    await website.database.run(`UPDATE ${TABLE} SET next_attempt_at = ${ahead}`);
    expect((await website.run('deliver', { limit: 3 })).result).toEqual({ ...NOTHING_DONE, delivered: 3, waiting: 2 });
    expect((await website.run('deliver')).result).toEqual({ ...NOTHING_DONE, delivered: 2 });
    expect(await website.leads()).toEqual(captures.map(({ displayName }) => displayName).sort());
  });

  testOnce(`${name}: waits at least for Retry-After, with a growing backoff`, async ({ onTestFinished }) => {
    const website = await aWebsite();
    const problem = { title: 'Too many', code: 'integration_rate_limited', requestId: 'r-1' };
    let [retryAfter, status] = ['7200', 429];
    const keys: string[] = [];
    const settings = await aServer(onTestFinished, (request, response) => {
      keys.push(String(request.headers['idempotency-key']));
      response.setHeader('retry-after', retryAfter);
      answer(response, status, problem);
    });

    const [first = ''] = await website.add(aCapture());
    await website.database.run(`UPDATE ${TABLE} SET created_at = created_at - 1000`);
    const [second = ''] = await website.add(aCapture());
    const reason = '429 integration_rate_limited: Too many (request r-1)';
    const started = Date.now();
    expect((await website.run('deliver', {}, settings)).result).toEqual({
      ...NOTHING_DONE,
      postponed: 1,
      waiting: 2,
      stoppedBecause: reason,
    });
    expect(keys).toEqual([first]);
    const readRow = async (key: string) =>
      (await website.rows()).find(({ idempotency_key }) => idempotency_key === key);
    const wait = ((await readRow(first))?.next_attempt_at ?? 0) - started;
    expect(wait).toBeGreaterThanOrEqual(2 * HOUR_MS);
    expect(await readRow(first)).toMatchObject({ state: 'waiting', reason });

    // The others wait too: they share the quota.
    expect((await website.run('deliver', {}, settings)).result).toEqual({
      ...NOTHING_DONE,
      waiting: 2,
      stoppedBecause: reason,
    });
    expect(keys).toEqual([first]);

    // A time written by a clock that was ahead delays no other lead.
    await website.database.run(
      `UPDATE ${TABLE} SET next_attempt_at = ${Date.now() + 26 * HOUR_MS} WHERE idempotency_key = '${first}'`,
    );
    expect((await website.run('deliver', {}, settings)).result).toMatchObject({ postponed: 1, waiting: 2 });
    expect(keys).toHaveLength(2);

    // Retry-After is capped at a day; after many attempts the backoff is an hour, up to jitter.
    retryAfter = `${365 * 24 * 3600}`;
    await website.run('discard', { key: second });
    await website.letTimePass();
    await website.run('deliver', {}, settings);
    expect((await readRow(first))?.next_attempt_at).toBeLessThanOrEqual(Date.now() + 24 * HOUR_MS);
    [retryAfter, status] = ['30', 500];
    await website.database.run(`UPDATE ${TABLE} SET attempts = 20, next_attempt_at = created_at`);
    const again = Date.now();
    await website.run('deliver', {}, settings);
    const backOff = ((await readRow(first))?.next_attempt_at ?? 0) - again;
    expect(backOff).toBeGreaterThanOrEqual(HOUR_MS / 2);
    expect((await readRow(first))?.next_attempt_at).toBeLessThanOrEqual(Date.now() + HOUR_MS);
  });

  testOnce(
    `${name}: a pause of all leads ends with its cause, and no request is sent before`,
    async ({ onTestFinished }) => {
      const website = await aWebsite();
      let [cause, requests, blocked]: [Cause | undefined, number, string] = [undefined, 0, ''];
      const settings = await aServer(onTestFinished, (request, response) => {
        requests += 1;
        if (request.headers['idempotency-key'] === blocked) return answer(response, 403, { code: 'internal_error' });
        if (cause === undefined) return answer(response, 201, { lead: { id: randomUUID() } });
        if (cause.retryAfter !== undefined) response.setHeader('retry-after', cause.retryAfter);
        if (cause.isOfService) answer(response, cause.status, { code: 'internal_error' });
        else response.writeHead(cause.status, { 'content-type': 'text/html' }).end('<h1>Sorry</h1>');
      });
      const pass = async (more: object = {}) => (await website.run('deliver', {}, { ...settings, ...more })).result;
      // Times in the table are moved back, which replaces moving the clock forward.
      const letPass = (ms: number) =>
        website.database.run(`UPDATE ${TABLE} SET next_attempt_at = next_attempt_at - ${ms} WHERE state = 'waiting'`);
      const POLL_MS = 60_000;

      await website.add(aCapture(), aCapture());
      const [{ capture } = { capture: null }] = await website.rows();
      const waitAgain = () =>
        website.database.run(
          `UPDATE ${TABLE} SET state = 'waiting', attempts = 8, next_attempt_at = 0, settled_at = NULL, capture = '${capture}'`,
        );
      for (cause of CAUSES) {
        const { reason, retryAfter = 0, isForAPerson = false, isCounted = false } = cause;
        await waitAgain();
        requests = 0;
        const stopped = { ...NOTHING_DONE, waiting: 2, stoppedBecause: expect.stringMatching(`^${reason}: `) };
        expect(await pass(), reason).toEqual({ ...stopped, postponed: 1 });
        expect(requests).toBe(1);
        expect((await website.rows()).map(({ attempts }) => attempts).sort()).toEqual([8, isCounted ? 9 : 8]);
        if (isForAPerson) expect((await website.run('needs-attention')).result.count, reason).toBe(1);
        if (retryAfter > 0) {
          await letPass(retryAfter * 1000 - POLL_MS);
          expect(await pass()).toEqual(stopped);
          expect(requests).toBe(1);
        }
        cause = undefined;
        await letPass(POLL_MS);
        expect(await pass(), reason).toEqual({ ...NOTHING_DONE, delivered: 2 });
      }

      // The end of an outage is noticed as soon, although nothing has asked to wait.
      await waitAgain();
      // A listener that throws does not change the result.
      const away = { baseUrl: `http://127.0.0.1:${await freePort()}`, deadlineMs: 1, onAttempt: 'throw' } as const;
      expect(await pass(away)).toEqual({ ...NOTHING_DONE, postponed: 2, waiting: 2 });
      await letPass(POLL_MS);
      expect(await pass()).toEqual({ ...NOTHING_DONE, delivered: 2 });

      // Release 1.1 counted attempts with a faulty key. A delivered lead makes such leads due.
      const [old = '', added = ''] = await website.add(aCapture(), aCapture());
      const inAnHour = Date.now() + HOUR_MS;
      await website.database.run(
        `UPDATE ${TABLE} SET attempts = 8, next_attempt_at = ${inAnHour}, reason = '401 any: ' WHERE idempotency_key = '${old}'`,
      );
      expect(await pass()).toMatchObject({ delivered: 1, waiting: 1 });
      expect(await pass()).toMatchObject({ delivered: 1, waiting: 0 });
      expect(added).toMatch(UUID);

      // A lead does not block the others if it alone gets such a response.
      [blocked = ''] = await website.add(aCapture());
      expect(await pass()).toMatchObject({ postponed: 1, waiting: 1 });
      await website.add(aCapture());
      await letPass(POLL_MS);
      expect(await pass()).toMatchObject({ delivered: 1, waiting: 1 });
      await website.run('discard', { key: blocked });
    },
  );

  // @proves others-14
  test(`${name}: delivers nothing within a transaction, because a rollback would undo the outcomes`, async () => {
    const website = await aWebsite();
    await website.add(aCapture());
    const statements = language.name === 'PHP' && kind === 'MariaDB' ? ['BEGIN', 'SET autocommit = 0'] : ['BEGIN'];
    // MySQL commits an open transaction before it creates a table.
    const commands = language.name === 'PHP' ? ['deliver', 'set-up'] : ['deliver'];
    for (const before of statements) {
      for (const command of commands) expect(await website.refusal(command, { before })).toMatch(/transaction/);
    }
    expect(await website.rows()).toMatchObject([{ state: 'waiting', attempts: 0 }]);
    expect(await website.leads()).toEqual([]);
  });

  test.runIf(kind === 'SQLite')(`${name}: a row that is not UTF-8 is one unreadable lead`, async () => {
    const website = await aWebsite();
    const [key] = await website.add(aCapture());
    const broken = Buffer.from('{"displayName":"J\xf6rg"}', 'latin1').toString('hex');
    await website.database.run(`UPDATE ${TABLE} SET capture = CAST(X'${broken}' AS TEXT)`);
    await website.add(aCapture());
    expect((await website.run('deliver')).result).toEqual({ ...NOTHING_DONE, delivered: 1, refused: 1 });
    expect((await website.run('needs-attention')).result).toMatchObject({
      count: 1,
      entries: [{ key, capture: null, reason: REASON_UNREADABLE }],
    });
    await website.run('add', { leads: [{ capture: aCapture(), key, end: 'commit-anyway' }] });
    await website.run('discard', { key });
  });

  testOnce(`${name}: refuses stored data that is not a lead, whatever another program has stored`, async () => {
    const website = await aWebsite();
    const texts = ['{}', '{"0":"a"}', '{"displayName":{},"contact":{}}', '{"contact":[]}', '[]', '7', '""', 'null', ''];
    for (const text of texts) {
      const [key] = await website.add(aCapture());
      await website.database.run(`UPDATE ${TABLE} SET capture = '${text}' WHERE idempotency_key = '${key}'`);
    }
    expect((await website.run('deliver')).result).toEqual({ ...NOTHING_DONE, refused: texts.length });
    expect((await website.run('needs-attention')).result).toMatchObject({ count: texts.length });
  });

  testOnce(`${name}: refuses options that would send nothing or delete leads just sent`, async () => {
    const website = await aWebsite();
    await website.add(aCapture());
    await website.run('deliver');
    await website.add(aCapture());
    const rows = await website.rows();
    for (const options of [{ limit: 0 }, { limit: -1 }, { keepSettledDays: -1 }]) {
      expect(await website.refusal('deliver', options)).toMatch(/limit|keep_?settled_?days/i);
    }
    for (const options of language.hasRun ? [{ keepSettledDays: -1 }, { pollMs: -1 }] : []) {
      expect(await website.refusal('run', options)).toMatch(/poll|keep_?settled_?days/i);
    }
    expect(await website.rows()).toEqual(rows);
    expect(rows).toHaveLength(2);
  });

  // @proves leads-19
  testOnce(`${name}: leads that never get a response do not block the others`, async ({ onTestFinished }) => {
    const website = await aWebsite();
    const keys = await website.add(aCapture(), aCapture(), aCapture());
    // A firewall blocks these leads with its own page, and passes the others.
    const firewall = await aServer(onTestFinished, (request, response) => {
      if (keys.includes(String(request.headers['idempotency-key']))) {
        response.writeHead(403, { 'content-type': 'text/html' }).end('<h1>Blocked</h1>');
      } else {
        answer(response, 201, { lead: { id: randomUUID() } });
      }
    });
    const first = await website.run('deliver', {}, firewall);
    expect(first.result).toMatchObject({ postponed: 3, stoppedBecause: expect.stringMatching(/^no answer: /) });
    await website.add(aCapture(), aCapture());
    await website.letTimePass();
    expect((await website.run('deliver', {}, firewall)).result).toMatchObject({
      delivered: 2,
      postponed: 3,
      waiting: 3,
    });
  });

  // @proves leads-19
  testOnce(`${name}: a pass ends only when several leads in a row get no response`, async ({ onTestFinished }) => {
    const website = await aWebsite();
    await website.add(...Array.from({ length: 9 }, () => aCapture()));
    let requests = 0;
    // Each time, two leads are blocked, and then one is created, already open or refused.
    const answers = [
      [201, { lead: { id: randomUUID() } }],
      [409, { code: 'integration_lead_already_open' }],
      [400, { code: 'integration_source_invalid' }],
    ] as const;
    const firewall = await aServer(onTestFinished, (_, response) => {
      requests += 1;
      const [status, body] = answers[requests / 3 - 1] ?? [];
      if (status !== undefined) answer(response, status, body);
      else response.writeHead(403, { 'content-type': 'text/html' }).end('<h1>Blocked</h1>');
    });
    expect((await website.run('deliver', {}, firewall)).result).toEqual({
      delivered: 1,
      alreadyOpen: 1,
      refused: 1,
      postponed: 6,
      waiting: 6,
      stoppedBecause: null,
    });
  });

  testOnce(`${name}: whatever the status, only a code of the service refuses a lead`, async ({ onTestFinished }) => {
    const website = await aWebsite();
    // This response interrupts a series of leads without one, which would end a pass.
    const created = { status: 201, body: { lead: { id: randomUUID() } }, is: 'delivered' };
    const script = [...foreignAnswers(), ...ownAnswers()].flatMap((answer, at) =>
      at % 2 ? [answer, created] : [answer],
    );
    const waiting = [...script];
    const answers = new Map<unknown, (typeof script)[number]>();
    const settings = await aServer(onTestFinished, ({ headers }, response) => {
      const key = headers['idempotency-key'];
      const scripted = answers.get(key) ?? waiting.shift() ?? created;
      answers.set(key, scripted);
      answer(response, scripted.status, scripted.body);
    });
    await website.add(...script.map(() => aCapture()));
    // A busy machine may be late for a deadline that leaves no time for a retry.
    const isLate = "state = 'waiting' AND (reason IS NULL OR reason LIKE 'no answer: timed out%')";
    for (let left = 1; left > 0; ) {
      await website.run('deliver', { limit: 10_000 }, { ...settings, deadlineMs: 1200 });
      await website.database.run(`UPDATE ${TABLE} SET next_attempt_at = 0 WHERE ${isLate}`);
      left = (await website.database.run(`SELECT 1 FROM ${TABLE} WHERE ${isLate}`)).length;
    }
    const rows = await website.rows();
    const outcomes = rows.map(({ idempotency_key: key, state, reason }) => {
      const { status, body, is } = answers.get(key) ?? created;
      const why = status === 407 ? /^no answer: / : new RegExp(`^(40[45] )?no answer: ${status}, not of the service$`);
      return { status, body, is, was: why.test(String(reason)) ? 'elsewhere' : state };
    });
    expect(outcomes.filter(({ is, was }) => is !== was)).toEqual([]);
    expect(answers.size).toBe(script.length);
  });

  // @proves leads-19
  testOnce(`${name}: a change made by a person while a lead is in flight is kept`, async ({ onTestFinished }) => {
    const website = await aWebsite();
    for (const [status, command] of [
      [201, 'retry'],
      [400, 'retry'],
      [500, 'retry'],
      [201, 'discard'],
    ] as const) {
      const held = Promise.withResolvers<ServerResponse>();
      const slow = await aServer(onTestFinished, (_, response) => held.resolve(response));
      const [wrong, mended] = [aCapture(), aCapture({ note: 'mended' })];
      const [key = ''] = await website.add(wrong);
      const pass = website.run('deliver', {}, slow);
      const response = await held.promise;
      await website.run(command, { key, capture: mended });
      response.setHeader('retry-after', '3600');
      answer(response, status, status === 201 ? { lead: { id: randomUUID() } } : { code: 'internal_error' });
      const { result } = await pass;
      const row = (await website.rows()).find(({ idempotency_key }) => idempotency_key === key);
      if (command === 'discard') {
        expect(result).toEqual(NOTHING_DONE);
        expect(row).toMatchObject({ state: 'discarded', capture: null });
        continue;
      }
      expect(result).toEqual({ ...NOTHING_DONE, waiting: 1 });
      // The lead in flight has had no answer.
      expect(row).toMatchObject({ state: 'waiting', reason: null, attempts: 1 });
      expect(row?.next_attempt_at).toBeLessThanOrEqual(Date.now());
      expect((await website.run('deliver')).result).toEqual({ ...NOTHING_DONE, delivered: 1 });
      expect(await website.leads()).toContain(mended.displayName);
      expect(await website.leads()).not.toContain(wrong.displayName);
    }
  });

  testOnce(`${name}: an unexpected error delays only its lead, and is reported`, async () => {
    const website = await aWebsite();
    const capture = aCapture();
    const [first = '', far = ''] = await website.add(capture, aCapture());
    // Another program may store a key that is not a valid header value, and times out of range.
    const strange = 'ключ 😀';
    await website.database.run(`UPDATE ${TABLE} SET idempotency_key = '${strange}' WHERE idempotency_key = '${first}'`);
    await website.database.run(
      `UPDATE ${TABLE} SET created_at = 9223372036854775807, next_attempt_at = 9223372036854775807 WHERE idempotency_key = '${far}'`,
    );
    await website.add(aCapture());
    await website.refusal('deliver');
    const rows = async () => website.database.run(`SELECT state, reason FROM ${TABLE} ORDER BY created_at`);
    const waits = {
      state: 'waiting',
      reason: expect.stringMatching(/^(error: )?\w*(Error|Exception)( at [\w.]+:\d+)?$/),
    };
    expect(await rows()).toMatchObject([waits, { state: 'delivered' }, { state: 'delivered' }]);

    await website.database.run(`UPDATE ${TABLE} SET state = 'refused', capture = '{}' WHERE created_at > 9e18`);
    const { result } = await website.run('needs-attention');
    expect(result).toMatchObject({ count: 1, entries: [{ createdAt: expect.any(Number) }] });
    await website.run('discard', { key: strange });
    await website.run('discard', { key: far });
  });

  testOnce(`${name}: erases data only after the listener has returned`, async () => {
    const website = await aWebsite();
    const captures = [aCapture(), aCapture()];
    await website.add(...captures);
    const failing = website.begin('deliver', { onSettled: 'throw' });
    expect(await failing.result()).toEqual({ error: expect.stringMatching(/./) });
    // The service has both leads, and the table still has their data.
    expect(failing.lines().slice(0, -1)).toHaveLength(2);
    const rows = await website.rows();
    for (const row of rows) {
      expect(row).toMatchObject({
        state: 'waiting',
        capture: expect.any(String),
        reason: expect.stringMatching(/^listener: \w+/),
      });
    }
    expect(JSON.stringify(rows)).not.toContain('listener failed');

    await website.letTimePass();
    const { result, before } = await website.run('deliver', { onSettled: 'print' });
    expect(result).toEqual({ ...NOTHING_DONE, delivered: 2 });
    const printed = before.map(({ settled }) => (settled as { capture: unknown }).capture);
    expect(new Set(printed)).toEqual(new Set(captures));
    expect(await website.leads()).toHaveLength(2);
  });

  test(`${name}: two workers share the work`, async () => {
    const website = await aWebsite();
    const captures = Array.from({ length: 12 }, () => aCapture());
    await website.add(...captures);
    // Both workers read the due leads before either leases one.
    const release = await website.database.lock(TABLE);
    const passes = [website.run('deliver'), website.run('deliver')];
    await website.database.writersWait(2);
    await release();
    const results = await Promise.all(passes);
    const [one, other] = results.map(({ result }) => Number(result.delivered));
    expect((one ?? 0) + (other ?? 0)).toBe(12);
    for (const row of await website.rows()) expect(row).toMatchObject({ state: 'delivered', attempts: 1 });
    expect(await website.leads()).toEqual(captures.map(({ displayName }) => displayName).sort());
  });

  testOnce.each(others)(
    `${name}: the outbox for $name delivers, lists and corrects what it has stored`,
    async (other) => {
      const website = await aWebsite();
      const elsewhere = website.by(await prepareDrivers(other));
      await elsewhere.run('set-up');
      const [capture, wrong, mended] = [aCapture({ note: 'Zoë 😀 «ä»' }), { displayName: 'Ünal' }, aCapture()];
      const key = randomUUID();
      const { before } = await website.run('add', { leads: [{ capture, key }, { capture: wrong }] });
      // The second click is handled by a page in the other language.
      expect((await elsewhere.run('add', { leads: [{ capture, key }] })).before).toEqual([{ added: key }]);

      const pass = await elsewhere.run('deliver', { onSettled: 'print' });
      expect(pass.result).toEqual({ ...NOTHING_DONE, delivered: 1, refused: 1 });
      expect(pass.before).toEqual([
        { settled: expect.objectContaining({ key, capture: expect.objectContaining(capture) }) },
      ]);
      const needs = { count: 1, entries: [{ key: before[1]?.added, state: 'refused', capture: wrong }] };
      expect((await website.run('needs-attention')).result).toMatchObject(needs);
      await website.run('retry', { key: before[1]?.added, capture: mended });
      await elsewhere.run('deliver');
      expect(await website.leads()).toEqual([capture.displayName, mended.displayName].sort());
    },
  );

  test.runIf(language.hasRun)(
    `${name}: a worker survives an unavailable database, and stops on SIGTERM`,
    async ({ onTestFinished }) => {
      const website = await aWebsite();
      await website.database.run(`ALTER TABLE ${TABLE} RENAME TO ${TABLE}_away`);
      const worker = website.begin('run', { pollMs: 20 });
      onTestFinished(() => worker.process.kill());
      await worker.process.printed(new RegExp(TABLE));
      await website.database.run(`ALTER TABLE ${TABLE}_away RENAME TO ${TABLE}`);
      const allHaveArrived = async () => (await website.rows()).every(({ state }) => state === 'delivered');
      await website.add(aCapture());
      await eventually(allHaveArrived);
      // Connections end only between two leads, because a leased lead would be sent again only after minutes.
      if (kind !== 'SQLite') await website.database.endConnections();
      await website.add(aCapture());
      await eventually(allHaveArrived);
      worker.process.child.kill('SIGTERM');
      expect(await worker.result()).toEqual({});
    },
  );
});

/** The tested statuses; in a soak, all. */
const STATUSES = [
  300,
  304,
  307,
  ...[400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 413, 422, 429, 431, 499, 500, 502, 503, 599],
];
const statusesFrom = (first: number) =>
  (process.env.SOAK ? Array.from({ length: 300 }, (_, index) => 300 + index) : STATUSES).filter(
    (each) => each >= first,
  );

/** Returns problems that are not from the service, and responses without a code. */
const foreignAnswers = () =>
  statusesFrom(300).flatMap((status) =>
    [{ code: 'blocked_by_policy' }, {}].map((body) => ({ status, body, is: 'elsewhere' })),
  );

/** Returns every code of the service, with statuses that do not end a pass. fetch treats a 407 as no response. */
function ownAnswers() {
  const statuses = statusesFrom(400).filter((each) => ![401, 402, 403, 404, 405, 407, 429, 503].includes(each));
  return PROBLEM_CODES.flatMap((code) =>
    statuses.map((status) => {
      const state = status === 408 || status >= 500 ? 'waiting' : 'refused';
      return { status, body: { code }, is: code === 'integration_lead_already_open' ? 'already_open' : state };
    }),
  );
}

/** Starts a server in place of the service; returns a setting with its address. */
async function aServer(
  onTestFinished: (stop: () => void) => void,
  listener: RequestListener,
): Promise<{ readonly baseUrl: string }> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** Responds in the service's form. */
function answer(response: ServerResponse, status: number, body: object): void {
  const mediaType = status < 400 ? 'application/json' : 'application/problem+json';
  response.writeHead(status, { 'content-type': mediaType }).end(JSON.stringify(body));
}
