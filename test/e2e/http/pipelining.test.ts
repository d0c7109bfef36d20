import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { times } from '../../support/builders.ts';
import { lines, rawConversation } from '../../support/raw-http.ts';
import { aCapture, aService, LEADS, type StudioWithKey } from '../../support/service.ts';

const service = aService();
let studio: StudioWithKey;
beforeAll(async () => {
  studio = await service.aStudioWithKey();
});

/** A valid creation, as bytes; a longer length promises more of its body than comes. */
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

/** Sends parts over one connection, one after another, and gives the statuses of all that is answered. */
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

describe.each(Object.entries(UNREADABLE))('before %s on the same connection', (_, [unreadable, status]) => {
  test.each([0, 1, 3])('a creation keeps its own answer (%i ms between them)', async (pauseMs) => {
    const before = await service.countLeads(studio.studioId);
    for (let round = 0; round < 10; round += 1) {
      expect(await statusesOf([creation(), unreadable], pauseMs)).toEqual([201, status]);
    }
    expect(await service.countLeads(studio.studioId)).toBe(before + 10);
  });

  test('each of several creations keeps its own', async () => {
    expect(await statusesOf([creation() + creation() + creation(), unreadable], 1)).toEqual([201, 201, 201, status]);
  });
});

test('what was refused before its body came is not answered again when that breaks off', async () => {
  const { hostname, port } = new URL(service.url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
    // Our end of the connection; the other one stays open.
    socket.end();
  });
  socket.write(creation({ secret: 'nobody', promisedBytes: 10 }));
  await new Promise((resolve) => socket.on('error', () => {}).on('end', resolve));

  expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401']);
});

describe('a caller who says that no more will come, and reads', () => {
  /** What is answered until the connection ends; it ends long before it would for being idle. */
  const answeredBeforeEnd = async (bytes: string) => {
    const answers = await rawConversation(service.url, bytes, { end: true });
    return answers.map(({ status }) => status);
  };
  const reading = () => lines(`GET ${LEADS} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${studio.secret}`, '');

  test('is told what became of a creation, and of reads', async () => {
    const before = await service.countLeads(studio.studioId);
    expect(await answeredBeforeEnd(creation())).toEqual([201]);
    expect(await answeredBeforeEnd(reading())).toEqual([200]);
    expect(await answeredBeforeEnd(reading() + creation() + reading())).toEqual([200, 201, 200]);
    expect(await service.countLeads(studio.studioId)).toBe(before + 2);
  });

  // From 32 on, reading stops until they are answered: the end is read behind them.
  test('is told it of each of many creations', async () => {
    const { studioId, secret } = await service.aStudioWithKey();
    const creations = times(40, () => creation({ secret }));
    expect(await answeredBeforeEnd(creations.join(''))).toEqual(creations.map(() => 201));
    expect(await service.countLeads(studioId)).toBe(40);
  });

  test('is told it of what came before a request that is not whole, and that this cannot be read', async () => {
    const before = await service.countLeads(studio.studioId);
    expect(await answeredBeforeEnd(creation() + creation({ promisedBytes: 10 }))).toEqual([201, 400]);
    expect(await service.countLeads(studio.studioId)).toBe(before + 1);
  });

  test.each([
    ['nothing', () => '', []],
    ['half a head', () => reading().slice(0, -10), [400]],
    ['half a body', () => creation({ promisedBytes: 10 }), [400]],
  ])('is not waited for after %s', async (_, bytes, answered) => {
    const begun = performance.now();
    expect(await answeredBeforeEnd(bytes())).toEqual(answered);
    expect(performance.now() - begun).toBeLessThan(1000);
  });

  test('is not waited for when the connection has served and is idle', async () => {
    const { hostname, port } = new URL(service.url);
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
    const closed = once(socket, 'end');
    socket.write(reading());
    await once(socket, 'data');
    await sleep(50);
    const begun = performance.now();
    socket.end();
    await closed;
    expect(performance.now() - begun).toBeLessThan(1000);
  });
});

test('HTTP/1.0 cannot have its body in chunks, and what follows is no request', async () => {
  const chunked = lines(
    `POST ${LEADS} HTTP/1.0`,
    'Connection: keep-alive',
    `Authorization: Bearer ${studio.secret}`,
    'Transfer-Encoding: chunked',
    '',
    '0',
    '',
    `GET ${LEADS} HTTP/1.1`,
    'Host: a',
    `Authorization: Bearer ${studio.secret}`,
    '',
  );

  expect(await statusesOf([chunked], 0)).toEqual([400]);
});

test('thousands of requests in one packet cost as much as each by itself, and hold up nobody else', async () => {
  const COUNT = 6000;
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  const begun = performance.now();
  socket.write(lines('GET / HTTP/1.1', 'Host: a', '').repeat(COUNT));
  // It is read by then, and little of it answered.
  await sleep(20);
  const asked = performance.now();
  expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  // Another caller waited eight seconds for a quarter of these when each had to wait for all before it.
  expect(performance.now() - asked).toBeLessThan(2000);
  await vi.waitUntil(() => received.split('HTTP/1.1 404').length - 1 === COUNT, { timeout: 20_000 });
  expect(performance.now() - begun).toBeLessThan(15_000);
  socket.destroy();
});
