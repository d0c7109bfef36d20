import { randomUUID } from 'node:crypto';
import { existsSync, globSync, readlinkSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { getDefaultHighWaterMark } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { BOUNDS, PAGE_SIZE } from '../../common/rules/field-rules.ts';
import { REFERENCE_SCRIPT } from '../../gateway/docs/reference-script.ts';
import { MAX_UNREAD_BYTES_PER_KEY, READ_TIMEOUT_MS } from '../../gateway/open-connections.ts';
import { READ_AHEAD_BYTES } from '../../gateway/routes/docs.ts';
import { times } from '../support/builders.ts';
import { heapBytes } from '../support/heap.ts';
import { lines, rawConversation } from '../support/raw-http.ts';
import { aService, LEADS, type StudioWithKey } from '../support/service.ts';

const service = aService();
let studio: StudioWithKey;
let pageBytes: number;
beforeAll(async () => {
  studio = await service.aStudioWithKey();
  // As long as a page can be.
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
  // By a connection that does not stay, as those do that are counted below.
  const [page] = await rawConversation(service.url, aPage('Connection: close'));
  pageBytes = page?.body.length ?? 0;
  expect(pageBytes).toBeGreaterThan(800_000);
});

/** So many long answers one after the other are more than the systems on both ends keep of what nobody reads. */
const ON_ONE_CONNECTION = 6;

const aPage = (...more: string[]) =>
  lines(
    `GET ${LEADS}?limit=${PAGE_SIZE.max} HTTP/1.1`,
    'Host: a',
    `Authorization: Bearer ${studio.secret}`,
    ...more,
    '',
  );

/** Asks, and reads nothing of the answers. */
function aDeafCaller(request: string): Socket {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  onTestFinished(() => {
    socket.destroy();
  });
  socket.pause().write(request);
  return socket;
}

/** Both ends of every connection of this process; who does not read does not learn that the other end is gone. */
const ends = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;

/** How many times this process has the script of the docs open; none where the system does not tell. */
const openScripts = (): number =>
  globSync('/proc/self/fd/*').filter((path) => {
    try {
      return readlinkSync(path).endsWith(REFERENCE_SCRIPT);
    } catch {
      // The one that the list was read by.
      return false;
    }
  }).length;

/** How many ends there are once those of earlier requests are gone. */
async function settledEnds(): Promise<number> {
  let [before, after] = [-1, ends()];
  while (before !== after) {
    await sleep(2000);
    [before, after] = [after, ends()];
  }
  return after;
}

test('an unread page, an unread part of the docs and unread answers to nothing are let go of in time', {
  timeout: 120_000,
}, async () => {
  const before = await settledEnds();
  const callers = [
    aPage(),
    // One that goes on sending, too, a request without end.
    lines('GET /docs/assets/style.css HTTP/1.1', 'Host: a', '').repeat(1000),
    lines('GET /docs/assets/scalar.js HTTP/1.1', 'Host: a', ''),
    lines('GET /nothing HTTP/1.1', 'Host: a', '').repeat(3000),
  ].map((request) => aDeafCaller(request.repeat(ON_ONE_CONNECTION)));
  // One that the systems keep whole.
  callers.push(aDeafCaller(aPage()));
  await vi.waitUntil(() => callers.every(({ pending }) => !pending));
  const trickle = setInterval(() => callers[1]?.write('x'), 1000);
  onTestFinished(() => clearInterval(trickle));
  await sleep(READ_TIMEOUT_MS - 5000);
  expect(ends()).toBe(before + 2 * callers.length);
  // Who writes learns of it, and closes its own end, too.
  await vi.waitFor(() => expect(ends()).toBeLessThanOrEqual(before + callers.length), { timeout: 2 * READ_TIMEOUT_MS });
  expect(openScripts()).toBe(0);
  expect((await service.get(studio.secret)).status).toBe(200);
});

test.skipIf(!existsSync('/proc/self/fd'))(
  'of a file of the docs that nobody takes, little stands in memory',
  async () => {
    const bytes = () => heapBytes() && process.memoryUsage().arrayBuffers;
    await settledEnds();
    const before = bytes();
    const callers = times(100, () => aDeafCaller(lines('GET /docs/assets/scalar.js HTTP/1.1', 'Host: a', '')));
    await vi.waitFor(() => expect(openScripts()).toBe(callers.length), { timeout: 20_000 });
    // Until the systems on both ends keep as much of it as they will.
    await sleep(3000);
    expect(openScripts()).toBe(callers.length);
    const most = READ_AHEAD_BYTES + getDefaultHighWaterMark(false);
    expect((bytes() - before) / callers.length).toBeLessThanOrEqual(most);

    for (const caller of callers) caller.destroy();
    await vi.waitFor(() => expect(openScripts()).toBe(0));
  },
);

test('what one key can leave unread on all its connections is bounded', { timeout: 60_000 }, async () => {
  const before = await settledEnds();
  const room = Math.floor(MAX_UNREAD_BYTES_PER_KEY / pageBytes);
  const callers = times(room + 2, () => aDeafCaller(aPage().repeat(ON_ONE_CONNECTION)));
  await vi.waitUntil(() => callers.every(({ pending }) => !pending));
  // Each is left with one page that does not fit; before it would be closed for that alone, there are no more than fit.
  await vi.waitFor(() => expect(ends()).toBeLessThanOrEqual(before + callers.length + room), {
    timeout: READ_TIMEOUT_MS - 5000,
  });
  expect(ends()).toBeGreaterThan(before + callers.length);
});
