import { randomUUID } from 'node:crypto';
import { existsSync, globSync, readlinkSync } from 'node:fs';
import { connect, Socket } from 'node:net';
import { getDefaultHighWaterMark } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { BOUNDS } from '../../common/rules/field-rules.ts';
import { PAGE_SIZE } from '../../common/rules/public-api.ts';
import { READ_TIMEOUT_MS } from '../../gateway/port/connections.ts';
import { READ_AHEAD_BYTES } from '../../gateway/routes/docs.ts';
import { times } from '../support/builders.ts';
import { heapBytes } from '../support/heap.ts';
import { lines, rawConversation } from '../support/raw-http.ts';
import { aService, LEADS, type StudioWithKey } from '../support/service.ts';
import { REFUSED } from './gateway-refusals.ts';

const service = aService();
let studio: StudioWithKey;
let pageBytes: number;
beforeAll(async () => {
  studio = await service.aStudioWithKey();
  // Notes that make a page as long as possible.
  const note = '😀'.repeat(BOUNDS.note.max);
  for (const _ of times(PAGE_SIZE.max, () => 0)) {
    const contact = { value: { case: 'email', value: `${randomUUID()}@example.org` } } as const;
    const displayName = '😀'.repeat(BOUNDS.displayName.max);
    await service.leads.createLead({
      studioId: studio.studioId,
      idempotencyKey: randomUUID(),
      displayName,
      contact,
      note,
    });
  }
  pageBytes = (await readPage())?.body.length ?? 0;
  expect(pageBytes).toBeGreaterThan(800_000);
});

/** Enough long responses to exceed the buffers of both systems for a client that does not read. */
const ON_ONE_CONNECTION = 6;

const aPage = (...more: string[]) =>
  lines(
    `GET ${LEADS}?limit=${PAGE_SIZE.max} HTTP/1.1`,
    'Host: a',
    `Authorization: Bearer ${studio.secret}`,
    ...more,
    '',
  );

/** Reads a page on a separate connection that closes and is not counted. */
const readPage = async () => (await rawConversation(service.url, aPage('Connection: close')))[0];

/** Sends a request, and does not read the responses. */
function aSlowReader(request: string): Socket {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  onTestFinished(() => {
    socket.destroy();
  });
  socket.pause().write(request);
  return socket;
}

/** Counts the ends of connections with the gateway; a client that does not read does not notice a closed connection. */
function connectionEnds(): number {
  const port = Number(new URL(service.url).port);
  // Undocumented, but nothing else distinguishes the connections of this suite from others in the process.
  const handles = (process as unknown as { _getActiveHandles(): object[] })._getActiveHandles();
  return handles.filter((each) => each instanceof Socket && [each.localPort, each.remotePort].includes(port)).length;
}

/** Counts the open descriptors of the docs' script in this process; 0 where the system does not report it. */
const openScripts = (): number =>
  globSync('/proc/self/fd/*').filter((path) => {
    try {
      return readlinkSync(path).endsWith('scalar.js');
    } catch {
      // The descriptor that read the directory.
      return false;
    }
  }).length;

// @proves hostile-2 bounds-4 bounds-11
test('connections with unread pages, docs or refusals are closed in time', async () => {
  await expect.poll(connectionEnds).toBe(0);
  const begun = performance.now();
  const callers = [
    aPage(),
    // This client also keeps sending, in a request without an end.
    lines('GET /docs/assets/icon.svg HTTP/1.1', 'Host: a', '').repeat(1000),
    lines('GET /docs/assets/scalar.js HTTP/1.1', 'Host: a', ''),
    // Refusals by the router, by the hooks and by the routes.
    ...['GET /nothing', 'GET /%6eothing', 'SEARCH /nothing', `PUT ${LEADS}`, `GET ${LEADS}`, `GET ${LEADS}/%6e`].map(
      (start) => lines(`${start} HTTP/1.1`, 'Host: a', '').repeat(3000),
    ),
  ].map((request) => aSlowReader(request.repeat(ON_ONE_CONNECTION)));
  const areConnected = () => callers.every(({ connecting }) => !connecting);
  await expect.poll(areConnected).toBe(true);
  const trickle = setInterval(() => callers[1]?.write('x'), 1000);
  onTestFinished(() => clearInterval(trickle));
  await sleep(READ_TIMEOUT_MS - 5000 - (performance.now() - begun));
  expect(connectionEnds()).toBe(2 * callers.length);
  // Other ways to refuse a request: some of these connections end at once.
  callers.push(...REFUSED.map(({ request }) => aSlowReader(request(studio.secret).repeat(500 * ON_ONE_CONNECTION))));
  await expect.poll(areConnected).toBe(true);
  // A client that writes notices it, and closes its own end, too.
  await expect.poll(connectionEnds).toBeLessThanOrEqual(callers.length);
  expect(openScripts()).toBe(0);
  expect((await readPage())?.status).toBe(200);
});

// @proves bounds-16
test.skipIf(!existsSync('/proc/self/fd'))('an unread file of the docs uses little memory', async () => {
  const bytes = () => heapBytes() && process.memoryUsage().arrayBuffers;
  await expect.poll(connectionEnds).toBe(0);
  const before = bytes();
  const callers = times(100, () => aSlowReader(lines('GET /docs/assets/scalar.js HTTP/1.1', 'Host: a', '')));
  await expect.poll(openScripts).toBe(callers.length);
  // Waits until the buffers of the systems on both ends are full.
  await sleep(3000);
  expect(openScripts()).toBe(callers.length);
  const most = READ_AHEAD_BYTES + getDefaultHighWaterMark(false);
  expect((bytes() - before) / callers.length).toBeLessThanOrEqual(most);

  for (const caller of callers) caller.destroy();
  await expect.poll(openScripts).toBe(0);
});
