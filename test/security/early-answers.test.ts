import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, test } from 'vitest';
import { times } from '../support/builders.ts';
import { lines, takeAnswers } from '../support/raw-http.ts';
import { aCapture, anotherGateway, aService, LEADS, type StudioWithKey } from '../support/service.ts';
import { destroyAfterAll, sendSlowly } from '../support/slow-sender.ts';
import { REFUSED } from './gateway-refusals.ts';

/** The bytes of a body over the limit, and of an ordinary one. */
const LONG = Buffer.alloc(200_000, 'x');
const ORDINARY = Buffer.alloc(20_000, 'x');

const QUOTA_LIMIT = 200;
const service = aService({ gateway: { QUOTA_LIMIT: `${QUOTA_LIMIT}` } });
let studio: StudioWithKey;
let usedUp: StudioWithKey;
beforeAll(async () => {
  [studio, usedUp] = await Promise.all([service.aStudioWithKey(), service.aStudioWithKey()]);
  for (const _ of times(QUOTA_LIMIT, () => 0)) await service.get(usedUp.secret, '?limit=1');
});

const destroyAtLast = destroyAfterAll();

async function aConnection(url = service.url) {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port), allowHalfOpen: true, noDelay: true });
  destroyAtLast(socket);
  await once(socket, 'connect');
  return socket;
}

/** Sends a text and then many bytes slowly; returns the statuses of the final responses. */
async function answersTo(text: string, rest: Buffer, socket?: Socket): Promise<number[]> {
  socket ??= await aConnection();
  const received = await sendSlowly(socket, text, rest).catch((error) =>
    expect.fail(`the connection breaks: ${error}`),
  );
  const { answers, rest: incomplete } = takeAnswers(received);
  expect(incomplete.toString()).toBe('');
  return answers.map(({ status }) => status);
}

/** Requests whose response depends only on their head. */
const BY_HEAD: readonly [what: string, status: number, line: string, headers: () => readonly string[]][] = [
  ['no key', 401, `POST ${LEADS}`, () => []],
  ['a malformed key', 401, `POST ${LEADS}`, () => ['Authorization: Bearer x']],
  ['a quota that is used up', 429, `POST ${LEADS}`, () => [`Authorization: Bearer ${usedUp.secret}`]],
  ['an unknown path', 404, 'POST /nope', () => []],
  ['a method that the path lacks', 405, `PUT ${LEADS}`, () => []],
  ['an address with broken encoding', 400, 'POST /%zz', () => []],
  ['an id that is none', 400, `GET ${LEADS}/x`, () => [`Authorization: Bearer ${studio.secret}`]],
  ['a host that is none', 400, `POST ${LEADS}`, () => ['Host: /']],
  ['no problem', 200, 'GET /docs', () => []],
  ['its length or media type', 400, `POST ${LEADS}`, () => [`Authorization: Bearer ${studio.secret}`]],
];

/** Returns a Host header unless the headers have one. */
const missingHost = (headers: readonly string[]) =>
  headers.some((each) => each.startsWith('Host:')) ? [] : ['Host: a'];

/** How the body is sent, and what else ends a connection. */
const FRAMINGS: readonly (readonly [what: string, version: string, headers: readonly string[], body: Buffer])[] = [
  ['a long body', '1.1', [`Content-Length: ${LONG.length}`], LONG],
  [
    'a long body in chunks',
    '1.1',
    ['Transfer-Encoding: chunked'],
    Buffer.concat([Buffer.from(`${LONG.length.toString(16)}\r\n`), LONG, Buffer.from('\r\n0\r\n\r\n')]),
  ],
  ...(
    [
      ['keep-alive', '1.1', []],
      ['Connection: close', '1.1', ['Connection: close']],
      ['HTTP/1.0', '1.0', []],
      ['an upgrade', '1.1', ['Connection: Upgrade', 'Upgrade: websocket']],
      ['an expectation', '1.1', ['Expect: 100-continue']],
      ['an unknown expectation', '1.1', ['Expect: x']],
    ] as const
  ).map(
    ([what, version, headers]) =>
      [`an ordinary body with ${what}`, version, [`Content-Length: ${ORDINARY.length}`, ...headers], ORDINARY] as const,
  ),
];

// @proves hostile-5
describe('early responses to clients that send everything before they read', () => {
  describe.each(BY_HEAD)('by %s:', (_, status, line, headersOf) => {
    test.concurrent.each(FRAMINGS)('a late reader gets the response: %s', async (framing, version, headers, body) => {
      const expected = framing.endsWith('unknown expectation') ? 400 : status;
      const head = lines(`${line} HTTP/${version}`, ...missingHost(headersOf()), ...headersOf(), ...headers, '');
      expect(await answersTo(head, body)).toEqual([expected]);
    });
  });

  // A client that has ended its side sends nothing more, and a late one would no longer be late.
  const refused = REFUSED.filter(({ ends, by }) => !ends && !by.includes('clientError ERR_HTTP_REQUEST_TIMEOUT'));
  test.concurrent.each(refused)('a late reader gets a refusal before the route: $what', async ({ request, status }) => {
    expect(await answersTo(request(studio.secret), LONG)).toEqual([status]);
  });

  test.concurrent('a client whose request is late gets 408 although it keeps sending', async () => {
    const socket = await aConnection(await anotherGateway(service, { deadlines: { requestArrivalMs: 500 } }));
    socket.write(lines(`POST ${LEADS} HTTP/1.1`, 'Host: a'));
    await once(socket, 'readable');
    expect(await answersTo('more', LONG, socket)).toEqual([408]);
  });

  test.concurrent('requests after one that closes the connection do not hide its response', async () => {
    const head = lines('GET /docs/problems/internal_error HTTP/1.1', 'Host: a', 'Connection: close', '');
    const more = Buffer.from(lines(`GET ${LEADS} HTTP/1.1`, 'Host: a', '').repeat(5000));
    expect(await answersTo(head, more)).toEqual([200]);
  });

  // RFC 9110, section 10.1.1.
  test.concurrent.each(BY_HEAD)('no 100 Continue comes before a refusal: %s', async (_, status, line, headersOf) => {
    const expectation = ['Expect: 100-continue', `Content-Length: ${LONG.length}`, 'Connection: close'];
    const socket = await aConnection();
    const received = text(socket);
    socket.end(lines(`${line} HTTP/1.1`, ...missingHost(headersOf()), ...headersOf(), ...expectation, ''));
    expect(await received).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });
});

// @proves node-71
test('a client that waits for 100 Continue gets it once its head is admitted', async () => {
  const body = JSON.stringify(aCapture());
  const socket = await aConnection();
  const headers = [
    `Authorization: Bearer ${studio.secret}`,
    'Content-Type: application/json',
    `Idempotency-Key: ${crypto.randomUUID()}`,
  ];
  socket.write(
    lines(
      `POST ${LEADS} HTTP/1.1`,
      'Host: a',
      ...headers,
      `Content-Length: ${body.length}`,
      'Expect: 100-continue',
      '',
    ),
  );
  const [interim] = await once(socket, 'data');
  expect(`${interim}`).toBe('HTTP/1.1 100 Continue\r\n\r\n');
  socket.write(body);
  const [answer] = await once(socket, 'data');
  expect(`${answer}`).toMatch(/^HTTP\/1.1 201 /);
});
