import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { newKeySecret } from '../../../common/rules/key-secret.ts';
import { times } from '../../support/builders.ts';
import { grpcCaller } from '../../support/grpc.ts';
import { type RawAnswer, takeAnswer } from '../../support/raw-http.ts';
import { LEADS } from '../../support/service.ts';
import { type KnownStudio, type Simulation, STUDIOS } from '../simulation.ts';
import { keyOf, lasting, one, studioAt } from './choices.ts';
import { aScenario } from './scenario.ts';
import { leadChoice, leadOf, sendRequest, textOf } from './website.ts';

const where = { url: fc.nat(2) };

/** The longest that a single request may wait while other clients hold what they can; milliseconds. */
const OTHER_CLIENT_WAITS_MS = 6000;

/** Many requests are pipelined on one connection, without waiting for responses. */
export const pipeline = aScenario({
  weight: 1,
  choice: fc.record({ count: fc.constantFrom(40, 300, 3000), reads: fc.boolean(), forMs: lasting(50, 3000), ...where }),
  run: (sim, { count, reads, forMs, url }) =>
    hold(sim, `${count} pipelined requests, ${reads ? 'read' : 'unread'}`, async (studio) => {
      const socket = await connection(one(sim.world.urls, url));
      if (!reads) socket.pause();
      const request = `GET ${LEADS}?limit=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${keyOf(studio, 0).secret}\r\n\r\n`;
      const answers = collect(socket);
      socket.write(request.repeat(count));
      const isOver = () => answers().length >= count || socket.destroyed;
      for (let waited = 0; waited < forMs + 5000 && !isOver(); waited += 50) {
        if (!reads && waited >= forMs) break;
        await sleep(50);
      }
      if (reads) {
        const wrong = answers().find(({ status }) => ![200, 401, 402, 403, 429, 503].includes(status));
        if (wrong) sim.history.fail(`a pipelined request is answered with ${wrong.status} ${wrong.body}`);
      }
      socket.destroy();
    }),
});

/** Connections begin a request and do not complete it. */
export const halfRequests = aScenario({
  weight: 1,
  choice: fc.record({
    count: fc.constantFrom(1, 20, 200),
    lead: leadChoice,
    share: fc.integer({ min: 1, max: 99 }),
    forMs: lasting(20, 3000),
    ...where,
  }),
  run: (sim, { count, lead, share, forMs, url }) =>
    hold(sim, `${count} incomplete requests (${share} %)`, async () => {
      const studio = studioAt(sim, lead.studio);
      const sent = leadOf(sim, studio, lead);
      const text = textOf({ name: 'create', lead: sent }, keyOf(studio, 0).secret);
      const part = text.slice(0, Math.floor((text.length * share) / 100));
      const sockets = await Promise.all(times(count, () => connection(one(sim.world.urls, url))));
      for (const socket of sockets) socket.resume().write(part);
      await sleep(forMs);
      for (const socket of sockets) socket.destroy();
    }),
});

/** Many requests with unknown keys. */
export const unknownKeys = aScenario({
  weight: 1,
  choice: fc.record({ count: fc.constantFrom(50, 500, 3000), ...where }),
  run: (sim, { count, url }) =>
    hold(sim, `${count} requests with unknown keys`, async () => {
      const address = one(sim.world.urls, url);
      await Promise.all(
        times(Math.min(count, 100), async (lane) => {
          // From an address of its own: what is refused to it must be refused to no other.
          const socket = await connection(address, '127.0.0.9');
          const answers = collect(socket);
          const own = Math.ceil(count / 100) + (lane % 2);
          for (let sent = 0; sent < own && !socket.destroyed; sent += 1) {
            socket.write(`GET ${LEADS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${newKeySecret()}\r\n\r\n`);
          }
          for (let waited = 0; waited < 10_000 && answers().length < own && !socket.destroyed; waited += 25)
            await sleep(25);
          const wrong = answers().find(({ status }) => ![401, 429, 503].includes(status));
          if (wrong) sim.history.fail(`an unknown key is answered with ${wrong.status} ${wrong.body}`);
          socket.destroy();
        }),
      );
    }),
});

/** Many clients watch the health of a core, with its token and without, and stay connected. */
export const watchHealth = aScenario({
  weight: 1,
  choice: fc.record({
    count: fc.constantFrom(5, 80),
    hasToken: fc.boolean(),
    core: fc.nat(1),
    forMs: lasting(50, 3000),
  }),
  run: (sim, { count, hasToken, core, forMs }) =>
    hold(sim, `${count} watchHealth ${hasToken ? 'with' : 'without'} the token`, async () => {
      const { host } = new URL(one(sim.world.coreUrls, core));
      const callers = times(Math.ceil(count / 8), () => grpcCaller(host));
      const authorization = hasToken ? `Bearer ${sim.world.coreToken}` : undefined;
      const calls = callers.flatMap((caller) =>
        times(8, () => {
          const call = caller.open('grpc.health.v1.Health/Watch', { authorization });
          call.on('error', () => {}).on('data', () => {});
          call.write({});
          call.end();
          return call;
        }),
      );
      await sleep(forMs);
      for (const call of calls) call.cancel();
      for (const caller of callers) caller.close();
    }),
});

/** Runs clients that hold what they can, while another client sends one request after the other and must be served. */
export async function hold(
  sim: Simulation,
  what: string,
  holds: (studio: KnownStudio) => Promise<void>,
): Promise<void> {
  let isOver = false;
  const otherClient = (async () => {
    // A studio that is used little.
    const studio = studioAt(sim, STUDIOS - 1);
    do {
      const begin = performance.now();
      const { secret } = keyOf(studio, 0);
      await sendRequest(sim, studio, secret, sim.world.urls[0] as string, {
        name: 'get',
        leadId: sim.uuid('unknown lead'),
      });
      const tookMs = Math.round(performance.now() - begin);
      if (tookMs > OTHER_CLIENT_WAITS_MS && !sim.isDisturbedSince(begin))
        sim.history.fail(`another client waits for ${tookMs} ms during ${what}`);
      await sleep(100);
    } while (!isOver);
  })();
  // A client that cannot connect, or is disconnected, holds nothing.
  await sim.overload(what, () =>
    holds(studioAt(sim, 0)).catch((error) => sim.history.note('holder', `${what}: ${error}`)),
  );
  isOver = true;
  await otherClient;
}

export async function connection(url: string, localAddress = '127.0.0.1'): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true, localAddress });
  await once(socket, 'connect');
  socket.on('error', () => {});
  return socket;
}

/** Collects what is received; the returned function gives the complete responses in it. */
function collect(socket: Socket) {
  const chunks: Buffer[] = [];
  const answers: RawAnswer[] = [];
  let known = 0;
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => {
    if (chunks.length > known) {
      known = chunks.length;
      let rest = Buffer.concat(chunks);
      for (let taken = takeAnswer(rest, false); taken; taken = takeAnswer(rest, false)) {
        answers.push(taken.answer);
        rest = taken.rest as typeof rest;
      }
      chunks.splice(0, chunks.length, rest);
      known = 1;
    }
    return answers;
  };
}
