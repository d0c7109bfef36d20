import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { FLAG, FRAME, frame, headerBlock, PREFACE } from '../../security/http2-wire.ts';
import { now } from '../history.ts';
import { type Simulation, STUDIOS } from '../simulation.ts';
import { one, studioAt } from './choices.ts';
import { requestPage, sessionWithoutRoom } from './core-callers.ts';

/** How late a busy machine may meet a deadline; milliseconds. */
const LATE_BY_MS = 20_000;

/**
 * After this time a client leaves: the connection will not be closed any more, whatever was suspended; milliseconds.
 */
const LEAVES_AFTER_MS = 130_000;

/** For how long clients that were cut off reconnect, and the delay before they do; milliseconds. */
const RECONNECTS_FOR_MS = 45_000;
const RECONNECT_DELAY_MS = 1000;

/** The fraction of the promised time before which a cut-off must have another cause. */
const IN_TIME = 0.7;

/** A client that holds a connection or a call that the core promises to close. */
interface HeldConnection {
  isOpen(): boolean;
  leave(): void;
}

/** A way of holding a connection. */
interface Method {
  readonly what: string;
  readonly closedWithinMs: number;
  /** The time before which only a disturbance closes it, if that is promised; milliseconds. */
  readonly openForMs?: number;
  /** Returns undefined if the client cannot hold anything. */
  open(sim: Simulation, url: string): Promise<HeldConnection | undefined>;
}

/** The core checks thirty times, a second apart, whether any part of a response is taken. */
const readsNothing: Method = {
  what: 'reads nothing of a response of a core',
  closedWithinMs: 31_000,
  async open(sim, url) {
    const session = sessionWithoutRoom(sim, url);
    const call = requestPage(sim, session, studioAt(sim, STUDIOS - 1).id).resume();
    const answered = once(call, 'response').then(([headers]) => headers[':status'] === 200);
    const isHeld = await Promise.race([answered, sleep(10_000, false)]).catch(() => false);
    const held = { isOpen: () => !call.closed && !session.destroyed, leave: () => session.destroy() };
    if (isHeld) return held;
    held.leave();
    return undefined;
  },
};

/**
 * The core checks every twenty seconds whether a connection has responded; it closes the connection at the third
 * check without a response.
 */
const answersNoPing: Method = {
  what: 'answers no ping of a core',
  closedWithinMs: 80_000,
  openForMs: 50_000,
  async open({ world }, url) {
    const socket = await unresponsiveConnection(url, world.certificates?.caller);
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

async function unresponsiveConnection(url: string, certificate: object | undefined): Promise<Socket | undefined> {
  const { hostname, port } = new URL(url);
  const address = { host: hostname, port: Number(port) };
  const socket = certificate ? connectTls({ ...address, ...certificate, ALPNProtocols: ['h2'] }) : connectTcp(address);
  socket.on('error', () => {}).resume();
  await once(socket, certificate ? 'secureConnect' : 'connect').catch(() => {});
  return socket.destroyed ? undefined : socket;
}

/**
 * Holds a connection to a core in each way that requires no further messages, until the core closes it; clients that
 * are cut off early reconnect.
 */
export async function holdCoreConnections(sim: Simulation): Promise<void> {
  await Promise.all([readsNothing, answersNoPing].map((method) => holdBy(sim, method)));
}

async function holdBy(sim: Simulation, method: Method): Promise<void> {
  const begin = now();
  for (let times = 0; now() - begin < RECONNECTS_FOR_MS; times += 1) {
    const url = one(sim.world.coreUrls, times);
    const held = await method.open(sim, url);
    if (held && (await heldForMs(sim, method, held)) >= IN_TIME * method.closedWithinMs) return;
    await sleep(RECONNECT_DELAY_MS);
  }
}

/** @returns for how long; milliseconds */
async function heldForMs(
  sim: Simulation,
  { what, closedWithinMs, openForMs = 0 }: Method,
  held: HeldConnection,
): Promise<number> {
  const begin = now();
  const forMs = () => now() - begin;
  // The core counts checks, not time: while it is suspended, it makes none.
  const isDue = () => forMs() > closedWithinMs + LATE_BY_MS + suspendedMs(sim, begin);
  while (held.isOpen() && forMs() < LEAVES_AFTER_MS && (!isDue() || sim.isDisturbedSince(now()))) await sleep(250);
  const tookMs = forMs();
  const state = held.isOpen() ? 'and is still connected' : 'and is disconnected';
  sim.history.note('slow client', `${what} for ${Math.round(tookMs)} ms, ${state}`, begin);
  if (held.isOpen() && isDue())
    sim.history.fail(`a client that ${what} is still connected after ${Math.round(tookMs)} ms`);
  if (tookMs < openForMs && !sim.isDisturbedSince(begin))
    sim.history.fail(`a client that ${what} is disconnected after only ${Math.round(tookMs)} ms`);
  held.leave();
  return tookMs;
}

/** Returns how long parts were suspended since a moment; milliseconds. */
function suspendedMs(sim: Simulation, begin: number): number {
  return sim.history
    .of('disturbance')
    .filter(({ what, span }) => /is suspended/.test(what) && span.end > begin)
    .reduce((sum, { span }) => sum + span.end - span.begin, 0);
}
