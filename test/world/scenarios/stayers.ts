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
import { now } from '../history.ts';
import type { Life } from '../life.ts';
import type { LongPages } from '../long-pages.ts';
import { type Caller, letStay, type Seen } from '../staying.ts';
import { one } from './choices.ts';

/** How late a busy machine may meet a deadline; milliseconds. */
const LATE_BY_MS = 20_000;

/** How long after a disturbance an action that came due meanwhile may take; milliseconds. */
const AFTER_DISTURBANCE_MS = 15_000;

/** How long a client waits for the response that it then leaves unread; milliseconds. */
const ANSWERED_WITHIN_MS = 15_000;

/** For how long clients that were cut off, or not answered, reconnect, and the delay before they do; milliseconds. */
const COMES_AGAIN_FOR_MS = 60_000;
const COMES_AGAIN_AFTER_MS = 1000;

/** The fraction of the promised time before which a cut-off must have another cause. */
const IN_TIME = 0.7;

/** A local address that no other client uses. */
const FROM = '127.0.0.20';

const SECONDS = READ_TIMEOUT_MS / 1000;

/** More requests in one write than one read takes. */
const MANY = 2000;

/** A way of holding a connection. */
interface Manner {
  readonly what: string;
  readonly caller: Caller;
  /** The time within which the connection is promised to be closed, unless disturbed; milliseconds. */
  readonly closedWithinMs: number;
  /** Whether the connection is in the state that is limited in time, so that the time runs. */
  isHeld(seen: Seen): boolean;
}

/** The outcome of one connection. */
type Outcome = 'under way' | 'as promised' | 'in vain';

/** Returns the request whose response is left unread. */
export const aPage = (secret: string): string =>
  lines(`GET ${LEADS}?limit=100 HTTP/1.1`, 'Host: x', `Authorization: Bearer ${secret}`, '');

export const FROM_NOBODY: Caller = { from: FROM, says: '', isNarrow: false, takes: 0, adds: '' };

/**
 * Holds connections to a gateway in each way that is possible without reading a response or completing a request,
 * until each is closed; clients that are cut off early, or get no response, reconnect.
 */
export async function stay(life: Life, pages: LongPages): Promise<void> {
  const begin = now();
  let manners = [...unread(pages), ...unended(pages)];
  for (let times = 0; manners.length > 0 && now() - begin < COMES_AGAIN_FOR_MS; times += 1) {
    manners = await stayOnce(life, one(life.world.gatewayUrls, times), manners);
    if (manners.length > 0) await sleep(COMES_AGAIN_AFTER_MS);
  }
}

function unread({ secrets }: LongPages): Manner[] {
  const [secret = ''] = secrets;
  const page = { ...FROM_NOBODY, says: aPage(secret) };
  const closedWithinMs = READ_TIMEOUT_MS + KERNEL_QUERY_INTERVAL_MS + CHECK_INTERVAL_MS;
  const isLong = ({ status, length }: Seen) => status === 200 && length > 500_000;
  const slow = { ...page, isNarrow: true, takes: Math.round(MIN_READ_BYTES / 2 / SECONDS) };
  return [
    {
      what: 'takes nothing of a page that the gateway has to keep',
      caller: { ...page, isNarrow: true },
      closedWithinMs,
      isHeld: (seen) => isLong(seen) && seen.left > 0,
    },
    { what: 'takes nothing of a page that the system keeps', caller: page, closedWithinMs, isHeld: isLong },
    {
      what: 'asks for one page after the other, and takes nothing',
      caller: { ...page, says: page.says.repeat(6) },
      closedWithinMs,
      isHeld: isLong,
    },
    {
      what: 'asks for nothing again and again, and takes none of the answers',
      caller: { ...page, isNarrow: true, says: lines('GET /nothing HTTP/1.1', 'Host: x', '').repeat(MANY) },
      closedWithinMs,
      isHeld: ({ status }) => status === 404,
    },
    { what: 'takes too little of a page', caller: slow, closedWithinMs, isHeld: isLong },
  ];
}

/** Requests that are never completed. */
function unended({ secrets }: LongPages): Manner[] {
  const head = lines(
    `POST ${LEADS} HTTP/1.1`,
    'Host: x',
    `Authorization: Bearer ${secrets[0]}`,
    `Idempotency-Key: ${crypto.randomUUID()}`,
    'Content-Type: application/json',
    'Content-Length: 100',
  );
  return [
    ['says nothing', '', ''],
    ['stops in the middle of a head', head.slice(0, 60), ''],
    ['stops in the middle of a body', `${head}\r\n{"displayName":`, ''],
    ['sends a head without end', head.slice(0, 20), 'a'],
    ['sends a body without end', `${head}\r\n`, ' '],
  ].map(([what = '', says = '', adds = '']) => ({
    what,
    caller: { ...FROM_NOBODY, says, adds },
    closedWithinMs: REQUEST_ARRIVAL_MS + CHECK_INTERVAL_MS,
    isHeld: () => true,
  }));
}

/** @returns those whose attempt was in vain: its outcome proves nothing */
async function stayOnce(life: Life, url: string, manners: readonly Manner[]): Promise<Manner[]> {
  const begin = now();
  const serving = gatewaysOf(life);
  const staying = letStay(
    url,
    manners.map(({ caller }) => caller),
  );
  const heldSince = manners.map(() => Number.POSITIVE_INFINITY);
  const outcomes = manners.map((): Outcome => 'under way');
  while (outcomes.includes('under way')) {
    await sleep(500);
    const lastSeen = staying.seen();
    manners.forEach((manner, index) => {
      const seen = lastSeen[index];
      if (outcomes[index] !== 'under way') return;
      if (seen?.isOpen && heldSince[index] === Number.POSITIVE_INFINITY && manner.isHeld(seen))
        heldSince[index] = now();
      outcomes[index] = outcomeOf(life, manner, seen, { begin, heldForMs: now() - (heldSince[index] as number) });
      // When a gateway has ended, the operating system keeps the connection until the client reads what was sent.
      if (outcomes[index] === 'under way' && gatewaysOf(life) !== serving) outcomes[index] = 'in vain';
    });
  }
  await staying.leave();
  const told = manners.map(({ what }, index) => `${what}: ${outcomes[index]}`).join(', ');
  life.history.add({ kind: 'other', party: 'stayer', what: `at ${url}: ${told}`, span: { begin, end: now() } });
  return manners.filter((_, index) => outcomes[index] === 'in vain');
}

/** Returns the processes that serve; others after one has ended. */
const gatewaysOf = ({ world }: Life): string =>
  world
    .processes()
    .filter(({ name }) => name.includes('gateway'))
    .map(({ pid }) => pid)
    .join();

function outcomeOf(
  life: Life,
  { what, closedWithinMs }: Manner,
  seen: Seen | undefined,
  { begin, heldForMs }: { readonly begin: number; readonly heldForMs: number },
): Outcome {
  const isHeld = heldForMs >= 0;
  if (seen && !seen.isOpen) return heldForMs >= IN_TIME * closedWithinMs ? 'as promised' : 'in vain';
  if (!isHeld) return now() - begin > ANSWERED_WITHIN_MS ? 'in vain' : 'under way';
  if (heldForMs < closedWithinMs + LATE_BY_MS || life.isDisturbedSince(now() - AFTER_DISTURBANCE_MS))
    return 'under way';
  life.history.breaks(`whoever ${what} still stands after ${Math.round(heldForMs)} ms: ${JSON.stringify(seen)}`);
  return 'as promised';
}
