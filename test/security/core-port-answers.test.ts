import { once } from 'node:events';
import { connect, type OutgoingHttpHeaders } from 'node:http2';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { MAX_CALLS_PER_CONNECTION } from '../../src/port/connection.ts';
import { times } from '../support/builders.ts';
import { CORE_TOKEN, startTestCore } from '../support/grpc.ts';
import { growth, scrape } from '../support/metrics.ts';
import { destroyAfterAll, sendSlowly } from '../support/slow-sender.ts';
import { anAuthority, writeCertificate } from '../tools/certificates.ts';
import { type RunningProcess, readAddress, sharedFolder, start } from '../tools/processes.ts';
import { callBlock, FLAG, FRAME, frame, framesIn, onStream, opening, wire } from './http2-wire.ts';

const LIST = '/leadintake.v1.LeadIntakeService/ListLeads';
const EXCHANGE = '/leadintake.v1.ExchangeService/Exchange';

/** A core with TLS, which supports HTTP/1.1 as well. */
const folder = sharedFolder();
let core: RunningProcess;
let port: number;
let metricsUrl: string;
let ca: string;

beforeAll(async () => {
  const authority = await anAuthority('The authority of the tests');
  const { cert, key } = writeCertificate(folder(), 'core', await authority.issue('localhost', 'server'));
  ca = authority.cert;
  core = start('src/main.ts', {
    env: {
      CORE_TOKEN,
      CORE_TLS_CERT_FILE: cert,
      CORE_TLS_KEY_FILE: key,
      CORE_METRICS_ADDRESS: '127.0.0.1:0',
      DATABASE_URL: `sqlite:${join(folder(), 'leads.db')}`,
    },
  });
  port = Number(new URL(await readAddress(core)).port);
  [, metricsUrl = ''] = await core.printed(/(http:\/\/[0-9.:]+\/metrics)/);
});
afterAll(() => core?.kill());

/** Returns the outcomes that are logged and counted for what is done, which has some, and other output of the process. */
async function observed(act: () => Promise<unknown>, outcomes = 1) {
  const [before, length] = [await scrape(metricsUrl), core.output().length];
  await act();
  const lines = () => core.output().slice(length).split('\n').filter(Boolean);
  const logged = () => lines().filter((line) => line.includes('"outcome"')).length;
  await expect.poll(logged).toBeGreaterThanOrEqual(outcomes);
  const after = await scrape(metricsUrl);
  const all = lines().flatMap((line) => (line.startsWith('{') ? [JSON.parse(line).outcome ?? []].flat() : [line]));
  const counted = Object.entries(growth(before, after)).flatMap(([series, by]) => {
    const [, outcome] = /^lead_intake_core_call_duration_seconds_count\{.*outcome="(\w+)"/.exec(series) ?? [];
    return outcome ? Array<string>(by).fill(outcome) : [];
  });
  return { logged: all, counted };
}

const destroyAtLast = destroyAfterAll();

/** A connection over TLS. */
async function aSocket(protocol: 'h2' | 'http/1.1', options: { readonly allowHalfOpen?: boolean } = {}) {
  const socket = connectTls({ host: 'localhost', port, ca, ALPNProtocols: [protocol], ...options });
  socket.on('error', () => {});
  destroyAtLast(socket);
  await once(socket, 'secureConnect');
  return socket;
}

const onceAs = (outcome: string) => ({ logged: [outcome], counted: [outcome] });

const POST = { ':method': 'POST', ':path': LIST, 'content-type': 'application/grpc', te: 'trailers' };

/** Every way to get an answer over HTTP/2: what Node answers by itself, what the library does, and what we do. */
const OVER_HTTP2: readonly [what: string, headers: OutgoingHttpHeaders][] = [
  ['an ordinary call', {}],
  ['an unknown expectation', { expect: 'x' }],
  ['CONNECT', { ':method': 'CONNECT', ':authority': 'x:1', ':path': undefined, ':scheme': undefined }],
  ['broken percent-encoding', { ':path': '/%zz' }],
  ['*', { ':method': 'OPTIONS', ':path': '*' }],
  ['an unknown method of HTTP', { ':method': 'FROB' }],
  ...['GET', 'HEAD', 'OPTIONS', 'PRI'].map(
    (method) => [method, { ':method': method }] as [string, OutgoingHttpHeaders],
  ),
  ['another content type', { 'content-type': 'application/xml' }],
  ['a content type that is none', { 'content-type': 'json' }],
  ['a path with an encoded letter', { ':path': LIST.replace('s', '%73') }],
  ['a path with a slash at its end', { ':path': `${LIST}/` }],
  ['a call in Connect', { 'content-type': 'application/json' }],
  ['a stream as a unary call', { ':path': EXCHANGE, 'content-type': 'application/json' }],
  ['an authority that is no host', { ':authority': 'ipv4:a:1,b:2' }],
  ['an unknown compression', { 'grpc-encoding': 'zip' }],
];

const lines = (...all: string[]) => `${all.join('\r\n')}\r\n\r\n`;
const HOST = 'Host: core';

/** Every way to get an answer over HTTP/1.1. */
const OVER_HTTP1: readonly [what: string, request: string, outcome?: string][] = [
  ['an unknown expectation', lines(`POST ${LIST} HTTP/1.1`, HOST, 'Expect: x', 'Content-Length: 0')],
  ['CONNECT', lines('CONNECT x:1 HTTP/1.1', HOST)],
  ['an upgrade to a WebSocket', lines('GET / HTTP/1.1', HOST, 'Connection: Upgrade', 'Upgrade: websocket')],
  ['broken percent-encoding', lines('GET /%zz HTTP/1.1', HOST)],
  ['a whole address as the path', lines(`POST https://core${LIST} HTTP/1.1`, HOST, 'Content-Length: 0')],
  ['a stream that needs HTTP/2', lines(`POST ${EXCHANGE} HTTP/1.1`, HOST, 'Content-Length: 0')],
  ['another content type', lines(`POST ${LIST} HTTP/1.1`, HOST, 'Content-Type: text/xml', 'Content-Length: 0')],
  ['what is not HTTP', 'EHLO x\r\n\r\n', 'INVALID_REQUEST'],
  ['a head that is too long', lines('GET / HTTP/1.1', HOST, `X: ${'x'.repeat(20_000)}`), 'INVALID_REQUEST'],
  ['an ambiguous length', lines('POST / HTTP/1.1', HOST, 'Content-Length: 1', 'Content-Length: 2'), 'INVALID_REQUEST'],
];

// @proves connect-8 connect-10
describe('a request without a token is logged and counted once, and ends its connection:', () => {
  const ends: Promise<void>[] = [];
  test.each(OVER_HTTP2)('%s, over HTTP/2', async (_, headers) => {
    const session = connect(`https://localhost:${port}`, { ca });
    session.on('error', () => {});
    ends.push(new Promise((resolve) => session.once('close', resolve)));
    const all = Object.entries({ ...POST, ...headers }).filter(([, value]) => value !== undefined);
    const act = () => onStream(session, Object.fromEntries(all), Buffer.alloc(5));
    expect(await observed(act)).toEqual(onceAs('CALLER_UNAUTHENTICATED'));
  });

  // @proves bounds-50
  test('a core ends each of those connections by itself, which it neither logs nor counts', async () => {
    expect(ends).toHaveLength(OVER_HTTP2.length);
    expect(await observed(() => Promise.all(ends), 0)).toEqual({ logged: [], counted: [] });
  });

  // @proves bounds-50
  test.each(OVER_HTTP1)('%s, over HTTP/1.1', async (_, request, outcome = 'CALLER_UNAUTHENTICATED') => {
    const act = async () => {
      const socket = await aSocket('http/1.1');
      // It keeps its end open, and reads nothing before the connection ends.
      socket.write(request);
      socket.resume();
      await once(socket, 'close');
    };
    expect(await observed(act)).toEqual(onceAs(outcome));
  });
});

const [UNARY, STREAM] = ['application/json', 'application/connect+json'];
const NO_METHOD = /"code":"unimplemented"/;
const NO_POST = /The method of HTTP must be POST/;
const NO_TYPE = /The content type must be one of/;

type Unserved = readonly [what: string, headers: OutgoingHttpHeaders, status: number, answer: RegExp];

/** The requests of a caller with a token that no method serves, and their answers. */
const UNSERVED: readonly Unserved[] = [
  ['another path', { ':path': '/x.Y/Z' }, 404, NO_METHOD],
  ['a path with an encoded letter', { ':path': LIST.replace('s', '%73') }, 404, NO_METHOD],
  ['a path with a slash at its end', { ':path': `${LIST}/` }, 404, NO_METHOD],
  ['a path in small letters', { ':path': LIST.toLowerCase() }, 404, NO_METHOD],
  ['a path with a semicolon', { ':path': `${LIST};x` }, 404, NO_METHOD],
  ['broken percent-encoding', { ':path': '/%zz' }, 404, NO_METHOD],
  ['CONNECT', { ':method': 'CONNECT', ':authority': 'x:1', ':path': undefined, ':scheme': undefined }, 404, NO_METHOD],
  ...['OPTIONS', 'PUT', 'QUERY', 'PROPFIND', 'FROB'].flatMap((method) =>
    [UNARY, 'json'].map((type): Unserved => {
      return [`${method} of ${type}`, { ':method': method, 'content-type': type }, 405, NO_POST];
    }),
  ),
  ...['json', 'text/xml', 'application/json;;', '', undefined, STREAM].map((type): Unserved => {
    return [`the type ${type}`, { 'content-type': type }, 415, NO_TYPE];
  }),
  ['a stream as a unary call', { ':path': EXCHANGE }, 415, NO_TYPE],
];

// @proves connect-8 connect-11 fastify-8 fastify-9
test.each(UNSERVED)(
  'with a token, %s gets its answer, and is logged and counted once',
  async (_, headers, status, answer) => {
    const session = connect(`https://localhost:${port}`, { ca });
    onTestFinished(() => session.destroy());
    const head = { ':method': 'POST', ':path': LIST, 'content-type': UNARY, authorization: `Bearer ${CORE_TOKEN}` };
    const all = Object.entries({ ...head, ...headers }).filter(([, value]) => value !== undefined);
    let got: { readonly status: number | undefined; readonly text: string } | undefined;
    const { logged, counted } = await observed(async () => {
      got = await onStream(session, Object.fromEntries(all), Buffer.alloc(0));
    });
    expect(got).toMatchObject({ status, text: expect.stringMatching(answer) });
    expect([logged, counted]).toEqual(times(2, () => [status === 404 ? 'UNIMPLEMENTED' : 'INVALID_REQUEST']));
  },
);

// @proves connect-9
test('a probe that cannot be read is INVALID_REQUEST without a token, too', async () => {
  const session = connect(`https://localhost:${port}`, { ca });
  onTestFinished(() => session.destroy());
  const head = { ':method': 'POST', ':path': '/grpc.health.v1.Health/Check', 'content-type': UNARY };
  const act = async () => expect(await onStream(session, head, Buffer.from('{'))).toMatchObject({ status: 400 });
  expect(await observed(act)).toEqual(onceAs('INVALID_REQUEST'));
});

const AUTHORIZED = `Authorization: Bearer ${CORE_TOKEN}`;

// @proves hostile-5 node-70
describe('a caller that sends its whole request before it reads gets the last answer:', () => {
  const LONG = Buffer.alloc(200_000, 'x');
  const long = (...headers: string[]) =>
    lines(`POST ${LIST} HTTP/1.1`, HOST, `Content-Length: ${LONG.length}`, ...headers);

  test.concurrent.each([
    ...OVER_HTTP1.map(([what, request, outcome]) => [what, request, outcome ? 400 : 401] as const),
    ['a long message', long('Content-Type: application/json'), 401] as const,
    [
      'a long message with an expectation',
      long('Content-Type: application/json', 'Expect: 100-continue'),
      401,
    ] as const,
    ['another content type, with the token', long('Connection: close', AUTHORIZED), 415] as const,
  ])('%s, over HTTP/1.1', async (_, request, status) => {
    const socket = await aSocket('http/1.1', { allowHalfOpen: true });
    const received = (await sendSlowly(socket, request, LONG, () => false)).toString('latin1');
    expect(received).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });

  test.concurrent.each(['with TLS', 'without TLS'])('a call without a token, over HTTP/2 %s', async (tls) => {
    const socket =
      tls === 'with TLS' ? await aSocket('h2') : await wire(Number(new URL((await startTestCore()).url).port));
    const call = frame(FRAME.headers, FLAG.endHeaders, 1, callBlock(LIST));
    // As much as the window allows.
    const data = Buffer.concat(times(60, () => frame(FRAME.data, FLAG.none, 1, Buffer.alloc(1024))));
    const isAnswer = ({ type, flags, stream }: ReturnType<typeof framesIn>[number]) =>
      stream === 1 && [FRAME.headers, FRAME.data].includes(type as 0) && (flags & FLAG.endStream) > 0;
    const received = await sendSlowly(socket, Buffer.concat([opening(), call]), data, (bytes) =>
      framesIn(bytes).some(isAnswer),
    );
    expect(framesIn(received).filter(isAnswer)).toHaveLength(1);
  });
});

test.each([
  ['HTTP/1.1', lines('GET / HTTP/1.1', HOST)],
  ['what is not HTTP', 'EHLO x'.padEnd(30)],
])('%s in place of HTTP/2 is logged and counted once, and ends its connection', async (_, bytes) => {
  const act = async () => {
    const socket = await aSocket('h2');
    socket.resume().write(bytes);
    await once(socket, 'close');
  };
  expect(await observed(act)).toEqual(onceAs('INVALID_REQUEST'));
});

describe('over HTTP/1.1,', () => {
  test('a part of a request, or nothing, ends its connection, and is logged and counted once', async () => {
    const parts = [
      '',
      `POST ${LIST} HTTP/1.1\r\n${HOST}\r\n`,
      lines(`POST ${LIST} HTTP/1.1`, HOST, AUTHORIZED, 'Content-Length: 9').concat('{'),
    ];
    const act = async (part: string) => {
      const socket = await aSocket('http/1.1');
      socket.resume().write(part);
      await once(socket, 'close');
    };
    const outcomes = parts.map(() => 'INVALID_REQUEST');
    const all = await observed(() => Promise.all(parts.map(act)), parts.length);
    expect(all).toEqual({ logged: outcomes, counted: outcomes });
  });

  test('a request with two authorizations has none', async () => {
    const authorizations = [AUTHORIZED, 'Authorization: Bearer other'];
    const head = [`POST ${LIST} HTTP/1.1`, HOST, 'Content-Type: application/json', 'Content-Length: 2'];
    const act = async () => {
      const socket = await aSocket('http/1.1');
      socket.resume().write(`${lines(...head, ...authorizations)}{}`);
      await once(socket, 'close');
    };
    expect(await observed(act)).toEqual(onceAs('CALLER_UNAUTHENTICATED'));
  });

  // @proves bounds-35
  test('as many calls of one connection are in flight as over HTTP/2, and one more ends it', async () => {
    const underWay = async () => (await scrape(metricsUrl)).get('lead_intake_core_calls_under_way');
    const aPull = (connection: string) => {
      const [body, type] = ['{"wait":"20s"}', 'Content-Type: application/json'];
      const head = ['POST /leadintake.v1.LeadIntakeService/PullLeadChanges HTTP/1.1', HOST, AUTHORIZED, type];
      return `${lines(...head, `Content-Length: ${body.length}`, `Connection: ${connection}`)}${body}`;
    };
    const socket = await aSocket('http/1.1');
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk;
    });
    socket.write(aPull('keep-alive').repeat(MAX_CALLS_PER_CONNECTION));
    await expect.poll(underWay).toBe(MAX_CALLS_PER_CONNECTION);

    socket.write(aPull('close'));
    await once(socket, 'close');
    expect(received).toBe('');
    await expect.poll(underWay).toBe(0);
  });
});
