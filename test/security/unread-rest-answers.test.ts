import { randomUUID } from 'node:crypto';
import { existsSync, globSync, readlinkSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { getDefaultHighWaterMark } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { BOUNDS } from '../../common/rules/field-rules.ts';
import { PAGE_SIZE } from '../../common/rules/public-api.ts';
import { REFERENCE_SCRIPT } from '../../gateway/docs/reference-script.ts';
import { READ_AHEAD_BYTES } from '../../gateway/operations/docs.ts';
import { READ_TIMEOUT_MS } from '../../gateway/socket/connections.ts';
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
  // On a connection that closes, unlike those that are counted below.
  const [page] = await rawConversation(service.url, aPage('Connection: close'));
  pageBytes = page?.body.length ?? 0;
  expect(pageBytes).toBeGreaterThan(800_000);
});

/** A number of long responses that exceeds what the systems on both connectionEnds buffer for a client that does not read. */
const ON_ONE_CONNECTION = 6;

const aPage = (...more: string[]) =>
  lines(
    `GET ${LEADS}?limit=${PAGE_SIZE.max} HTTP/1.1`,
    'Host: a',
    `Authorization: Bearer ${studio.secret}`,
    ...more,
    '',
  );

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

/** The number of connectionEnds of all connections in this process; a client that does not read does not notice that its peer is gone. */
const connectionEnds = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;

/** How often this process has the script of the docs open; 0 where the system does not report it. */
const openScripts = (): number =>
  globSync('/proc/self/fd/*').filter((path) => {
    try {
      return readlinkSync(path).endsWith(REFERENCE_SCRIPT);
    } catch {
      // The descriptor that read the directory.
      return false;
    }
  }).length;

/** The number of connectionEnds once those of earlier requests are gone. */
async function settledConnectionEnds(): Promise<number> {
  let [before, after] = [-1, connectionEnds()];
  while (before !== after) {
    await sleep(2000);
    [before, after] = [after, connectionEnds()];
  }
  return after;
}

// @proves hostile-4 bounds-4 bounds-11
test('connections with an unread page, an unread part of the docs or unread refusals are closed in time', async () => {
  const before = await settledConnectionEnds();
  const callers = [
    aPage(),
    // A client that also keeps sending: a request without an end.
    lines('GET /docs/assets/style.css HTTP/1.1', 'Host: a', '').repeat(1000),
    lines('GET /docs/assets/scalar.js HTTP/1.1', 'Host: a', ''),
    // Refusals by the router, by the hooks and by the routes.
    ...['GET /nothing', 'GET /%zz', 'SEARCH /nothing', `PUT ${LEADS}`, `GET ${LEADS}`, `GET ${LEADS}/%zz`].map(
      (start) => lines(`${start} HTTP/1.1`, 'Host: a', '').repeat(3000),
    ),
  ].map((request) => aSlowReader(request.repeat(ON_ONE_CONNECTION)));
  await vi.waitUntil(() => callers.every(({ pending }) => !pending));
  const trickle = setInterval(() => callers[1]?.write('x'), 1000);
  onTestFinished(() => clearInterval(trickle));
  await sleep(READ_TIMEOUT_MS - 5000);
  expect(connectionEnds()).toBe(before + 2 * callers.length);
  // However else a request is refused: some of these connections end at once.
  callers.push(...REFUSED.map(({ request }) => aSlowReader(request(studio.secret).repeat(500 * ON_ONE_CONNECTION))));
  // A client that writes notices it, and closes its own end, too.
  await vi.waitFor(() => expect(connectionEnds()).toBeLessThanOrEqual(before + callers.length), {
    timeout: 2 * READ_TIMEOUT_MS,
  });
  expect(openScripts()).toBe(0);
  expect((await service.get(studio.secret)).status).toBe(200);
});

// @proves bounds-16
test.skipIf(!existsSync('/proc/self/fd'))('an unread file of the docs uses little memory', async () => {
  const bytes = () => heapBytes() && process.memoryUsage().arrayBuffers;
  await settledConnectionEnds();
  const before = bytes();
  const callers = times(100, () => aSlowReader(lines('GET /docs/assets/scalar.js HTTP/1.1', 'Host: a', '')));
  await vi.waitFor(() => expect(openScripts()).toBe(callers.length), { timeout: 20_000 });
  // Until the buffers of the systems on both connectionEnds are full.
  await sleep(3000);
  expect(openScripts()).toBe(callers.length);
  const most = READ_AHEAD_BYTES + getDefaultHighWaterMark(false);
  expect((bytes() - before) / callers.length).toBeLessThanOrEqual(most);

  for (const caller of callers) caller.destroy();
  await vi.waitFor(() => expect(openScripts()).toBe(0));
});
