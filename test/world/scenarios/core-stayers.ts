import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { FLAG, FRAME, frame, headerBlock, PREFACE } from '../../security/http2-wire.ts';
import { now } from '../history.ts';
import { type Life, STUDIOS } from '../life.ts';
import { one, studioAt } from './choices.ts';
import { askForPage, sessionWithoutRoom } from './core-callers.ts';

/** How late a busy machine may meet a deadline; milliseconds. */
const LATE_BY_MS = 20_000;

/**
 * After this time a client leaves: the connection will not be closed any more, whatever was suspended; milliseconds.
 */
const LEAVES_AFTER_MS = 130_000;

/** For how long clients that were cut off reconnect, and the delay before they do; milliseconds. */
const COMES_AGAIN_FOR_MS = 45_000;
const COMES_AGAIN_AFTER_MS = 1000;

/** The fraction of the promised time before which a cut-off must have another cause. */
const IN_TIME = 0.7;

/** A client that holds a connection or a call that the core promises to close. */
interface Stayer {
  isOpen(): boolean;
  leave(): void;
}

/** A way of holding a connection. */
interface Manner {
  readonly what: string;
  readonly closedWithinMs: number;
  /** The time before which only a disturbance closes it, if that is promised; milliseconds. */
  readonly openForMs?: number;
  /** Returns undefined if the client cannot hold anything. */
  come(life: Life, url: string): Promise<Stayer | undefined>;
}

/** The core checks thirty times, a second apart, whether any part of a response is taken. */
const readsNothing: Manner = {
  what: 'takes nothing of an answer of a core',
  closedWithinMs: 31_000,
  async come(life, url) {
    const session = sessionWithoutRoom(life, url);
    const call = askForPage(life, session, studioAt(life, STUDIOS - 1).id).resume();
    const answered = once(call, 'response').then(([headers]) => headers[':status'] === 200);
    const isHeld = await Promise.race([answered, sleep(10_000, false)]).catch(() => false);
    const stayer = { isOpen: () => !call.closed && !session.destroyed, leave: () => session.destroy() };
    if (isHeld) return stayer;
    stayer.leave();
    return undefined;
  },
};

/**
 * The core checks every twenty seconds whether a connection has responded; it closes the connection at the third
 * check without a response.
 */
const givesNoSign: Manner = {
  what: 'gives a core no sign of life',
  closedWithinMs: 80_000,
  openForMs: 50_000,
  async come({ world }, url) {
    const socket = await lifelessConnection(url, world.certificates?.caller);
    if (!socket) return undefined;
    // A call with the token: connections without it are closed for other reasons, too.
    const head = headerBlock({
      ':method': 'POST',
      ':scheme': 'http',
      ':path': '/grpc.health.v1.Health/Check',
      ':authority': 'x',
      'content-type': 'application/grpc',
      te: 'trailers',
      authorization: `Bearer ${world.coreToken}`,
    });
    socket.write(Buffer.concat([PREFACE, frame(FRAME.settings, FLAG.none, 0)]));
    socket.write(frame(FRAME.headers, FLAG.endHeaders, 1, head));
    socket.write(frame(FRAME.data, FLAG.endStream, 1, Buffer.alloc(5)));
    return { isOpen: () => !socket.destroyed && socket.readable, leave: () => socket.destroy() };
  },
};

async function lifelessConnection(url: string, shown: object | undefined): Promise<Socket | undefined> {
  const { hostname, port } = new URL(url);
  const address = { host: hostname, port: Number(port) };
  const socket = shown ? connectTls({ ...address, ...shown, ALPNProtocols: ['h2'] }) : connectTcp(address);
  socket.on('error', () => {}).resume();
  await once(socket, shown ? 'secureConnect' : 'connect').catch(() => {});
  return socket.destroyed ? undefined : socket;
}

/**
 * Holds a connection to a core in each way that requires no further messages, until the core closes it; clients that
 * are cut off early reconnect.
 */
export async function stayAtCore(life: Life): Promise<void> {
  await Promise.all([readsNothing, givesNoSign].map((manner) => stayIn(life, manner)));
}

async function stayIn(life: Life, manner: Manner): Promise<void> {
  const begin = now();
  for (let times = 0; now() - begin < COMES_AGAIN_FOR_MS; times += 1) {
    const url = one(life.world.coreUrls, times);
    const stayer = await manner.come(life, url);
    if (stayer && (await stayedFor(life, manner, stayer)) >= IN_TIME * manner.closedWithinMs) return;
    await sleep(COMES_AGAIN_AFTER_MS);
  }
}

/** @returns for how long; milliseconds */
async function stayedFor(life: Life, { what, closedWithinMs, openForMs = 0 }: Manner, stayer: Stayer): Promise<number> {
  const begin = now();
  const forMs = () => now() - begin;
  // The core counts checks, not time: while it is suspended, it makes none.
  const isDue = () => forMs() > closedWithinMs + LATE_BY_MS + stoodStillMs(life, begin);
  while (stayer.isOpen() && forMs() < LEAVES_AFTER_MS && (!isDue() || life.isDisturbedSince(now()))) await sleep(250);
  const tookMs = forMs();
  const span = { begin, end: now() };
  const told = stayer.isOpen() ? 'and still stands' : 'and is cut off';
  life.history.add({ kind: 'other', party: 'stayer', what: `${what} for ${Math.round(tookMs)} ms, ${told}`, span });
  if (stayer.isOpen() && isDue()) life.history.breaks(`whoever ${what} still stands after ${Math.round(tookMs)} ms`);
  if (tookMs < openForMs && !life.isDisturbedSince(begin))
    life.history.breaks(`whoever ${what} is cut off after ${Math.round(tookMs)} ms, before there was time for one`);
  stayer.leave();
  return tookMs;
}

/** Returns how long parts were suspended since a moment; milliseconds. */
function stoodStillMs(life: Life, begin: number): number {
  return life.history
    .of('disturbance')
    .filter(({ what, span }) => /stands still/.test(what) && span.end > begin)
    .reduce((sum, { span }) => sum + span.end - span.begin, 0);
}
