import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { now } from '../history.ts';
import type { Simulation } from '../simulation.ts';
import { one } from './choices.ts';
import { connection } from './resource-holders.ts';
import { aScenario, onRealMachine } from './scenario.ts';

/**
 * A request that is answered immediately, without any I/O, and the number of such requests that fit in one read,
 * because each is so short.
 */
const REQUEST = 'GET / HTTP/1.1\r\nHost:x\r\n\r\n';
const ONE_READ = 2400;

/** More than the pending requests allowed on all connections. */
const MORE_THAN_WAIT = 30_000;

const ANSWER = 'HTTP/1.1 ';

/** How long responses to a whole packet may take; milliseconds. */
const ANSWERED_WITHIN_MS = 60_000;

/** On a busy machine a concurrent request may be read after a whole packet was answered, but not every time. */
const TRIES = 4;

/** A packet of requests on one connection, whose responses are read, and one request on another. */
export const packet = aScenario({
  ...onRealMachine,
  weight: 1,
  choice: fc.record({ count: fc.constantFrom(300, ONE_READ, MORE_THAN_WAIT), url: fc.nat(2) }),
  async run(sim, { count, url }) {
    const what = `of a packet of ${count} requests`;
    for (let tries = 1; tries <= TRIES; tries += 1) {
      const outcome = await answersTo(sim, count, one(sim.world.urls, url));
      if (!outcome) return;
      if (outcome.answered < count) sim.history.fail(`${what} ${outcome.answered} are answered`);
      // A connection counts as one caller among many. With a longer packet the other request may be read long after
      // the packet has begun.
      if (count > ONE_READ || outcome.before < count) return;
    }
    sim.history.fail(`${what} all are answered before one on another connection, ${TRIES} times`);
  },
});

/**
 * Returns how many requests of a packet were answered, and how many before the other connection's request; undefined
 * if something else interfered.
 */
async function answersTo(
  sim: Simulation,
  count: number,
  address: string,
): Promise<{ readonly answered: number; readonly before: number } | undefined> {
  const begin = now();
  let isConnected = false;
  let [answered, before, rest] = [0, Number.POSITIVE_INFINITY, ''];
  await sim.overload(`a packet of ${count} requests`, async () => {
    const sockets = await Promise.all([connection(address), connection(address)]).catch(() => undefined);
    if (!sockets) return;
    isConnected = true;
    const [many, another] = sockets;
    const all = new Promise<void>((resolve) => {
      many.on('data', (chunk) => {
        const parts = (rest + chunk.toString('latin1')).split(ANSWER);
        answered += parts.length - 1;
        rest = (parts.at(-1) ?? '').slice(1 - ANSWER.length);
        if (answered >= count) resolve();
      });
      many.on('close', resolve);
    });
    another.once('data', () => {
      before = answered;
    });
    many.write(REQUEST.repeat(count));
    another.write(REQUEST);
    await Promise.race([all, sleep(ANSWERED_WITHIN_MS, undefined, { ref: false })]);
    const isOpen = () => before === Number.POSITIVE_INFINITY && !another.destroyed;
    for (let waited = 0; isOpen() && waited < 5000; waited += 50) await sleep(50);
    for (const socket of sockets) socket.destroy();
  });
  return isConnected && !sim.isDisturbedSince(begin) ? { answered, before } : undefined;
}

/** Sends packets of both kinds once nothing disturbs the service: a disturbance could change the order of responses. */
export async function lastPackets(sim: Simulation): Promise<void> {
  for (const count of [ONE_READ, MORE_THAN_WAIT] as const) await packet.run(sim, { count, url: 0 });
}
