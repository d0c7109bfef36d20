import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { lines } from '../../support/raw-http.ts';
import { aCapture, LEADS, type Service, type StudioWithKey, startService } from '../../support/service.ts';

let service: Service;
let studio: StudioWithKey;
beforeAll(async () => {
  service = await startService();
  studio = await service.aStudioWithKey();
});
afterAll(() => service.dispose());

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
