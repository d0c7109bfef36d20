import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { now } from '../history.ts';
import type { Life } from '../life.ts';
import { one } from './choices.ts';
import { aHappening } from './happening.ts';
import { connection } from './holders.ts';

/** What is answered at once, without a look at anything; so short that so many are read at a time. */
const REQUEST = 'GET / HTTP/1.1\r\nHost:x\r\n\r\n';
const ONE_READ = 2400;

/** More than may wait on all connections. */
const MORE_THAN_WAIT = 30_000;

const ANSWER = 'HTTP/1.1 ';

/** How long answers to all of a packet may take; milliseconds. */
const ANSWERED_WITHIN_MS = 60_000;

/** How many of a packet may be answered before somebody who came at the same time with one: a connection is one caller. */
const MOST_BEFORE_ANOTHER = 1000;

/** A packet of requests on one connection, whose answers are read, and one request on another. */
export const packet = aHappening({
  weight: 1,
  choice: fc.record({ count: fc.constantFrom(300, ONE_READ, MORE_THAN_WAIT), url: fc.nat(2) }),
  happen: (life, { count, url }) =>
    life.crowd(`a packet of ${count} requests`, async () => {
      const begin = now();
      const address = one(life.world.urls, url);
      const sockets = await Promise.all([connection(address), connection(address)]).catch(() => undefined);
      if (!sockets) return;
      const [many, another] = sockets;
      let [answered, before, rest] = [0, Number.NaN, ''];
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
      for (let waited = 0; Number.isNaN(before) && !another.destroyed && waited < 5000; waited += 50) await sleep(50);
      for (const socket of sockets) socket.destroy();
      if (life.isDisturbedSince(begin)) return;
      const what = `of a packet of ${count} requests`;
      if (answered < count) life.history.breaks(`${what} ${answered} are answered`);
      // Of a longer one the other request may be read long after its begin.
      if (count <= ONE_READ && !(before <= MOST_BEFORE_ANOTHER))
        life.history.breaks(`${what} ${before} are answered before one on another connection`);
    }),
});

/** Packets of both kinds once nothing disturbs them: else that may be why they are not answered in order. */
export async function lastPackets(life: Life): Promise<void> {
  for (const count of [ONE_READ, MORE_THAN_WAIT] as const) await packet.happen(life, { count, url: 0 });
}
