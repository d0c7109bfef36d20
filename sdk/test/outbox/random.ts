import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { v5 } from 'uuid';
import { expect, type test } from 'vitest';
import { createChance } from '../../../test/tools/chance.ts';
import { testSize } from '../../../test/tools/test-size.ts';
import type { OutboxUnderTest } from './on-each-database.ts';
import { TABLE, type Website } from './website.ts';

/** The number of operations and their seed. Only a soak changes them. */
const OPERATIONS = testSize('OUTBOX_OPERATIONS', { usual: 60, soak: 1000 });
const SEED = Number(process.env.OUTBOX_SEED ?? (process.env.SOAK ? randomInt(2 ** 31) : 1));

const KEYS = Array.from({ length: 12 }, (_, index) => v5(`lead ${index}`, v5.URL));
const DAY_MS = 24 * 60 * 60 * 1000;

/** The answers to creations: status, code or page, and headers. No client retries after them within its deadline. */
const ANSWERS = [
  ...[1, 2, 3, 4].map(() => [201, '', {}] as const),
  [201, '', { 'idempotent-replayed': 'true' }],
  [409, 'integration_lead_already_open', { link: `</v1/leads/${KEYS[0]}>; rel="existing-lead"` }],
  [400, 'integration_invalid_request', {}],
  ...[401, 402, 403, 404].map((status) => [status, 'any', {}] as const),
  [429, 'any', { 'retry-after': '120' }],
  [503, 'any', { 'retry-after': '120' }],
  [503, '<h1>Sorry</h1>', { 'retry-after': '3600' }],
  ...[403, 403, 404].map((status) => [status, '<h1>Sorry</h1>', {}] as const),
] as const;

/** Starts a server that gives the n-th request for a key the same response each time; returns its address and its requests. */
async function aServer(onTestFinished: (stop: () => void) => void) {
  const requests: string[] = [];
  const server = createServer(async (request, response) => {
    const key = `${request.headers['idempotency-key']}`;
    const before = requests.filter((each) => each.startsWith(key)).length;
    requests.push(`${key} ${JSON.stringify(JSON.parse((await request.toArray()).join('')))}`);
    const [status, text, headers] = createChance(SEED + 100 * KEYS.indexOf(key) + before).oneOf(ANSWERS);
    const type = text.startsWith('<') ? 'text/html' : `application/${status < 400 ? '' : 'problem+'}json`;
    const body = JSON.stringify(status < 400 ? { lead: { id: key } } : { code: text, title: 'A problem' });
    response.writeHead(status, { ...headers, 'content-type': type }).end(text.startsWith('<') ? text : body);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

/** Runs a random sequence of operations; returns the answer of each, the table after it, and the number of requests so far. */
async function lived(
  website: Website,
  { baseUrl, requests }: Awaited<ReturnType<typeof aServer>>,
  since: number,
): Promise<object[]> {
  const chance = createChance(SEED);
  const states: object[] = [];
  const update = (what: string) => website.database.run(`UPDATE ${TABLE} SET ${what}`);
  for (let count = 0; count < OPERATIONS; count += 1) {
    const index = chance.between(0, KEYS.length - 1);
    const key = KEYS[index] as string;
    const note = [undefined, 'Hello', 'Zoë'][chance.between(0, 9) === 0 ? 2 : index % 2];
    const capture = { displayName: `Lead ${index}`, contact: { type: 'email', value: `${index}@example.com` }, note };
    const [command, args] = chance.oneOf<() => [string, object]>([
      ...[1, 2].map(() => (): [string, object] => ['add', { leads: [{ capture, key }] }]),
      ...[{}, {}, {}, { limit: 2 }, { onSettled: 'print' }, { onSettled: 'throw' }, { keepSettledDays: 1 }].map(
        (options) => (): [string, object] => ['deliver', options],
      ),
      () => ['retry', chance.oneOf([{ key }, { key, capture }])],
      () => ['discard', { key }],
      () => ['needs-attention', {}],
    ])();
    // Times follow the order of the keys, so that no two are equal. A lead that is not due stays so, however long commands take.
    const time = `CASE idempotency_key ${KEYS.map((each, at) => `WHEN '${each}' THEN ${since + at}`).join(' ')} END`;
    if (chance.between(0, 2) > 0) await update(`next_attempt_at = ${time} WHERE state = 'waiting'`);
    await update(`created_at = ${time}`);
    const now = Date.now();
    await update(`next_attempt_at = ${since + DAY_MS} WHERE next_attempt_at > ${now}`);
    await update(`next_attempt_at = ${time} WHERE next_attempt_at <= ${now}`);
    if (chance.between(0, 5) === 0) await update(`settled_at = settled_at - ${2 * DAY_MS}`);
    const outcome = await website.run(command, args, { baseUrl }).catch(() => 'an error');
    const rows = (await website.rows()).map(
      ({ capture, created_at: _, next_attempt_at: next, settled_at, reason, ...row }) => ({
        ...row,
        reason: reason?.replace(/^listener: .*/, 'listener') ?? null,
        capture: capture && JSON.parse(capture),
        isDue: next <= Date.now(),
        isSettled: settled_at !== null,
      }),
    );
    states.push({ command, args, outcome, rows, requests: requests.length });
  }
  return states;
}

/** Defines the test that compares random operations with the same ones in the outbox for Node. */
export function testRandomly(outbox: OutboxUnderTest, testOnce: ReturnType<typeof test.runIf>): void {
  const node = outbox.others.find(({ name }) => name === 'Node');
  if (!node) return;
  testOnce(
    `${outbox.name}: a random sequence of operations does the same as in the outbox for Node`,
    async ({ onTestFinished }) => {
      const since = Date.now() - DAY_MS / 2;
      const servers = await Promise.all([aServer(onTestFinished), aServer(onTestFinished)]);
      const websites = await Promise.all([outbox.aWebsite(), outbox.aWebsite()]);
      const [expected, found] = await Promise.all([
        lived((websites[0] as Website).by(await outbox.prepareDrivers(node)), servers[0], since),
        lived(websites[1] as Website, servers[1], since),
      ]);
      for (const [count, state] of expected.entries())
        expect(found[count], `OUTBOX_SEED=${SEED}, after ${JSON.stringify(found[count - 1])}`).toEqual(state);
      expect(servers[1].requests).toEqual(servers[0].requests);
    },
  );
}
