import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { times } from '../support/builders.ts';
import { lines, type RawAnswer, rawConversation } from '../support/raw-http.ts';
import { aCapture, aService, LEADS, type StudioWithKey } from '../support/service.ts';

const service = aService();
let studio: StudioWithKey;
beforeEach(async () => {
  studio = await service.aStudioWithKey();
});

const HOST = 'Host: leads.example.test';
const bearer = () => `Authorization: Bearer ${studio.secret}`;
const written = () => service.countLeads(studio.studioId);

/** Returns the head of a creation, complete except for the headers that delimit its body. */
const headOfPost = (...more: string[]) =>
  lines(
    `POST ${LEADS} HTTP/1.1`,
    HOST,
    bearer(),
    `Idempotency-Key: ${randomUUID()}`,
    'Content-Type: application/json',
    ...more,
    '',
  );
const aBody = () => JSON.stringify(aCapture());
const aChunk = (body: string) => `${body.length.toString(16)}\r\n${body}\r\n`;
const inChunks = (body: string, trailer = '') => `${aChunk(body)}0\r\n${trailer}\r\n`;

/** Returns a complete, valid creation. */
function aPost(...more: string[]): string {
  const body = aBody();
  return headOfPost(`Content-Length: ${body.length}`, ...more) + body;
}
const aGet = (...more: string[]) => lines(`GET ${LEADS}?limit=1 HTTP/1.1`, HOST, bearer(), ...more, '');

/** A request that closes the connection. */
const LAST = lines('GET /healthz HTTP/1.1', HOST, 'X-Request-Id: last', 'Connection: close', '');

const statuses = (answers: readonly RawAnswer[]) => answers.map(({ status }) => status);

/** Expects a single response, to unreadable input. */
function expectUnreadable(answers: readonly RawAnswer[], status = 400): void {
  expect(statuses(answers)).toEqual([status]);
  expect(answers[0]?.headers).toMatchObject({ 'content-type': 'application/problem+json', connection: 'close' });
  expect(JSON.parse(String(answers[0]?.body))).toMatchObject({ status, code: 'integration_invalid_request' });
}

/** A head that delimits its body twice or wrongly, with a body that would fit. */
type Ambiguous = readonly [what: string, bytes: (body: string) => string];

const withLength = (line: (length: number) => string) => (body: string) => headOfPost(line(body.length)) + body;
const withCoding = (line: string) => (body: string) => headOfPost(line) + inChunks(body);
const withChunks = (chunks: (body: string) => string) => (body: string) =>
  headOfPost('Transfer-Encoding: chunked') + chunks(body);

const AMBIGUOUS: readonly Ambiguous[] = [
  ['the same Content-Length twice', withLength((length) => `Content-Length: ${length}\r\nContent-Length: ${length}`)],
  ['a Content-Length with a sign', withLength((length) => `Content-Length: +${length}`)],
  ['a blank before the colon of Content-Length', withLength((length) => `Content-Length : ${length}`)],
  ['a length, then chunks', (body) => headOfPost('Content-Length: 4', 'Transfer-Encoding: chunked') + inChunks(body)],
  [
    'a length and the identity coding',
    (body) => headOfPost('Transfer-Encoding: identity', `Content-Length: ${body.length}`) + body,
  ],
  [
    'a length and a coding after a bare line feed',
    (body) => headOfPost(`X: a\nTransfer-Encoding: chunked`, `Content-Length: ${body.length}`) + body,
  ],
  ['chunked twice in one header', withCoding('Transfer-Encoding: chunked, chunked')],
  ['the identity coding', withCoding('Transfer-Encoding: identity')],
  ['a coding that ends in chunked', withCoding('Transfer-Encoding: xchunked')],
  ['a blank before the colon of Transfer-Encoding', withCoding('Transfer-Encoding : chunked')],
  [
    'HTTP/1.0 with a length and chunks',
    (body) =>
      headOfPost('Transfer-Encoding: chunked', 'Content-Length: 3').replace('HTTP/1.1', 'HTTP/1.0') + inChunks(body),
  ],
  ['a 0x before the size of a chunk', withChunks((body) => `0x${inChunks(body)}`)],
  ['a size of a chunk above the largest integer', withChunks((body) => `1${'0'.repeat(16)}${inChunks(body)}`)],
  ['a bare line feed in an extension', withChunks((body) => inChunks(body).replace('\r\n', ';a\nb\r\n'))],
  ['no line end after a chunk', withChunks((body) => `${body.length.toString(16)}\r\n${body}0\r\n\r\n`)],
  ['a length in a trailer', withChunks((body) => inChunks(body, 'Content-Length: 5\r\n'))],
  ['bare line feeds', (body) => withLength((length) => `Content-Length: ${length}`)(body).replaceAll('\r\n', '\n')],
  ['a blank before the request', (body) => ` ${withLength((length) => `Content-Length: ${length}`)(body)}`],
];

// @proves hostile-6
test.each(AMBIGUOUS)(
  'a message with an ambiguous end is refused, and nothing in or after it is executed: %s',
  async (_, bytes) => {
    // To another parser, the body, or the bytes after it, are a creation.
    const hidden = aPost();
    for (const body of [aBody(), hidden]) expectUnreadable(await rawConversation(service.url, bytes(body) + hidden));
    expect(await written()).toBe(0);
    expect((await service.get(studio.secret)).status).toBe(200);
  },
);

test.each<[what: string, bytes: (body: string) => string]>([
  ['zeros before the length', withLength((length) => `Content-Length: 000${length}`)],
  ['chunks', withCoding('Transfer-Encoding: chunked')],
  ['one chunk for each character', withChunks((body) => `${[...body].map(aChunk).join('')}0\r\n\r\n`)],
  ['extensions', withChunks((body) => inChunks(body).replace('\r\n', ';a;b=c;d="e;f"\r\n'))],
  ['a trailer', withChunks((body) => inChunks(body, 'X-Request-Id: trailer\r\nHost: other.example.test\r\n'))],
  ['empty lines before the request', (body) => `\r\n\r\n${withCoding('Transfer-Encoding: chunked')(body)}`],
])('a message in another valid form is one request, and the next one is separate: %s', async (_, bytes) => {
  const answers = await rawConversation(service.url, bytes(aBody()) + LAST);

  expect(statuses(answers)).toEqual([201, 200]);
  expect(answers[0]?.headers['x-request-id']).not.toBe('trailer');
  expect(await written()).toBe(1);
});

test('a coding inside the chunks is ignored or refused, and the message ends with its chunks', async () => {
  const answers = await rawConversation(service.url, withCoding('Transfer-Encoding: gzip, chunked')(aBody()) + LAST);

  expect([[201, 200], [400, 200], [400]]).toContainEqual(statuses(answers));
  expect(await written()).toBe(statuses(answers).filter((status) => status === 201).length);
});

test('a trailer does not replace a header', async () => {
  const chunked = headOfPost('Transfer-Encoding: chunked').replace(/Authorization.*\r\n/, '');
  const answers = await rawConversation(service.url, chunked + inChunks(aBody(), `${bearer()}\r\n`) + LAST);

  expect(statuses(answers)).toEqual([401]);
  expect(await written()).toBe(0);
});

// @proves hostile-6
describe('requests on one connection', () => {
  test('requests on one connection get one response each, in order', async () => {
    const posts = times(20, (index) => aPost(`X-Request-Id: No-${index}`));
    const answers = await rawConversation(service.url, posts.join('') + LAST);

    expect(statuses(answers)).toEqual([...posts.map(() => 201), 200]);
    expect(answers.map(({ headers }) => headers['x-request-id'])).toEqual([
      ...posts.map((_, index) => `No-${index}`),
      'last',
    ]);
    expect(await written()).toBe(20);
  });

  test.each<[what: string, status: number, bytes: () => string]>([
    ['HEAD', 405, () => aGet().replace('GET', 'HEAD')],
    ['a read with a body', 200, () => `${aGet(`Content-Length: ${aPost().length}`)}${aPost()}`],
    ['an unknown path with a body', 404, () => aPost().replace(LEADS, '/nowhere')],
  ])('requests on one connection stay separate after %s', async (_, status, bytes) => {
    const answers = await rawConversation(service.url, bytes() + aPost('X-Request-Id: behind') + LAST);

    expect(statuses(answers)).toEqual([status, 201, 200]);
    expect(answers[1]?.headers['x-request-id']).toBe('behind');
    expect(await written()).toBe(1);
  });

  test.each<[what: string, status: number, bytes: () => string]>([
    [
      'a method that is not allowed, with chunks',
      405,
      () => `${aGet('Transfer-Encoding: chunked').replace('GET', 'DELETE')}${inChunks(aPost())}`,
    ],
    ['something that is not HTTP', 400, () => 'nonsense\r\n\r\n'],
    ['CONNECT', 404, () => lines('CONNECT leads.example.test:443 HTTP/1.1', HOST, '')],
    ['an unknown Expect', 400, () => aPost('Expect: the-unexpected')],
    ['headers above the maximum length', 431, () => aPost(`X-Long: ${'x'.repeat(20_000)}`)],
  ])('a connection ends after %s, and nothing further is parsed', async (_, status, bytes) => {
    const answers = await rawConversation(service.url, bytes() + aPost());

    expect(statuses(answers)).toEqual([status]);
    expect(answers[0]?.headers.connection).toBe('close');
    expect(await written()).toBe(0);
  });

  const tooLong = () => headOfPost('Transfer-Encoding: chunked') + inChunks(' '.repeat(40_000));
  // @proves bounds-7
  test.each<[what: string, status: number, bytes: () => string]>([
    ['a length above the maximum', 400, () => `${headOfPost('Content-Length: 40000')}${' '.repeat(40_000)}`],
    ['chunks above the maximum length', 400, tooLong],
    ['chunks above it at an unknown path', 404, () => tooLong().replace(LEADS, '/nowhere')],
  ])('a connection executes no request after %s', async (_, status, bytes) => {
    const answers = await rawConversation(service.url, bytes() + aPost());

    expect(statuses(answers)).toEqual([status]);
    expect(await written()).toBe(0);
  });

  test('requests that expect 100 Continue but do not wait for it stay separate', async () => {
    const expecting = times(5, () => aPost('Expect: 100-continue'));
    const answers = await rawConversation(service.url, expecting.join('') + LAST);

    expect(statuses(answers)).toEqual([201, 201, 201, 201, 201, 200]);
    expect(await written()).toBe(5);
  });
});

// @proves hostile-6
describe('the first response on a connection', () => {
  test.each([
    ['closes the connection', () => aPost('Connection: close')],
    ['is of HTTP/1.0, which closes it', () => aPost().replace('HTTP/1.1', 'HTTP/1.0')],
  ])('a second request gets no response if the first %s', async (_, first) => {
    const answers = await rawConversation(service.url, first() + aPost());
    expect(statuses(answers)).toEqual([201]);
    expect(await written()).toBe(1);
  });

  test('a request whose rest never arrives gets only one response', async () => {
    const refused = headOfPost('Content-Length: 100').replace('lik_', 'lik-');
    expect(statuses(await rawConversation(service.url, `${refused}{`, { end: true }))).toEqual([401]);
  });
});

test.each([
  [`HTTP://OTHER.example.test:99${LEADS}`, 201],
  [`https://somebody:secret@other.example.test${LEADS}`, 201],
  [`http://other.example.test/${LEADS}`, 404],
  [`http://other.example.test?${LEADS}`, 404],
  [`http://${LEADS}`, 400],
  [`ftp://other.example.test${LEADS}`, 404],
  [`//other.example.test${LEADS}`, 404],
  [`other.example.test${LEADS}`, 400],
])('a request target with a host gets the response of its path: %s', async (address, status) => {
  const post = aPost('Connection: close').replace(`POST ${LEADS}`, `POST ${address}`);
  expect(statuses(await rawConversation(service.url, post))).toEqual([status]);
  expect(await written()).toBe(status === 201 ? 1 : 0);
});

describe('HTTP/1.0 clients', () => {
  test('an HTTP/1.0 client may keep the connection alive', async () => {
    const post = aPost('Connection: keep-alive').replace('HTTP/1.1', 'HTTP/1.0');
    expect(statuses(await rawConversation(service.url, post + post + LAST))).toEqual([201, 201, 200]);
    expect(await written()).toBe(1);
  });

  test('an HTTP/1.0 request with chunks gets one response, and its connection is closed', async () => {
    const head = headOfPost('Transfer-Encoding: chunked', 'Connection: keep-alive').replace('HTTP/1.1', 'HTTP/1.0');
    const answers = await rawConversation(service.url, head + inChunks(aBody()) + aPost() + LAST);
    expect(answers).toHaveLength(1);
    expect(await written()).toBeLessThanOrEqual(1);
  });
});
