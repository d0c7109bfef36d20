import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { FLAG, FRAME, frame, headerBlock, PREFACE } from '../../security/http2-wire.ts';
import { now } from '../history.ts';
import { type Life, STUDIOS } from '../life.ts';
import { one, studioAt } from './choices.ts';
import { askForPage, sessionWithoutRoom } from './core-callers.ts';

/** How much later than promised a busy machine may do what is due; milliseconds. */
const LATE_BY_MS = 20_000;

/** Whoever stays for longer knows that nothing will come of it, whatever stood still; milliseconds. */
const LEAVES_AFTER_MS = 130_000;

/** For how long those who were cut off come again, and how long after that; milliseconds. */
const COMES_AGAIN_FOR_MS = 45_000;
const COMES_AGAIN_AFTER_MS = 1000;

/** Whoever is cut off after less of the promised time was cut off by something else. */
const IN_TIME = 0.7;

/** Somebody who has what they stay with, and what of it is promised to be closed. */
interface Stayer {
  isOpen(): boolean;
  leave(): void;
}

/** One way of staying. */
interface Manner {
  readonly what: string;
  readonly closedWithinMs: number;
  /** Before which time nothing but a disturbance closes it, where that is so; milliseconds. */
  readonly openForMs?: number;
  /** Gives undefined where nothing came of it. */
  come(life: Life, url: string): Promise<Stayer | undefined>;
}

/** It is looked thirty times, a second apart, whether something of an answer is taken. */
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

/** It is looked each twenty seconds whether a connection has answered; the third such look that it has not closes it. */
const givesNoSign: Manner = {
  what: 'gives a core no sign of life',
  closedWithinMs: 80_000,
  openForMs: 50_000,
  async come({ world }, url) {
    const socket = await lifelessConnection(url, world.certificates?.caller);
    if (!socket) return undefined;
    // A call with the token: those who have not presented it go for other reasons, too.
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

/** Stays at a core in each way in which nothing has to be said for that, until that is ended; who is cut off comes again. */
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
  // Looks are counted, not timed: in a core that stands still there are none.
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

/** How long anything stood still since a moment; milliseconds. */
function stoodStillMs(life: Life, begin: number): number {
  return life.history
    .of('disturbance')
    .filter(({ what, span }) => /stands still/.test(what) && span.end > begin)
    .reduce((sum, { span }) => sum + span.end - span.begin, 0);
}
