import { setTimeout as sleep } from 'node:timers/promises';
import { REQUEST_ARRIVAL_MS } from '../../../common/deadlines.ts';
import {
  CHECK_INTERVAL_MS,
  KERNEL_QUERY_INTERVAL_MS,
  MIN_READ_BYTES,
  READ_TIMEOUT_MS,
} from '../../../gateway/open-connections.ts';
import { lines } from '../../support/raw-http.ts';
import { LEADS } from '../../support/service.ts';
import { type Caller, type ClientState, startClients } from '../held-connections.ts';
import { now } from '../history.ts';
import type { LongPages } from '../long-pages.ts';
import type { Simulation } from '../simulation.ts';
import { one } from './choices.ts';

/** How late a busy machine may meet a deadline; milliseconds. */
const LATE_BY_MS = 20_000;

/** How long after a disturbance an action that came due meanwhile may take; milliseconds. */
const AFTER_DISTURBANCE_MS = 15_000;

/** How long a client waits for the response that it then leaves unread; milliseconds. */
const ANSWERED_WITHIN_MS = 15_000;

/** For how long clients that were cut off, or not answered, reconnect, and the delay before they do; milliseconds. */
const RECONNECTS_FOR_MS = 60_000;
const RECONNECT_DELAY_MS = 1000;

/** The fraction of the promised time before which a cut-off must have another cause. */
const IN_TIME = 0.7;

/** A local address that no other client uses. */
const FROM = '127.0.0.20';

const SECONDS = READ_TIMEOUT_MS / 1000;

/** More requests in one write than one read bytesPerSecond. */
const MANY = 2000;

/** A way of holding a connection. */
interface Method {
  readonly what: string;
  readonly caller: Caller;
  /** The time within which the connection is promised to be closed, unless disturbed; milliseconds. */
  readonly closedWithinMs: number;
  /** Whether the connection is in the state that is limited in time, so that the time runs. */
  isHeld(state: ClientState): boolean;
}

/** The outcome of one connection. */
type Outcome = 'pending' | 'as promised' | 'inconclusive';

/** Returns the request whose response is left unread. */
export const aPage = (secret: string): string =>
  lines(`GET ${LEADS}?limit=100 HTTP/1.1`, 'Host: x', `Authorization: Bearer ${secret}`, '');

export const SILENT_CLIENT: Caller = { from: FROM, sends: '', isNarrow: false, bytesPerSecond: 0, sendsEachSecond: '' };

/**
 * Holds connections to a gateway in each way that is possible without reading a response or completing a request,
 * until each is closed; clients that are cut off early, or get no response, reconnect.
 */
export async function holdConnections(sim: Simulation, pages: LongPages): Promise<void> {
  const begin = now();
  let methods = [...unread(pages), ...unended(pages)];
  for (let times = 0; methods.length > 0 && now() - begin < RECONNECTS_FOR_MS; times += 1) {
    methods = await holdOnce(sim, one(sim.world.gatewayUrls, times), methods);
    if (methods.length > 0) await sleep(RECONNECT_DELAY_MS);
  }
}

function unread({ secrets }: LongPages): Method[] {
  const [secret = ''] = secrets;
  const page = { ...SILENT_CLIENT, sends: aPage(secret) };
  const closedWithinMs = READ_TIMEOUT_MS + KERNEL_QUERY_INTERVAL_MS + CHECK_INTERVAL_MS;
  const isLong = ({ status, length }: ClientState) => status === 200 && length > 500_000;
  const slow = { ...page, isNarrow: true, bytesPerSecond: Math.round(MIN_READ_BYTES / 2 / SECONDS) };
  return [
    {
      what: 'reads nothing of a page that the gateway buffers',
      caller: { ...page, isNarrow: true },
      closedWithinMs,
      isHeld: (state) => isLong(state) && state.left > 0,
    },
    { what: 'reads nothing of a page that the kernel buffers', caller: page, closedWithinMs, isHeld: isLong },
    {
      what: 'requests one page after the other, and reads nothing',
      caller: { ...page, sends: page.sends.repeat(6) },
      closedWithinMs,
      isHeld: isLong,
    },
    {
      what: 'requests an unknown path repeatedly, and reads nothing',
      caller: { ...page, isNarrow: true, sends: lines('GET /nothing HTTP/1.1', 'Host: x', '').repeat(MANY) },
      closedWithinMs,
      isHeld: ({ status }) => status === 404,
    },
    { what: 'reads a page too slowly', caller: slow, closedWithinMs, isHeld: isLong },
  ];
}

/** Requests that are never completed. */
function unended({ secrets }: LongPages): Method[] {
  const head = lines(
    `POST ${LEADS} HTTP/1.1`,
    'Host: x',
    `Authorization: Bearer ${secrets[0]}`,
    `Idempotency-Key: ${crypto.randomUUID()}`,
    'Content-Type: application/json',
    'Content-Length: 100',
  );
  return [
    ['sends nothing', '', ''],
    ['stops in the middle of a head', head.slice(0, 60), ''],
    ['stops in the middle of a body', `${head}\r\n{"displayName":`, ''],
    ['sends a head without end', head.slice(0, 20), 'a'],
    ['sends a body without end', `${head}\r\n`, ' '],
  ].map(([what = '', sends = '', sendsEachSecond = '']) => ({
    what,
    caller: { ...SILENT_CLIENT, sends, sendsEachSecond },
    closedWithinMs: REQUEST_ARRIVAL_MS + CHECK_INTERVAL_MS,
    isHeld: () => true,
  }));
}

/** @returns those whose attempt was inconclusive */
async function holdOnce(sim: Simulation, url: string, methods: readonly Method[]): Promise<Method[]> {
  const begin = now();
  const serving = gatewaysOf(sim);
  const clients = startClients(
    url,
    methods.map(({ caller }) => caller),
  );
  const heldSince = methods.map(() => Number.POSITIVE_INFINITY);
  const outcomes = methods.map((): Outcome => 'pending');
  while (outcomes.includes('pending')) {
    await sleep(500);
    const states = clients.states();
    methods.forEach((method, index) => {
      const state = states[index];
      if (outcomes[index] !== 'pending') return;
      if (state?.isOpen && heldSince[index] === Number.POSITIVE_INFINITY && method.isHeld(state))
        heldSince[index] = now();
      outcomes[index] = outcomeOf(sim, method, state, { begin, heldForMs: now() - (heldSince[index] as number) });
      // When a gateway has ended, the operating system keeps the connection until the client reads what was sent.
      if (outcomes[index] === 'pending' && gatewaysOf(sim) !== serving) outcomes[index] = 'inconclusive';
    });
  }
  await clients.leave();
  const results = methods.map(({ what }, index) => `${what}: ${outcomes[index]}`).join(', ');
  sim.history.note('slow client', `at ${url}: ${results}`, begin);
  return methods.filter((_, index) => outcomes[index] === 'inconclusive');
}

/** Returns the processes that serve; others after one has ended. */
const gatewaysOf = ({ world }: Simulation): string =>
  world
    .processes()
    .filter(({ name }) => name.includes('gateway'))
    .map(({ pid }) => pid)
    .join();

function outcomeOf(
  sim: Simulation,
  { what, closedWithinMs }: Method,
  state: ClientState | undefined,
  { begin, heldForMs }: { readonly begin: number; readonly heldForMs: number },
): Outcome {
  const isHeld = heldForMs >= 0;
  if (state && !state.isOpen) return heldForMs >= IN_TIME * closedWithinMs ? 'as promised' : 'inconclusive';
  if (!isHeld) return now() - begin > ANSWERED_WITHIN_MS ? 'inconclusive' : 'pending';
  if (heldForMs < closedWithinMs + LATE_BY_MS || sim.isDisturbedSince(now() - AFTER_DISTURBANCE_MS)) return 'pending';
  sim.history.fail(
    `a client that ${what} is still connected after ${Math.round(heldForMs)} ms: ${JSON.stringify(state)}`,
  );
  return 'as promised';
}
