import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import type { ServedService, StudioWithKey } from '../../../test/tools/served-service.ts';
import { testSize } from '../../../test/tools/test-size.ts';
import { REASON_NOT_READ, REASON_NOT_THERE, REASON_OTHER_DATA } from '../../outcomes.ts';
import type { OutboxUnderTest } from './on-each-database.ts';
import { aCapture, eventually, TABLE, type Website } from './website.ts';

/** The number of leads of a website that has many. */
const MANY = testSize('ARRIVAL_LEADS', { usual: 2000, soak: 100_000 });

/** The memory that suffices for any number of leads; KiB. */
const MAX_MEMORY_KIB = 192 * 1024;

const DAY_MS = 24 * 60 * 60 * 1000;

/** The result of a comparison when all is well. */
const ALL_WELL = {
  isComplete: true,
  stoppedBecause: null,
  alreadyOpen: 0,
  openLeadThere: 0,
  otherData: 0,
  notRead: 0,
  withoutId: 0,
  left: 0,
  waiting: 0,
  refused: 0,
  differences: [],
};

const NONE_THERE = 'None is there: is the API key of another studio, or the address of another deployment?';

/** Defines the tests of reports, and of comparisons with the service. `testOnce` defines those that depend on no database. */
export function testArrival(
  service: ServedService,
  { name, kind, language, others, aWebsite, prepareDrivers }: OutboxUnderTest,
  testOnce: ReturnType<typeof test.runIf>,
): void {
  const memory = (website: Website) => website.database.run(`SELECT * FROM ${TABLE}_memo`);
  const compare = async (website: Website, args: object = {}, settings: object = {}) =>
    (await website.run('reconcile', args, settings)).result;

  // @proves arrival-1
  test(`${name}: sent leads are compared with the service, and each difference is reported`, async () => {
    const website = await aWebsite();
    const { secret, studioId } = website.studio;
    expect(await compare(website)).toMatchObject({
      ...ALL_WELL,
      sent: 0,
      there: 0,
      since: null,
      summary: '0 sent, 0 there.',
    });

    const open = aCapture();
    await service.post(secret, open);
    const captures = Array.from({ length: 6 }, () => aCapture());
    const keys = await website.add(...captures, { ...open, note: 'Again!' }, aCapture({ note: ' \u0000' }));
    await website.run('deliver');
    await website.add(aCapture());
    // Another website of the studio has leads, too.
    for (let count = 0; count < 3; count += 1) await service.post(secret, aCapture());

    const well = await compare(website);
    const sent = { sent: 6, there: 6, alreadyOpen: 1, openLeadThere: 1, waiting: 1, refused: 1 };
    expect(well).toMatchObject({ ...ALL_WELL, ...sent, requests: 1 });
    expect(String(well.summary).replaceAll(/\d{4}-\d\d-\d\d/g, 'DAY')).toBe(
      '6 sent since DAY, 6 there. 1 with an open lead of another creation, 1 of these leads there. 1 waiting. 1 refused.',
    );

    // The studio erases leads and changes one.
    const rows = await website.rows();
    const findId = (key: string | undefined) => rows.find((row) => row.idempotency_key === key)?.lead_id ?? '';
    await service.eraseLead(studioId, findId(keys[2]));
    await service.eraseLead(studioId, findId(keys[6]));
    const kept = JSON.stringify({ ...captures[4], displayName: 'Changed' });
    await website.database.run(
      `UPDATE ${TABLE} SET capture = '${kept}', reason = 'replayed: …', settled_at = NULL, created_at = 1 WHERE idempotency_key = '${keys[4]}'`,
    );
    await website.database.run(`UPDATE ${TABLE} SET lead_id = NULL WHERE idempotency_key = '${keys[5]}'`);
    const before = await website.rows();
    const leads = await website.leads();
    const { result, before: printed } = await website.run('reconcile', { onDifference: 'print' });
    const difference = (index: number, state: string, type: string, reason: string) => ({
      key: keys[index],
      leadId: findId(keys[index]),
      state,
      kind: type,
      reason,
      createdAt: expect.any(Number),
    });
    const differences = [
      difference(4, 'delivered', 'other_data', REASON_OTHER_DATA),
      difference(2, 'delivered', 'not_there', REASON_NOT_THERE),
      difference(6, 'already_open', 'not_there', REASON_NOT_THERE),
    ];
    expect(new Set(result.differences as object[])).toEqual(new Set(differences));
    expect(printed.map((line) => line.difference)).toEqual(result.differences);
    expect(result).toMatchObject({ sent: 5, there: 4, alreadyOpen: 1, openLeadThere: 0, otherData: 1, withoutId: 1 });
    expect(result).toMatchObject({ isComplete: true, stoppedBecause: null, left: 0, requests: 3 });
    // The changed row is older than `since`: other rows of its time are deleted.
    expect(result.since).toBe(well.since);
    expect(result.summary).toContain(', 4 there. 1 with an open lead of another creation, 0 of these leads there. ');
    expect(result.summary).toContain('1 there with other data. 1 not compared: the outbox has no id of their leads.');
    const { peakKiB: _, ...report } = result;
    expect((await website.run('last-reconciliation')).result).toEqual(report);

    // A comparison only reads, and stores no personal data.
    expect(await website.rows()).toEqual(before);
    expect(await website.leads()).toEqual(leads);
    const remembered = JSON.stringify(await memory(website));
    for (const { displayName, contact } of captures) {
      expect(remembered).not.toContain(displayName);
      expect(remembered).not.toContain(contact.value);
    }

    // With the key of another studio, with and without leads, all leads are missing.
    for (const hasLeads of [false, true]) {
      const other = await service.aStudioWithKey();
      if (hasLeads) await service.post(other.secret, aCapture());
      const none = await compare(website, {}, { apiKey: other.secret });
      expect(none).toMatchObject({ isComplete: true, sent: 5, there: 0, openLeadThere: 0 });
      expect(none.summary).toContain(NONE_THERE);
    }
    const blind = await service.aStudioWithKey({ scopes: ['leads.create'] });
    expect(await website.refusal('reconcile', {}, { apiKey: blind.secret })).toContain('leads.read');
    if (!language.name.includes('SQLAlchemy')) {
      expect(await website.refusal('reconcile', { before: 'BEGIN' })).toMatch(/transaction/);
    }

    // An outbox of an earlier release has no memo.
    await website.database.run(`DROP TABLE ${TABLE}_memo`);
    expect((await website.run('last-reconciliation')).result).toEqual({});
    await website.database.run(`DROP TABLE ${TABLE}_memo`);
    expect(await compare(website)).toMatchObject({ isComplete: true, sent: 5, there: 4 });
  });

  // @proves arrival-4 arrival-5 bounds-137 bounds-138
  testOnce(`${name}: compares thousands of leads by pages, whatever interrupts it`, async ({ onTestFinished }) => {
    const { studio, ids } = await manyLeads(service);
    const website = await aWebsite();
    await arrange(website, ids);
    const gone = [ids[3], ids[Math.floor(ids.length / 2)], ids.at(-1)].map(String);
    for (const id of gone) {
      await website.database.run(`UPDATE ${TABLE} SET lead_id = '${unknownLike(id)}' WHERE lead_id = '${id}'`);
    }
    const pages = Math.ceil(ids.length / 100);
    const found = { isComplete: true, sent: ids.length, there: ids.length - gone.length };
    const front = await aFront(service, onTestFinished);
    const settings = { baseUrl: front.url, apiKey: studio.secret };

    // One call compares them all, in a process whose memory is measured.
    const { peakKiB, ...whole } = await website.begin('reconcile', {}, settings).result();
    expect(whole).toMatchObject({ ...found, requests: pages + gone.length });
    expect(peakKiB).toBeLessThan(MAX_MEMORY_KIB);
    expect(front.paths.length).toBe(pages + gone.length);
    expect((whole.differences as { leadId: string }[]).map(({ leadId }) => leadId).sort()).toEqual(
      gone.map(unknownLike).sort(),
    );

    // After a kill, a cut connection, a refusal or the end of its time, the next call continues, and the numbers are those of one comparison.
    front.paths.length = 0;
    front.failAfter(6, 'silence');
    const killed = website.begin('reconcile', {}, settings);
    await eventually(() => front.paths.length > 6);
    await killed.process.kill();
    expect((await website.run('last-reconciliation')).result).toMatchObject({ isComplete: false });
    front.failAfter(3, 'cut');
    const down = await compare(website, {}, { ...settings, deadlineMs: 1000 });
    expect(down).toMatchObject({ isComplete: false, stoppedBecause: expect.stringMatching(/^no answer: /) });
    expect(down.summary).toMatch(/^Not finished, [\d,]+ left \(no answer: .+\)\. So far: [\d,]+ sent/);
    front.failAfter(3, 429);
    const limited = await compare(website, { maxMs: 600_000 }, settings);
    expect(limited.stoppedBecause).toMatch(/^429 integration_rate_limited: /);
    front.failAfter(3, 503);
    const away = await compare(website, { maxMs: 600_000 }, settings);
    expect(away.stoppedBecause).toMatch(/^503 integration_unavailable: /);
    // The outbox of another language, if there is one, continues it.
    const [other] = others;
    const elsewhere = other === undefined ? website : website.by(await prepareDrivers(other));
    const half = await compare(elsewhere, { maxMs: 0 }, settings);
    expect(half).toMatchObject({ isComplete: false, stoppedBecause: 'the time is over' });
    front.failAfter(2, 'soon');
    const end = await compare(elsewhere, {}, settings);
    expect(end).toMatchObject(found);
    expect(end.differences).toEqual(whole.differences);
    expect(end.startedAt).toBe(down.startedAt);
    // Nothing is compared twice. After each stop, the next call checks that the key is of the same studio.
    expect(new Set(front.paths).size).toBe(pages + gone.length + 1);
    expect(front.paths.length).toBeLessThan(pages + gone.length + 30);

    // A later comparison takes over from one that hangs.
    front.paths.length = 0;
    front.failAfter(4, 'silence');
    const hanging = website.begin('reconcile', { restart: true }, settings);
    await eventually(() => front.paths.length > 4);
    expect(await compare(website, {}, settings)).toMatchObject(found);
    front.release();
    expect(String((await hanging.result()).error)).toMatch(/another/i);

    // With a key of another studio, the comparison begins anew.
    front.failAfter(4, 'cut');
    await compare(website, { restart: true }, { ...settings, deadlineMs: 1000 });
    const elsewhereStudio = await service.aStudioWithKey();
    expect(await compare(website, {}, { apiKey: elsewhereStudio.secret })).toMatchObject({
      sent: ids.length,
      there: 0,
    });
    expect((await website.run('last-reconciliation')).result.differences).toHaveLength(100);
  });

  // @proves arrival-4
  testOnce(`${name}: reads a few leads one by one if very many others are between them`, async ({ onTestFinished }) => {
    const { studio, ids } = await manyLeads(service);
    const website = await aWebsite();
    // The rows are the newest lead and the three oldest ones.
    await arrange(website, [ids[0], ids.at(-1), ids.at(-2), ids.at(-3)].map(String));
    const front = await aFront(service, onTestFinished);
    const result = await compare(website, {}, { baseUrl: front.url, apiKey: studio.secret });
    expect(result).toMatchObject({ ...ALL_WELL, sent: 4, there: 4, requests: 7 });
    expect(front.paths.filter((path) => path.includes('?'))).toHaveLength(4);

    // A lead that the service cannot read hides no other.
    front.unreadable = String(ids.at(-2));
    const part = await compare(website, {}, { baseUrl: front.url, apiKey: studio.secret });
    expect(part).toMatchObject({ isComplete: true, sent: 4, there: 3, notRead: 1, requests: 7 });
    expect(part.differences).toMatchObject([{ kind: 'not_read', leadId: ids.at(-2), reason: REASON_NOT_READ }]);
    expect(part.summary).toContain('4 sent since 2025-11-24, 3 there. 1 that the service has failed to read.');
  });

  // @proves arrival-5
  testOnce(
    `${name}: leaves half of the quota to the website, and stops before a wait of days`,
    async ({ onTestFinished }) => {
      const { studio, ids } = await manyLeads(service);
      const website = await aWebsite();
      await arrange(website, ids);
      const front = await aFront(service, onTestFinished);
      front.state({ limit: 20, endsInSeconds: 3600 });
      const settings = { baseUrl: front.url, apiKey: studio.secret };
      const first = await compare(website, { maxMs: 60_000 }, settings);
      expect(first).toMatchObject({
        isComplete: false,
        requests: 10,
        stoppedBecause: 'half of the quota is left to the website',
      });
      front.state({ limit: 20, endsInSeconds: 1 });
      expect(await compare(website, {}, settings)).toMatchObject({
        isComplete: true,
        sent: ids.length,
        there: ids.length,
      });
      expect(Math.min(...front.remaining)).toBe(10);

      front.failAfter(0, 'in months');
      expect(await compare(website, { restart: true }, settings)).toMatchObject({
        isComplete: false,
        requests: 1,
        stoppedBecause: expect.stringMatching(/^503 integration_unavailable/),
      });
    },
  );

  // @proves arrival-6
  testOnce(`${name}: sends a lead again with its key, but only if the service no longer has it`, async () => {
    const website = await aWebsite();
    const { studioId } = website.studio;
    const [erased, lost, there] = [aCapture(), aCapture(), aCapture()];
    const keys = await website.add(erased, lost, there);
    await website.run('deliver');
    const rows = await website.rows();
    const findId = (key: string | undefined) => rows.find((row) => row.idempotency_key === key)?.lead_id ?? '';
    await service.eraseLead(studioId, findId(keys[0]));
    const mayCreate = true;
    expect(await website.refusal('send-again', { key: keys[2], capture: there, mayCreate })).toMatch(
      /is at the service/,
    );
    expect(await website.refusal('send-again', { key: keys[0], mayCreate })).toMatch(/erased/);
    expect(await website.refusal('send-again', { key: keys[0], capture: erased })).toMatch(/another lead/);
    await website.refusal('send-again', { key: randomUUID(), capture: erased, mayCreate });
    const blind = await service.aStudioWithKey({ scopes: ['leads.create'] });
    await website.refusal('send-again', { key: keys[0], capture: erased, mayCreate }, { apiKey: blind.secret });
    expect(await website.rows()).toEqual(rows);

    // The service remembers the key of an erased lead: the person stays forgotten.
    await website.run('send-again', { key: keys[0]?.toUpperCase(), capture: erased, mayCreate });
    expect((await website.run('deliver')).result).toMatchObject({ delivered: 0, refused: 1 });
    expect((await website.run('needs-attention')).result).toMatchObject({
      entries: [{ key: keys[0], reason: expect.stringContaining('was erased') }],
    });
    // A restored service has lost the key with the lead. Here, a studio without either stands for it.
    const restored = await service.aStudioWithKey();
    await website.run('send-again', { key: keys[1], capture: lost, mayCreate }, { apiKey: restored.secret });
    expect((await website.run('deliver', {}, { apiKey: restored.secret })).result).toMatchObject({ delivered: 1 });
    await website.run('send-again', { key: keys[2], capture: there, mayCreate }, { apiKey: restored.secret });
    // The service had the lead after all: there is one lead, and nothing for a person to read.
    expect((await website.run('deliver')).result).toMatchObject({ delivered: 1, stoppedBecause: null });
    expect(await website.leads()).toEqual([lost.displayName, there.displayName].sort());
    expect(await service.countLeads(restored.studioId)).toBe(1);
    expect((await website.run('needs-attention')).result).toMatchObject({ count: 1 });
  });

  // @proves arrival-7 bounds-139
  test(`${name}: reports leads that have waited for more than a day once a day`, async () => {
    const website = await aWebsite();
    const keys = await website.add(aCapture(), aCapture(), aCapture(), aCapture());
    const unreachable = { baseUrl: 'http://127.0.0.1:1', deadlineMs: 1 };
    const pass = async (how = 'print') => {
      const { before } = await website.run('deliver', { onWaiting: how }, unreachable);
      return before.map(({ waits }) => waits);
    };
    const moveTold = (ms: number) =>
      website.database.run(`UPDATE ${TABLE}_memo SET token = '${Date.now() - ms}' WHERE name = 'waiting'`);
    expect(await pass()).toEqual([]);

    const set = (key: string | undefined, changes: string) =>
      website.database.run(`UPDATE ${TABLE} SET ${changes} WHERE idempotency_key = '${key}'`);
    const [oldest, ahead] = [Date.now() - 3 * DAY_MS, Date.now() + 2 * DAY_MS];
    const far = `next_attempt_at = ${Date.now() + 3_600_000}`;
    await set(keys[0], `created_at = ${oldest}, ${far}, reason = '401 integration_key_invalid: x (request a)'`);
    await set(
      keys[1],
      `created_at = ${oldest + 1}, state = 'refused', reason = '401 integration_key_invalid: y (request b)'`,
    );
    await set(keys[2], `created_at = ${ahead}, ${far}, reason = NULL`);
    await set(keys[3], far);
    // The outbox looks for such leads once an hour, not in each pass.
    expect(await pass()).toEqual([]);
    await moveTold(DAY_MS);
    const told = {
      count: 3,
      oldest,
      reasons: [
        { reason: '401 integration_key_invalid', count: 2 },
        { reason: 'not tried yet', count: 1 },
      ],
    };
    // After a failed report, the outbox reports again in an hour.
    const failing = website.begin('deliver', { onWaiting: 'throw' }, unreachable);
    expect(await failing.result()).toEqual({ error: expect.stringMatching(/on_?waiting has (?:failed|raised)/i) });
    expect(failing.lines()[0]).toEqual({ waits: told });
    expect(await pass()).toEqual([]);
    await moveTold(DAY_MS);
    expect(await pass()).toEqual([told]);
    await moveTold(DAY_MS - 60_000);
    expect(await pass()).toEqual([]);
    // The last report was stored by a clock that was days ahead.
    await moveTold(-3 * DAY_MS);
    if (kind !== 'SQLite') await website.database.run(`DROP TABLE ${TABLE}_memo`);
    expect(await pass()).toEqual([told]);
  });
}

let many: Promise<{ readonly studio: StudioWithKey; readonly ids: readonly string[] }> | undefined;

/** Returns a studio with many leads, the same for all tests, and their ids, newest first. */
function manyLeads(service: ServedService) {
  many ??= (async () => {
    const studio = await service.aStudioWithKey();
    const ids: string[] = [];
    while (ids.length < MANY) {
      const emails = Array.from({ length: 100 }, () => `${randomUUID()}@example.org`);
      ids.push(...(await service.importLeads(studio.studioId, emails)));
    }
    return { studio, ids: ids.sort().reverse() };
  })();
  return many;
}

/** Fills the table with delivered leads. */
async function arrange({ database }: Website, ids: readonly string[]): Promise<void> {
  for (let start = 0; start < ids.length; start += 500) {
    const rows = ids
      .slice(start, start + 500)
      .map((id) => `('${randomUUID()}', 'delivered', 1, 1764000000000, 0, 1764000000000, '${id}')`);
    await database.run(
      `INSERT INTO ${TABLE} (idempotency_key, state, attempts, created_at, next_attempt_at, settled_at, lead_id) VALUES ${rows.join(', ')}`,
    );
  }
}

/** Returns an id that no lead has, at the same position in the list. */
const unknownLike = (id: string) => `${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}`;

/** The fault that replaces the response to a request. */
type Fault = 'silence' | 'cut' | 'soon' | 'in months' | 429 | 500 | 503;

/** The faults that are problems of the service, with their Retry-After; seconds. */
const PROBLEMS = {
  soon: [429, 'integration_rate_limited', 1],
  // This is beyond the maximum of Node's timers, which then fire immediately.
  'in months': [503, 'integration_unavailable', 9_999_999],
  429: [429, 'integration_rate_limited', 3600],
  500: [500, 'internal_error', 3600],
  503: [503, 'integration_unavailable', 3600],
} as const;

/** A quota as responses report it. */
interface Quota {
  readonly limit: number;
  readonly endsInSeconds: number;
}

interface Front {
  readonly url: string;
  /** The paths of the requests so far, with their query. */
  readonly paths: string[];
  /** The remaining quota, by the headers of each response. */
  readonly remaining: number[];
  /** Reports this quota from now on. A window begins with the first request after the end of the previous one. */
  state(quota: Quota): void;
  /** The id of a lead that cannot be read. */
  unreadable?: string;
  /** Applies this fault after that many other requests. */
  failAfter(others: number, fault: Fault): void;
  /** Responds to the requests that had no response. */
  release(): void;
}

/** Starts a server in front of the service, like a proxy or a load balancer. */
async function aFront(service: ServedService, onTestFinished: (stop: () => void) => void): Promise<Front> {
  let next: { left: number; fault: Fault } | undefined;
  let quota: Quota | undefined;
  let window: { end: number; left: number } | undefined;
  const silent: (() => void)[] = [];
  const front: Front = {
    url: '',
    paths: [],
    remaining: [],
    failAfter: (left, fault) => {
      next = { left, fault };
    },
    state: (stated) => {
      quota = stated;
      window = undefined;
    },
    release: () => {
      for (const each of silent.splice(0)) each();
    },
  };

  async function forward({ url = '', headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = await fetch(service.url + url, { headers: { authorization: String(headers.authorization) } });
    const passed = new Headers({ 'content-type': String(answer.headers.get('content-type')) });
    if (quota !== undefined) {
      const { limit, endsInSeconds } = quota;
      if (window === undefined || window.end <= Date.now()) {
        window = { end: Date.now() + endsInSeconds * 1000, left: limit };
      }
      window.left -= 1;
      front.remaining.push(window.left);
      passed.set('ratelimit-policy', `"default";q=${limit};w=${endsInSeconds}`);
      passed.set('ratelimit', `"default";r=${window.left};t=${Math.ceil((window.end - Date.now()) / 1000)}`);
    }
    response.writeHead(answer.status, [...passed].flat()).end(await answer.text());
  }

  async function fail(fault: Fault, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (fault === 'cut') return void request.socket.destroy();
    if (fault === 'silence') return void silent.push(() => void forward(request, response));
    const [status, code, seconds] = PROBLEMS[fault];
    response.writeHead(status, { 'content-type': 'application/problem+json', 'retry-after': `${seconds}` });
    response.end(JSON.stringify({ type: 'about:blank', title: 'Later', status, code, requestId: 'r-1' }));
  }

  const server = createServer((request, response) => {
    front.paths.push(String(request.url));
    if (front.unreadable !== undefined && String(request.url).includes(front.unreadable)) {
      void fail(500, request, response);
      return;
    }
    const fault = next !== undefined && next.left-- <= 0 ? next.fault : undefined;
    // A library may repeat a request by itself after a cut connection.
    if (fault !== undefined && fault !== 'cut') next = undefined;
    void (fault === undefined ? forward(request, response) : fail(fault, request, response));
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return Object.assign(front, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}
