import { mkdtempSync, rmSync } from 'node:fs';
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { framed, onStream } from '../security/http2-wire.ts';
import { CORE_TOKEN, requestBytes } from '../support/grpc.ts';
import { growth, scrape } from '../support/metrics.ts';
import { type RunningProcess, readAddress, start } from '../tools/processes.ts';

let folder: string;
let core: RunningProcess;
let session: ClientHttp2Session;
let metricsUrl: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  const env = { CORE_TOKEN, CORE_METRICS_ADDRESS: '127.0.0.1:0', DATABASE_URL: `sqlite:${join(folder, 'leads.db')}` };
  core = start('src/main.ts', { env });
  session = connect(await readAddress(core));
  [, metricsUrl = ''] = await core.printed(/(http:\/\/[0-9.:]+\/metrics)/);
});
afterAll(async () => {
  session?.destroy();
  await core?.kill();
  rmSync(folder, { recursive: true, force: true });
});

interface Protocol {
  readonly contentType: string;
  readonly isJson: boolean;
  /** Whether messages are in frames, which contain whether they are compressed. */
  readonly hasFrames: boolean;
  /** The header that names the compression of messages. */
  readonly encoding: string;
  readonly deadline: string;
}

const GRPC = { hasFrames: true, encoding: 'grpc-encoding', deadline: 'grpc-timeout' };
const UNARY = { hasFrames: false, encoding: 'content-encoding', deadline: 'connect-timeout-ms' };
const STREAM = { hasFrames: true, encoding: 'connect-content-encoding', deadline: 'connect-timeout-ms' };

/** The protocols of methods with one response. */
const OF_CALLS: readonly Protocol[] = [
  { contentType: 'application/grpc', isJson: false, ...GRPC },
  { contentType: 'application/grpc-web+json', isJson: true, ...GRPC },
  { contentType: 'application/proto', isJson: false, ...UNARY },
  { contentType: 'application/json', isJson: true, ...UNARY },
];

/** The protocols of streams. */
const OF_STREAMS: readonly Protocol[] = [
  ...OF_CALLS.filter(({ hasFrames }) => hasFrames),
  { contentType: 'application/connect+proto', isJson: false, ...STREAM },
  { contentType: 'application/connect+json', isJson: true, ...STREAM },
];

/** A method with one response, and a stream. */
const METHODS = [
  ['LeadIntakeService/GetLead', OF_CALLS],
  ['ExchangeService/Exchange', OF_STREAMS],
] as const;

const valid = ({ isJson }: Protocol) =>
  isJson
    ? Buffer.from('{"studioId":"studio-1"}')
    : Buffer.from(requestBytes('LeadIntakeService/GetLead', { studioId: 'studio-1' }));

interface Sent {
  readonly body: Buffer;
  readonly headers?: OutgoingHttpHeaders;
}

/** Puts a message into a frame if the protocol has frames. */
const inFrame = (bytes: Buffer, { hasFrames }: Protocol, flag = 0) => (hasFrames ? framed(bytes, { flag }) : bytes);

/** Every way in which a message can be unreadable. */
const FAULTS: Readonly<Record<string, (protocol: Protocol) => Sent>> = {
  'text that is not UTF-8': (protocol) => ({
    body: inFrame(Buffer.from(protocol.isJson ? '7b2273747564696f4964223a22ff227d' : '0a0361ff62', 'hex'), protocol),
  }),
  'a message that ends in the middle': (protocol) => ({ body: inFrame(valid(protocol).subarray(0, -3), protocol) }),
  'a field of another type': (protocol) => ({
    body: inFrame(protocol.isJson ? Buffer.from('{"studioId":[1],"items":1}') : Buffer.from('0b', 'hex'), protocol),
  }),
  'compressed data that ends in the middle': (protocol) => ({
    body: inFrame(gzipSync(valid(protocol)).subarray(0, -9), protocol, 1),
    headers: { [protocol.encoding]: 'gzip' },
  }),
  'uncompressed data, declared as compressed': (protocol) => ({
    body: inFrame(valid(protocol), protocol, 1),
    headers: { [protocol.encoding]: 'gzip' },
  }),
  'more than may be read, after decompression': (protocol) => ({
    body: inFrame(gzipSync(Buffer.alloc(2_000_000, ' ')), protocol, 1),
    headers: { [protocol.encoding]: 'gzip' },
  }),
  'more than may be read': (protocol) => ({ body: inFrame(Buffer.alloc(1_100_000, ' '), protocol) }),
  'an unknown compression': (protocol) => ({
    body: inFrame(valid(protocol), protocol),
    headers: { [protocol.encoding]: 'zip' },
  }),
  'an invalid deadline': (protocol) => ({
    body: inFrame(valid(protocol), protocol),
    headers: { [protocol.deadline]: 'soon' },
  }),
};

const CASES = METHODS.flatMap(([method, protocols]) =>
  protocols.flatMap((protocol) => Object.keys(FAULTS).map((fault) => ({ method, protocol, fault }))),
);

/** Sends a request, and checks that it is refused, logged and counted once. */
async function expectRefused(method: string, headers: OutgoingHttpHeaders, body: Buffer): Promise<void> {
  const [before, length] = [await scrape(metricsUrl), core.output().length];
  const all = { authorization: `Bearer ${CORE_TOKEN}`, 'x-request-id': 'the-request', ...headers };
  const { text } = await onStream(session, all, body);

  // The status is in the trailers, at the end of a stream, or in the HTTP status.
  expect(text).toMatch(/grpc-status"?: ?"?3\b|"code":"invalid_argument"|":status":400/);
  const name = method.split('/')[1];
  const lines = () => core.output().slice(length).split('\n').filter(Boolean);
  const logged = () => lines().map((line) => JSON.parse(line));
  await expect.poll(() => logged()).toHaveLength(1);
  expect(logged()).toMatchObject([{ operation: name, outcome: 'INVALID_REQUEST', requestId: 'the-request' }]);
  const series = `lead_intake_core_call_duration_seconds_count{operation="${name}",outcome="INVALID_REQUEST"}`;
  expect(growth(before, await scrape(metricsUrl))[series]).toBe(1);
}

describe('a message that cannot be read', () => {
  // @proves connect-9
  test.each(CASES)(
    'an unreadable message is INVALID_REQUEST: $fault, $method, $protocol.contentType',
    async ({ method, protocol, fault }) => {
      const { body, headers } = (FAULTS[fault] as (typeof FAULTS)[string])(protocol);
      const path = `/leadintake.v1.${method}`;
      const all = { ':method': 'POST', ':path': path, 'content-type': protocol.contentType, ...headers };
      await expectRefused(method, all, body);
    },
  );

  // @proves connect-9
  test.each([
    ['invalid base64', 'encoding=proto&base64=1&message=!!!'],
    ['a message that ends in the middle', 'encoding=proto&base64=1&message=Cgk'],
    ['text that is not JSON', 'encoding=json&message=%7B'],
    ['an unknown compression', 'encoding=json&message=%7B%7D&compression=zip'],
    ['uncompressed data', 'encoding=json&message=%7B%7D&compression=gzip'],
  ])('an unreadable message is INVALID_REQUEST, logged and counted once: %s, by GET', async (_, query) => {
    const method = 'LeadIntakeService/GetLead';
    const path = `/leadintake.v1.${method}?connect=v1&${query}`;
    await expectRefused(method, { ':method': 'GET', ':path': path }, Buffer.alloc(0));
  });
});

test('an import that is partly refused is answered in JSON with the reasons', async () => {
  const call = (method: string, request: object) => {
    const head = { ':method': 'POST', ':path': `/leadintake.v1.${method}`, 'content-type': 'application/json' };
    const all = { ...head, authorization: `Bearer ${CORE_TOKEN}` };
    return onStream(session, all, Buffer.from(JSON.stringify(request)));
  };
  await call('DirectoryService/PutStudio', { studio: { id: 'studio-1', status: 'STUDIO_STATUS_ACTIVE' } });
  const { status, text } = await call('LeadIntakeService/ImportLeads', { studioId: 'studio-1', leads: [{}] });
  expect(status).toBe(200);
  expect(text).toContain('"reason":"INVALID_REQUEST"');
});
