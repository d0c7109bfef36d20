import { once } from 'node:events';
import { connect as connectHttp2, constants, createServer, type ServerHttp2Stream } from 'node:http2';
import { Agent, request as httpsRequest } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { CoreToken, connectToCore as connectProcess } from '../../common/core-connection.ts';
import { Secret } from '../../common/secret.ts';
import { TlsCredentials } from '../../common/tls-credentials.ts';
import { Health, HealthCheckResponse_ServingStatus } from '../../proto/gen/health/v1/health_pb.ts';
import { LeadIntakeService } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { newId } from '../../src/domain/new-id.ts';
import { callBlock, FLAG, FRAME, frame, framesIn, opening, talk, wholeCall } from '../security/http2-wire.ts';
import { times } from '../support/builders.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import {
  aCreateLeadRequest,
  CORE_TOKEN,
  type GrpcCaller,
  grpcCaller,
  startTestCore,
  type TestCore,
} from '../support/grpc.ts';
import { createKey } from '../support/grpc-studios.ts';
import { createAt } from '../support/service.ts';
import { anAuthority, writeCertificate } from '../tools/certificates.ts';
import { temporaryFolder } from '../tools/processes.ts';
import { aGateway } from './a-gateway.ts';

/** The minimum of the setting, and the time after which a connection exceeds it; milliseconds. */
const MAX_AGE_MS = 1000;
const OLD_AFTER_MS = 1.1 * MAX_AGE_MS;

let core: TestCore;
let callers: GrpcCaller[] = [];

beforeAll(async () => {
  core = await startTestCore({ CORE_CONNECTION_MAX_AGE_MS: `${MAX_AGE_MS}`, CORE_REFLECTION: 'yes' });
});
afterAll(() => core.stop());
beforeEach(() => {
  callers = [];
  return () => {
    for (const caller of callers) caller.close();
  };
});

/** Returns a gRPC client with its own connection. */
function aCaller(): GrpcCaller {
  const caller = grpcCaller(`127.0.0.1:${core.port}`, undefined, { 'grpc.use_local_subchannel_pool': 1 });
  callers.push(caller);
  return caller;
}

describe('a connection that is old', () => {
  // @proves node-15
  test('an old connection gets a GOAWAY with its next call, and later streams are not processed', async () => {
    const { send, frames, socket } = await aWire();
    send(call(1));
    await expect.poll(() => endedStreams(frames())).toEqual([1]);
    expect(goAways(frames())).toEqual([]);
    await sleep(OLD_AFTER_MS);

    // An unfinished request keeps the connection open for now.
    send(frame(FRAME.headers, FLAG.endHeaders, 3, LIST), call(5));
    await expect.poll(() => endedStreams(frames())).toEqual([1, 5]);
    await expect.poll(() => goAways(frames())).toEqual([LAST_STREAM_ID]);
    // Simulates a call in flight: the caller has not acknowledged the GOAWAY yet.
    send(call(7));
    send(pong(frames()));
    await expect.poll(() => goAways(frames())).toEqual([LAST_STREAM_ID, 5]);
    expect(endedStreams(frames())).toEqual([1, 5]);
    expect(socket.destroyed).toBe(false);
  });

  // @proves node-16
  test('an old connection without calls in flight is closed, even if the caller does not close it', async () => {
    const { send, frames, closed } = await aWire();
    send(call(1));
    await expect.poll(() => endedStreams(frames())).toEqual([1]);
    await sleep(OLD_AFTER_MS);

    send(call(3));

    await closed;
    expect(endedStreams(frames())).toEqual([1, 3]);
    expect(goAways(frames()).at(-1)).toBe(3);
  });

  test('an old HTTP/1.1 connection is closed with the response to its next call', async () => {
    const { secure, ca } = await aSecureCore();
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca });
    onTestFinished(() => agent.destroy());
    const send = () =>
      new Promise<[status: number | undefined, connection: string | undefined]>((resolve, reject) => {
        const headers = { 'content-type': 'application/json', authorization: `Bearer ${CORE_TOKEN}` };
        const url = `https://localhost:${secure.port}/leadintake.v1.DirectoryService/ListStudios`;
        httpsRequest(url, { method: 'POST', agent, headers }, (response) => {
          response.resume().on('end', () => resolve([response.statusCode, response.headers.connection]));
        })
          .on('error', reject)
          .end('{}');
      });

    expect(await send()).toEqual([200, 'keep-alive']);
    await sleep(OLD_AFTER_MS);
    expect(await send()).toEqual([200, 'close']);
    expect(await send()).toEqual([200, 'keep-alive']);
  });
});

// @proves crashes-26
describe('on a connection that becomes old,', () => {
  // @proves crashes-26
  test.each(['1.1', '2'] as const)(
    'the core ends long calls on an old connection, even without other calls, over HTTP/%s',
    async (httpVersion) => {
      const { secure, ca } = await aSecureCore();
      const agent = new Agent({ keepAlive: true, maxSockets: 2, ca });
      onTestFinished(() => agent.destroy());
      const transport = createConnectTransport({
        baseUrl: `https://localhost:${secure.port}`,
        ...(httpVersion === '2' ? { httpVersion, nodeOptions: { ca } } : { httpVersion, nodeOptions: { agent } }),
      });
      const headers = { authorization: `Bearer ${CORE_TOKEN}` };
      const watching = [
        createClient(Health, transport).watch({}, { headers }),
        createClient(LeadIntakeService, transport).watchLeadChanges({}, { headers }),
      ].map(async (messages) => {
        for await (const _ of messages) {
          // The content does not matter.
        }
        return 'ended';
      });

      const all = Promise.all(watching);
      expect(await Promise.race([all, sleep(60_000, 'still open')])).toEqual(['ended', 'ended']);
      // The next call uses another connection and is served.
      const { status } = await createClient(Health, transport).check({}, { headers });
      expect(status).toBe(HealthCheckResponse_ServingStatus.SERVING);
    },
  );

  // @proves bounds-60
  test('an endless call without a token ends with its connection, though its client ignores GOAWAY', async () => {
    const { send, frames, socket, closed } = await aWire();
    const endless = (stream: number) => wholeCall(stream, callBlock('/grpc.health.v1.Health/Watch'), Buffer.alloc(5));
    send(endless(1));
    await expect.poll(() => endedStreams(frames())).toEqual([1]);
    for (let stream = 3; !socket.destroyed && stream < 100; stream += 2) {
      send(endless(stream));
      await sleep(100);
    }
    await closed;
  });

  test('on an old connection, an export continues to its end, and a watch of changes ends', async () => {
    const caller = aCaller();
    const { studioId } = (await createKey(caller)).owner;
    const request = () => aCreateLeadRequest(studioId, { note: NOTE });
    await Promise.all(times(400, () => caller.call('LeadIntakeService/CreateLead', request())));
    const { leads, directory, close } = connectToCore(core.url, CORE_TOKEN);
    onTestFinished(() => close());
    const exporting = leads.exportLeads({ studioId })[Symbol.asyncIterator]();
    let exported = (await exporting.next()).value.leads.length;
    const watching = (async () => {
      for await (const _ of leads.watchLeadChanges({})) {
        // Nothing is acknowledged, so nothing further comes.
      }
      return 'ended';
    })();
    await sleep(OLD_AFTER_MS);

    await directory.listStudios({});

    expect(await Promise.race([watching, sleep(60_000, 'still open')])).toBe('ended');
    await directory.listStudios({});
    for await (const message of { [Symbol.asyncIterator]: () => exporting }) exported += message.leads.length;
    expect(exported).toBe(400);
  });
});

// @proves crashes-26 connect-5
test('a gateway retries calls that an old connection refused unprocessed, without an error', async () => {
  // The core has the default age, so the one connection behind the front is not replaced.
  const young = await startTestCore();
  onTestFinished(() => young.stop());
  const refused = new Set<string>();
  const behind = connectHttp2(young.url);
  onTestFinished(() => behind.destroy());
  const front = createServer()
    .on('stream', (stream: ServerHttp2Stream, headers) => {
      const path = String(headers[':path']);
      stream.on('error', () => {});
      if (!refused.has(path)) {
        refused.add(path);
        return stream.close(constants.NGHTTP2_REFUSED_STREAM);
      }
      const { ':authority': _authority, ':scheme': _scheme, ...rest } = headers;
      const forward = behind.request(rest).on('error', () => {});
      forward.on('response', (head) => stream.respond(head, { waitForTrailers: false }));
      stream.pipe(forward).pipe(stream);
    })
    .on('session', (session) => onTestFinished(() => session.destroy()))
    .listen(0, '127.0.0.1');
  await once(front, 'listening');
  onTestFinished(() => void front.close());

  const { url } = await aGateway(`http://127.0.0.1:${(front.address() as AddressInfo).port}`);
  const clients = connectToCore(young.url, CORE_TOKEN);
  onTestFinished(() => clients.close());
  const { secret } = await arrangeStudio(clients);

  await expect.poll(async () => (await fetch(`${url}/readyz`)).status).toBe(200);
  expect((await createAt(url, secret)).status).toBe(201);
  expect([...refused].toSorted()).toEqual(['/grpc.health.v1.Health/Check', '/leadintake.v1.ExchangeService/Exchange']);
});

// @proves crashes-26 connect-5
test('a gateway or relay retries a call that crosses the GOAWAY, and it is processed once', async () => {
  const { port, crossing } = await aWayToTheCore();
  const caller = aCaller();
  const { studioId } = (await createKey(caller)).owner;
  const token = new CoreToken({ CORE_TOKEN: new Secret(CORE_TOKEN), coreTokenFile: undefined });
  const noFiles = new TlsCredentials({ ca: undefined, cert: undefined, key: undefined });
  const { transport, sessions } = connectProcess({ CORE_URL: `http://127.0.0.1:${port}` }, noFiles, token);
  onTestFinished(() => sessions.abort());
  const { createLead } = createClient(LeadIntakeService, transport);
  const aContact = () => ({ value: { case: 'email', value: `${newId()}@example.org` } }) as const;
  const headers = { authorization: `Bearer ${CORE_TOKEN}` };
  const create = () =>
    createLead({ studioId, idempotencyKey: newId(), displayName: 'Ada', contact: aContact() }, { headers });
  await create();
  await sleep(OLD_AFTER_MS);

  const goAwaySent = crossing();
  const last = create();
  await goAwaySent;
  await Promise.all([last, create()]);
  await create();

  const { leads } = await caller.call<{ leads: object[] }>('LeadIntakeService/ListLeads', { studioId });
  expect(leads).toHaveLength(4);
});

/**
 * Opens a way to the core for the current test. `crossing` holds back the core's bytes from the next GOAWAY until the
 * client begins another call, and resolves once it holds that GOAWAY.
 */
async function aWayToTheCore(): Promise<{ port: number; crossing: () => Promise<unknown> }> {
  let held: { readonly goAway: PromiseWithResolvers<void>; isSent: boolean; bytes: Buffer } | undefined;
  const has = (type: number, bytes: Buffer) => framesIn(bytes).some((each) => each.type === type);
  const way = createTcpServer({ noDelay: true }, (client) => {
    const server = connect({ port: core.port, host: '127.0.0.1', noDelay: true });
    client.on('data', (bytes: Buffer) => {
      server.write(bytes);
      if (!held?.isSent || !has(FRAME.headers, bytes)) return;
      client.write(held.bytes);
      held = undefined;
    });
    server.on('data', (bytes: Buffer) => {
      if (!held) return void client.write(bytes);
      held.bytes = Buffer.concat([held.bytes, bytes]);
      held.isSent = has(FRAME.goAway, held.bytes);
      if (held.isSent) held.goAway.resolve();
    });
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const)
      one.on('error', () => {}).on('close', () => other.destroy());
    onTestFinished(() => void client.destroy());
  }).listen(0, '127.0.0.1');
  await once(way, 'listening');
  onTestFinished(() => void way.close());
  const crossing = () => {
    held = { goAway: Promise.withResolvers(), isSent: false, bytes: Buffer.alloc(0) };
    return held.goAway.promise;
  };
  return { port: (way.address() as AddressInfo).port, crossing };
}

/** Long enough for an export of some leads to exceed the buffers of its connection. */
const NOTE = 'x'.repeat(2000);

const LAST_STREAM_ID = 2 ** 31 - 1;

/** Starts a core with TLS, which therefore also supports HTTP/1.1. */
async function aSecureCore(): Promise<{ secure: TestCore; ca: string }> {
  const authority = await anAuthority('The authority of the tests');
  const { cert, key } = writeCertificate(temporaryFolder(), 'core', await authority.issue('localhost', 'server'));
  const secure = await startTestCore({
    CORE_CONNECTION_MAX_AGE_MS: `${MAX_AGE_MS}`,
    CORE_TLS_CERT_FILE: cert,
    CORE_TLS_KEY_FILE: key,
  });
  onTestFinished(() => secure.stop());
  return { secure, ca: authority.cert };
}

/** A raw connection of frames, without automatic replies. */
const aWire = () => talk(core.port, opening());

type Frames = ReturnType<typeof framesIn>;

const LIST = callBlock('/leadintake.v1.DirectoryService/ListStudios', { authorization: `Bearer ${CORE_TOKEN}` });

/** Returns a call with an empty request, which gets a response. */
const call = (stream: number) => wholeCall(stream, LIST, Buffer.alloc(5));

/** Returns the acknowledgement of the last ping. */
const pong = (frames: Frames): Buffer =>
  frame(FRAME.ping, FLAG.ack, 0, frames.findLast(({ type }) => type === FRAME.ping)?.payload);

/** Returns the streams whose responses are complete. */
const endedStreams = (frames: Frames): number[] =>
  frames
    .filter(({ type, flags }) => (type === FRAME.data || type === FRAME.headers) && flags & FLAG.endStream)
    .map(({ stream }) => stream);

/** Returns the last stream id of each GOAWAY frame. */
const goAways = (frames: Frames): number[] =>
  frames.filter(({ type }) => type === FRAME.goAway).map(({ payload }) => payload.readUInt32BE(0));
