import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { times } from '../../support/builders.ts';
import { lines, rawConversation } from '../../support/raw-http.ts';
import { aCapture, aService, LEADS, type StudioWithKey } from '../../support/service.ts';

const service = aService({ deadlines: { requestArrivalMs: 10 * 60_000 } });
let studio: StudioWithKey;
beforeAll(async () => {
  studio = await service.aStudioWithKey();
});

/** A valid creation, as text; `promisedBytes` makes its Content-Length too large. */
function creation({ secret = studio.secret, promisedBytes = 0 } = {}): string {
  const body = JSON.stringify(aCapture());
  return (
    lines(
      `POST ${LEADS} HTTP/1.1`,
      'Host: a',
      `Authorization: Bearer ${secret}`,
      'Content-Type: application/json',
      `Idempotency-Key: ${randomUUID()}`,
      `Content-Length: ${Buffer.byteLength(body) + promisedBytes}`,
      '',
    ) + body
  );
}

/** Sends parts over one connection, one after another; returns the statuses of all responses. */
async function statusesOf(parts: readonly string[], pauseMs: number): Promise<number[]> {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  const closed = new Promise<void>((resolve) => socket.on('error', () => {}).on('close', () => resolve()));
  for (const [index, part] of parts.entries()) {
    if (index > 0) await sleep(pauseMs);
    socket.write(part);
  }
  await closed;
  return [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}

const UNREADABLE = {
  'what is no HTTP': ['nonsense\r\n\r\n', 400],
  CONNECT: [lines('CONNECT a:1 HTTP/1.1', 'Host: a', ''), 404],
  'headers that are too large': [lines('GET / HTTP/1.1', 'Host: a', `X: ${'x'.repeat(20_000)}`, ''), 431],
} as const;

// @proves hostile-6
describe.each(Object.entries(UNREADABLE))('before %s on the same connection', (_, [unreadable, status]) => {
  test.each([0, 1, 3])('a creation gets its own response (%i ms between them)', async (pauseMs) => {
    const before = await service.countLeads(studio.studioId);
    for (let round = 0; round < 10; round += 1) {
      expect(await statusesOf([creation(), unreadable], pauseMs)).toEqual([201, status]);
    }
    expect(await service.countLeads(studio.studioId)).toBe(before + 10);
  });
});

/** Shorter than the idle timeout, and than the time that a request has to arrive; milliseconds. */
const AT_ONCE_MS = 60_000;

// @proves hostile-5 node-6
describe('a caller that half-closes its connection and reads', () => {
  /** The statuses until the connection ends, which is long before the idle timeout. */
  const answeredBeforeEnd = async (bytes: string) => {
    const answers = await rawConversation(service.url, bytes, { end: true });
    return answers.map(({ status }) => status);
  };
  const reading = () => lines(`GET ${LEADS} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${studio.secret}`, '');

  test('gets the responses to a creation and to reads', async () => {
    const before = await service.countLeads(studio.studioId);
    expect(await answeredBeforeEnd(creation())).toEqual([201]);
    expect(await answeredBeforeEnd(reading())).toEqual([200]);
    expect(await answeredBeforeEnd(reading() + creation() + reading())).toEqual([200, 201, 200]);
    expect(await service.countLeads(studio.studioId)).toBe(before + 2);
  });

  // From 32 waiting requests on, reading pauses, so the end of the connection is read after them.
  test('gets the response to each of many creations', async () => {
    const { studioId, secret } = await service.aStudioWithKey();
    const creations = times(40, () => creation({ secret }));
    expect(await answeredBeforeEnd(creations.join(''))).toEqual(creations.map(() => 201));
    expect(await service.countLeads(studioId)).toBe(40);
  });

  test.each([
    ['nothing', () => '', []],
    ['half a head', () => reading().slice(0, -10), [400]],
    ['half a body', () => creation({ promisedBytes: 10 }), [400]],
  ])('has its connection closed immediately after %s', async (_, bytes, answered) => {
    const begun = performance.now();
    expect(await answeredBeforeEnd(bytes())).toEqual(answered);
    expect(performance.now() - begun).toBeLessThan(AT_ONCE_MS);
  });
});

// @proves node-9 bounds-9
test('thousands of requests in one packet cost as much as separate ones, and do not delay other callers', async () => {
  const COUNT = 6000;
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  const begun = process.cpuUsage();
  /** The processor time since then, whatever else the machine does; milliseconds. */
  const usedMs = () => process.cpuUsage(begun).user / 1000;
  socket.write(lines('GET / HTTP/1.1', 'Host: a', '').repeat(COUNT));
  // By then the server has read the packet, and has sent few responses.
  await sleep(20);
  expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  // Another caller waited eight seconds for a quarter of these when each request had to wait for all before it.
  expect(usedMs()).toBeLessThan(4000);
  await expect.poll(() => received.split('HTTP/1.1 404').length - 1).toBe(COUNT);
  expect(usedMs()).toBeLessThan(15_000);
  socket.destroy();
});
