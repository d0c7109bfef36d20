import { type ClientHttp2Session, type ClientHttp2Stream, connect, type Settings } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { MAX_UNAUTHENTICATED_CONNECTIONS } from '../../../src/port/connections.ts';
import { framed, onStream, PREFACE } from '../../security/http2-wire.ts';
import { times } from '../../support/builders.ts';
import { requestBytes } from '../../support/grpc.ts';
import { now } from '../history.ts';
import { CRM_TIMEOUT, type KnownStudio, type Simulation } from '../simulation.ts';
import { lasting, one } from './choices.ts';
import { connection, hold } from './resource-holders.ts';
import { aScenario } from './scenario.ts';

/** The number of calls in flight on one connection. */
const CALLS = 50;

/**
 * The time within which a connection that must be closed is closed; milliseconds. A core takes a quarter of a second.
 */
const CLOSED_WITHIN_MS = 2500;

/** The longest message that a core reads; bytes. */
const MAX_MESSAGE = 64 * 1024;

/** The gRPC status of an unauthenticated call. */
const UNAUTHENTICATED = 16;

const GRPC = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' };
const LIST = '/leadintake.v1.LeadIntakeService/ListLeads';

/** A complete call. */
interface WholeCall {
  readonly path: string;
  readonly message: Buffer;
  /** Calls without a token are allowed; a wrong token is still refused. */
  readonly isForAll?: boolean;
}

const CALLS_WITHOUT_TOKEN: Readonly<Record<string, WholeCall>> = {
  'the health': { path: '/grpc.health.v1.Health/Check', message: framed(Buffer.alloc(0)), isForAll: true },
  'a page of leads': { path: LIST, message: framed(requestBytes('LeadIntakeService/ListLeads', { studioId: 'x' })) },
  'the keys of a studio': {
    path: '/leadintake.v1.ApiKeyService/ListApiKeys',
    message: framed(requestBytes('ApiKeyService/ListApiKeys', { studioId: 'x', memberId: 'owner' })),
  },
  'the list of services': {
    path: '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
    // A request for the list of services.
    message: framed(Buffer.of(0x3a, 0)),
  },
};

/** A client with the token requests many pages and reads none of them. */
export const unreadPages = aScenario({
  weight: 1,
  choice: fc.record({ connections: fc.constantFrom(1, 5, 30), core: fc.nat(1), forMs: lasting(50, 3000) }),
  run: (sim, { connections, core, forMs }) =>
    hold(sim, `${connections * CALLS} calls of a core with unread responses`, async (studio) => {
      const sessions = times(connections, () => callers(sim, one(sim.world.coreUrls, core), studio));
      await sleep(forMs);
      for (const session of sessions) session.destroy();
    }),
});

/** A client without the token opens more connections to a core than it allows for unauthenticated clients. */
export const stayUnauthenticated = aScenario({
  weight: 1,
  choice: fc.record({
    count: fc.constantFrom(20, 300),
    sends: fc.constantFrom('nothing', 'an HTTP/2 preface', 'an invalid preface'),
    core: fc.nat(1),
    forMs: lasting(50, 3000),
  }),
  run: (sim, { count, sends, core, forMs }) =>
    hold(sim, `${count} connections to a core that send ${sends}`, async () => {
      const begin = now();
      const url = one(sim.world.coreUrls, core);
      const sockets = await Promise.all(times(count, () => connection(url)));
      for (const socket of sockets) {
        socket.resume();
        if (sends === 'an HTTP/2 preface') socket.write(PREFACE);
        if (sends === 'an invalid preface') socket.write(Buffer.alloc(200, 'x'));
      }
      await sleep(count > MAX_UNAUTHENTICATED_CONNECTIONS ? Math.max(forMs, CLOSED_WITHIN_MS) : forMs);
      const open = sockets.filter(({ destroyed }) => !destroyed).length;
      if (open > MAX_UNAUTHENTICATED_CONNECTIONS && !sim.isDisturbedSince(begin))
        sim.history.fail(
          `${open} unauthenticated connections to a core, with a limit of ${MAX_UNAUTHENTICATED_CONNECTIONS}`,
        );
      for (const socket of sockets) socket.destroy();
    }),
});

/** A client without the token calls methods that require it, and checks whether the core then closes the connection. */
export const withoutToken = aScenario({
  weight: 1,
  choice: fc.record({
    call: fc.constantFrom(...Object.keys(CALLS_WITHOUT_TOKEN)),
    token: fc.boolean(),
    core: fc.nat(1),
  }),
  async run(sim, { call, token, core }) {
    const begin = now();
    const session = sessionTo(one(sim.world.coreUrls, core));
    const { path, message, isForAll = false } = CALLS_WITHOUT_TOKEN[call] as WholeCall;
    const headers = {
      ...GRPC,
      ':path': path,
      ...((token || isForAll) && { authorization: `Bearer ${sim.uuid('wrong token')}` }),
    };
    const outcome = await Promise.race([onStream(session, headers, message), sleep(CLOSED_WITHIN_MS)]);
    if (outcome?.grpcStatus === 0) sim.history.fail(`a core answers ${call} without its token: ${outcome.text}`);
    const isRefused = outcome?.grpcStatus === UNAUTHENTICATED && !isForAll;
    for (let waited = 0; isRefused && waited < CLOSED_WITHIN_MS && !session.destroyed; waited += 50) await sleep(50);
    if (isRefused && !session.destroyed && !sim.isDisturbedSince(begin))
      sim.history.fail('a connection to a core stays open after a call without its token');
    session.destroy();
  },
});

/** A client with the token sends a message that exceeds the maximum length and is otherwise valid. */
export const longMessage = aScenario({
  weight: 1,
  choice: fc.record({ core: fc.nat(1), length: fc.constantFrom(MAX_MESSAGE + 1, 3 * MAX_MESSAGE) }),
  async run(sim, { core, length }) {
    const session = sessionTo(one(sim.world.coreUrls, core));
    const authorization = `Bearer ${sim.world.coreToken}`;
    const headers = { ...GRPC, ':path': LIST, 'content-type': 'application/grpc+json', authorization };
    const message = JSON.stringify({ studioId: sim.studios[0]?.id }).padEnd(length);
    const outcome = await Promise.race([
      onStream(session, headers, framed(Buffer.from(message))),
      sleep(CRM_TIMEOUT.timeoutMs),
    ]);
    if (outcome?.grpcStatus === 0) sim.history.fail(`a core reads a message of ${length} bytes`);
    session.destroy();
  },
});

function sessionTo(url: string, settings: Settings = {}): ClientHttp2Session {
  const session = connect(url, { settings });
  session.on('error', () => {});
  return session;
}

/** Opens a connection with a window of 0 bytes for responses, and requests pages of leads repeatedly. */
function callers(sim: Simulation, url: string, { id: studioId }: KnownStudio): ClientHttp2Session {
  const session = sessionWithoutRoom(url);
  for (const _ of times(CALLS, () => 0)) requestPage(sim, session, studioId);
  return session;
}

/** Opens a connection with a window of 0 bytes for responses. */
export const sessionWithoutRoom = (url: string): ClientHttp2Session => sessionTo(url, { initialWindowSize: 0 });

/** Requests a page of leads on the connection. */
export function requestPage({ world }: Simulation, session: ClientHttp2Session, studioId: string): ClientHttp2Stream {
  const call = session.request({
    ':method': 'POST',
    ':path': LIST,
    'content-type': 'application/json',
    authorization: `Bearer ${world.coreToken}`,
  });
  call.on('error', () => {});
  call.end(JSON.stringify({ studioId, pageSize: 100, view: 'LEAD_VIEW_FULL' }));
  return call;
}
