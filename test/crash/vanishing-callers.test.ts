import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { expect, test, vi } from 'vitest';
import { times } from '../support/builders.ts';
import { heapBytes } from '../support/heap.ts';
import { lines } from '../support/raw-http.ts';
import { aCapture, aService, LEADS, readLead, type StudioWithKey } from '../support/service.ts';
import { testSize } from '../tools/test-size.ts';

/** The total number of callers that vanish, in five rounds. */
const CALLERS = testSize('VANISHING_CALLERS', { usual: 1000, soak: 10_000 });
const AT_ONCE = 40;

/** The memory that each caller may leave behind; bytes. A leaked connection takes more than 10,000. */
const MAX_LEFT_BYTES = 2000;

const service = aService();

// @proves bounds-34
test('callers that disconnect at any moment leave no memory in use and no duplicate lead', async () => {
  const studio = await service.aStudioWithKey();
  const keys: string[] = [];
  const heap: number[] = [];
  // Earlier suites in this process may have left some sockets open.
  const socketsOfOthers = openSockets();
  for (const _ of times(5, () => 0)) {
    const left = times(CALLERS / 5, () => randomUUID()).values();
    const vanishOneByOne = async () => {
      for (const key of left) {
        keys.push(key);
        await vanish(studio, key);
      }
    };
    await Promise.all(times(AT_ONCE, vanishOneByOne));
    // The last requests in flight complete.
    await vi.waitUntil(async () => openSockets() <= socketsOfOthers + SOCKETS_OF_THE_SERVICE, {
      timeout: 100_000,
    });
    expect((await service.get(studio.secret, '?limit=1')).status).toBe(200);
    heap.push(heapBytes());
  }

  // The first rounds fill pools and caches, and trigger compilation.
  const [, , third = 0, , last = 0] = heap;
  expect((last - third) / ((CALLERS / 5) * 2)).toBeLessThan(MAX_LEFT_BYTES);

  for (const key of keys.slice(-50))
    await readLead(await service.post(studio.secret, makeCapture(key), { 'idempotency-key': key }), 201);
  const before = await service.countLeads(studio.studioId);
  for (const key of keys.slice(-50))
    await readLead(await service.post(studio.secret, makeCapture(key), { 'idempotency-key': key }), 201);
  expect(await service.countLeads(studio.studioId)).toBe(before);
  expect(before).toBeLessThanOrEqual(keys.length);
});

/**
 * The two ends of the connection between gateway and core, the test's own connections to both, and the listening
 * sockets.
 */
const SOCKETS_OF_THE_SERVICE = 12;

const openSockets = (): number => process.getActiveResourcesInfo().filter((name) => /TCP/.test(name)).length;

const makeCapture = (key: string) => aCapture({ contact: { type: 'email', value: `${key}@example.org` } });

/**
 * Sends a random part of a creation, perhaps of more than one, and disconnects, perhaps after the first bytes of a
 * response.
 */
function vanish({ secret }: StudioWithKey, key: string): Promise<void> {
  const { hostname, port } = new URL(service.url);
  const body = JSON.stringify(makeCapture(key));
  const head = lines(
    `POST ${LEADS} HTTP/1.1`,
    'Host: leads.example.test',
    `Authorization: Bearer ${secret}`,
    `Idempotency-Key: ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    '',
  );
  const whole = head + body;
  const isWhole = Math.random() < 0.7;
  const sent = isWhole ? whole.repeat(Math.random() < 0.2 ? 3 : 1) : whole.slice(0, Math.random() * whole.length);
  const awaitsAnswer = isWhole && Math.random() < 0.2;
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(sent);
      if (!awaitsAnswer)
        setTimeout(() => (Math.random() < 0.5 ? socket.destroy() : socket.resetAndDestroy()), Math.random() * 8);
    });
    socket.on('data', () => socket.resetAndDestroy());
    socket.on('error', () => {}).on('close', () => resolve());
  });
}
