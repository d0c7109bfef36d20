import { once } from 'node:events';
import { connect as connectHttp2, constants } from 'node:http2';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { framed } from '../security/http2-wire.ts';
import { times } from '../support/builders.ts';
import { aCreateLeadRequest, CORE_TOKEN, grpcCaller, requestBytes } from '../support/grpc.ts';
import { lines } from '../support/raw-http.ts';
import { type RunningProcess, readAddress, run, temporaryFolder } from '../tools/processes.ts';

const PATHS = [
  '/docs',
  '/docs/assets/scalar.js',
  '/docs/assets/reference.js',
  '/v1/openapi.json',
  '/healthz',
  '/v1/integrations/leads',
];

/** Returns the warnings and errors of a process. */
const loudLines = (running: RunningProcess, isExpected?: RegExp) =>
  running
    .output()
    .split('\n')
    .filter((line) => /"level":[456]0/.test(line) && !isExpected?.test(line));

// @proves hostile-12
test('clients that disconnect during any kind of response cause no warnings or errors in the log', async () => {
  const gateway = run('gateway/main.ts', { env: { CORE_URL: 'http://127.0.0.1:1' } });
  const { hostname, port, origin } = new URL(await readAddress(gateway));
  for (const path of [...PATHS, '/nothing']) {
    await Promise.all(
      times(40, async (count) => {
        const socket = connect({ host: hostname, port: Number(port) });
        socket.on('error', () => {});
        socket.write(lines(`GET ${path} HTTP/1.1`, 'Host: leads', ''));
        await once(socket, count % 2 ? 'data' : 'connect');
        socket.resetAndDestroy();
      }),
    );
  }
  expect((await fetch(`${origin}/healthz`)).status).toBe(200);
  expect(loudLines(gateway, /not ready/)).toEqual([]);
});

/** A page of several HTTP/2 windows, a stream of as many, an endless stream, and a refusal. */
const CALLS = ['ListLeads', 'ExportLeads', 'WatchLeadChanges', 'GetLead'];

/** The number of pieces of a response that a caller receives before it disconnects. */
const LEAVES_AT = [0, 1, 5];

// @proves hostile-12
test('callers that leave a core during a response cause no warnings or errors in its log', async () => {
  const env = { CORE_TOKEN, DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}` };
  const core = run('src/main.ts', { env });
  const { origin, host } = new URL(await readAddress(core));
  const caller = grpcCaller(host);
  const studio = { id: 'studio', status: 'STUDIO_STATUS_ACTIVE' };
  await caller.call('DirectoryService/PutStudio', { studio });
  const creation = () => aCreateLeadRequest(studio.id, { note: 'x'.repeat(2000) });
  await Promise.all(times(200, () => caller.call('LeadIntakeService/CreateLead', creation())));

  for (const method of CALLS) {
    const rpc = `LeadIntakeService/${method}`;
    const message = requestBytes(rpc, { studioId: studio.id, pageSize: 100 });
    const bodies = {
      'application/grpc': framed(message),
      'application/grpc-web+proto': framed(message),
      ...(/^(?:List|Get)/.test(method)
        ? { 'application/proto': message }
        : { 'application/connect+proto': framed(message) }),
    };
    for (const [type, body] of Object.entries(bodies)) {
      const head = { 'content-type': type, authorization: `Bearer ${CORE_TOKEN}` };
      await Promise.all(
        LEAVES_AT.flatMap((pieces) =>
          [true, false].map((isReset) => leave(`/leadintake.v1.${rpc}`, head, body, pieces, isReset)),
        ),
      );
    }
  }
  await caller.call('LeadIntakeService/ListLeads', { studioId: studio.id });
  caller.close();
  expect(loudLines(core)).toEqual([]);
  // A stop waits for the end of each call.
  core.child.kill('SIGTERM');
  expect(await core.ended()).toBe(0);
  const logged = new Set([...core.output().matchAll(/"operation":"(\w+)"/g)].map(([, operation]) => operation));
  expect(CALLS.filter((method) => !logged.has(method))).toEqual([]);
  expect(loudLines(core)).toEqual([]);

  /** Calls over HTTP/2, then resets the call or its connection after some pieces of the response. */
  async function leave(path: string, head: object, body: Uint8Array, pieces: number, isReset: boolean): Promise<void> {
    const session = connectHttp2(origin);
    session.on('error', () => {});
    const stream = session.request({ ':method': 'POST', ':path': path, ...head });
    stream.on('error', () => {});
    stream.end(body);
    let left = pieces;
    const isLeft = Promise.withResolvers<void>();
    const piece = () => (left-- > 0 ? undefined : isLeft.resolve());
    for (const event of ['response', 'data', 'end']) stream.on(event, piece);
    stream.on('close', isLeft.resolve);
    if (pieces === 0) session.ping(() => isLeft.resolve());
    await isLeft.promise;
    if (isReset) stream.close(constants.NGHTTP2_CANCEL);
    session.destroy();
  }
});
