import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { lines, type RawAnswer, rawConversation, rawRequest, takeAnswer } from '../../support/raw-http.ts';
import { aCapture, aService, expectProblem, LEADS, readLead } from '../../support/service.ts';

const service = aService();
let secret: string;
let studioId: string;
beforeAll(async () => {
  ({ secret, studioId } = await service.aStudioWithKey());
});

afterEach(async () => {
  // Refused requests write nothing, and later requests are served.
  expect(await service.countLeads(studioId)).toBe(0);
  expect((await service.get(secret)).status).toBe(200);
});

/** Returns the remaining requests of a key from a response's header. */
const left = ({ headers }: Response) => Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]);

const GET = `GET ${LEADS} HTTP/1.1`;
const HOST = 'Host: leads.example.test';
const auth = () => `Authorization: Bearer ${secret}`;

/** Returns the head of a valid creation without its length. */
const post = (...more: string[]) =>
  lines(
    `POST ${LEADS} HTTP/1.1`,
    HOST,
    auth(),
    'Idempotency-Key: 0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c11',
    'Content-Type: application/json',
    ...more,
    '',
  );

// @proves node-4
test.each<[string, string[], () => string]>([
  ['of HTTP/1.1', ['body'], () => post()],
  ['of HTTP/1.0', ['body'], () => post().replace('HTTP/1.1', 'HTTP/1.0')],
  ['with another media type', ['Content-Type', 'body'], () => post().replace('application/json', 'text/plain')],
  ['with a media type that is none', ['Content-Type', 'body'], () => post().replace('application/json', 'nonsense')],
  ['without a media type', ['Content-Type', 'body'], () => post().replace(/Content-Type.*\r\n/, '')],
])('a creation without a body or a length gets a response: %s', async (_, fields, request) => {
  const answer = await Promise.race([rawRequest(service.url, request()), sleep(60_000)]);
  expect(answer, 'it waits for the end of a body').toBeDefined();
  await expectProblem(answer as Response, 400, 'integration_invalid_request', fields);
});

// @proves node-2 fastify-2 bounds-5
test.each<[string, number, string[], () => string]>([
  ['no Host', 400, ['Host'], () => lines(GET, auth(), '')],
  ['two Hosts', 400, ['Host'], () => lines(GET, HOST, 'Host: other.example.test', auth(), '')],
  ['an unknown Expect', 400, ['Expect'], () => lines(GET, HOST, auth(), 'Expect: the-unexpected', '')],
  ['an unknown transfer coding', 400, ['Transfer-Encoding'], () => `${post('Transfer-Encoding: frobbed')}{}`],
  ['a Content-Length beyond what is read', 400, ['body'], () => post('Content-Length: 999999999')],
  ['headers that are too long', 431, [], () => lines(GET, HOST, ...Array(300).fill(`X-Many: ${'x'.repeat(100)}`), '')],
  ['a path that is too long', 431, [], () => lines(`GET ${LEADS}/${'x'.repeat(70_000)} HTTP/1.1`, HOST, '')],
])(
  'a request that breaks HTTP is refused with its field, even with a valid key: %s',
  { tags: ['7.no-http', '7.order'] },
  async (_, status, fields, request) => {
    await expectProblem(await rawRequest(service.url, request()), status, 'integration_invalid_request', fields);
  },
);

const ID = '0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c11';

/** Node's parser accepts some of them as methods of other protocols. */
const UNDEFINED_METHODS = ['FROB', 'get', 'DESCRIBE', 'PRI'];

test.each([
  [LEADS, 'GET, POST'],
  [`http://api.example.test${LEADS}?limit=1`, 'GET, POST'],
  [`${LEADS}/${ID}`, 'GET'],
  ['/v1/integrations/%6Ceads', 'GET, POST'],
  ['/healthz', 'GET'],
])(
  'a method that HTTP does not define gets 405 like any other: %s',
  { tags: ['7.method_not_allowed'] },
  async (path, allow) => {
    const before = [
      '',
      lines('GET /healthz HTTP/1.1', HOST, ''),
      `${lines('POST /nowhere HTTP/1.1', HOST, 'Content-Length: 2', '')}ab`,
    ];
    for (const method of UNDEFINED_METHODS) {
      for (const first of before) {
        const request = lines(`${method} ${path} HTTP/1.1`, HOST, 'X-Request-Id: mine', '');
        const { status, headers, body } = (await rawConversation(service.url, first + request)).at(-1) as RawAnswer;
        expect({ status, allow: headers.allow, id: headers['x-request-id'] }).toEqual({
          status: 405,
          allow,
          id: 'mine',
        });
        expect(JSON.parse(body.toString())).toMatchObject({ code: 'method_not_allowed', requestId: 'mine' });
      }
    }
  },
);

describe.each([
  ['a chunk size that is no number', 'Transfer-Encoding: chunked', 'zz\r\n{}\r\n0\r\n\r\n'],
  ['a chunk longer than its size', 'Transfer-Encoding: chunked', '1\r\n{}\r\n0\r\n\r\n'],
  ['a malformed chunk after a good one', 'Transfer-Encoding: chunked', '2\r\n{}\r\nzz\r\n'],
  ['a chunk without its line end', 'Transfer-Encoding: chunked', '2\r\n{}0\r\n\r\n'],
])('a body with %s', (_, framing, body) => {
  test.each(['in one packet', 'in two'])(
    'a bad body after a good head keeps the request id and the quota headers: %s',
    { tags: ['7.no-http', '7.request-id', '8.quota-headers'] },
    async (packets) => {
      const before = left(await service.get(secret));
      const { port, hostname } = new URL(service.url);
      const socket = connect(Number(port), hostname);
      const received: Buffer[] = [];
      socket.on('data', (chunk: Buffer) => received.push(chunk));
      const head = post(framing, 'X-Request-Id: mine');
      socket.write(packets === 'in two' ? head : head + body);
      if (packets === 'in two') {
        // Waits until the request is counted and its body is being read.
        let polls = 0;
        const counted = async () => {
          polls += 1;
          return before - left(await service.get(secret)) - polls;
        };
        await expect.poll(counted).toBe(1);
        socket.write(body);
      }
      await once(socket, 'close');

      const answer = takeAnswer(Buffer.concat(received), false)?.answer as RawAnswer;
      expect(answer.status).toBe(400);
      expect(JSON.parse(answer.body.toString())).toMatchObject({
        code: 'integration_invalid_request',
        requestId: 'mine',
      });
      expect(answer.headers).toMatchObject({
        'x-request-id': 'mine',
        connection: 'close',
        ratelimit: expect.stringMatching(/r=\d+/),
      });
    },
  );
});

// @proves bounds-6
test('more than a thousand headers get 431, however short they are', { tags: ['7.no-http'] }, async () => {
  const many = (count: number) => lines(GET, HOST, auth(), ...Array(count - 2).fill('a:'), '');
  expect((await rawRequest(service.url, many(1000))).status).toBe(200);
  await expectProblem(await rawRequest(service.url, many(1001)), 431, 'integration_invalid_request', []);
});

// @proves node-8
test.each(['websocket', 'h2c'])('an upgrade to %s is ignored', async (protocol) => {
  const upgrade = ['Connection: Upgrade', `Upgrade: ${protocol}`, 'HTTP2-Settings: AAMAAABkAAQAAP__'];
  const answer = await rawRequest(service.url, lines(GET, HOST, auth(), ...upgrade, ''));
  expect(answer.status).toBe(200);
  // Later data on its connection might not be HTTP.
  expect(answer.headers.get('connection')).toBe('close');
  const unreadable = await rawRequest(service.url, lines('GET /%zz HTTP/1.1', HOST, auth(), ...upgrade, ''));
  expect(unreadable.headers.get('connection')).toBe('close');
  await expectProblem(await rawRequest(service.url, lines(GET, HOST, ...upgrade, '')), 401, 'integration_key_invalid');
});

// @proves node-7
test('a connection is closed after the response to something other than HTTP', async () => {
  const { port, hostname } = new URL(service.url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  socket.end('nonsense\r\n\r\n');
  socket.resume();
  await once(socket, 'close');
});

test.each(['#limit=1', '?x#%zz'])(
  'a path with a fragment is refused, and its fragment is not read as a query: %s',
  async (rest) => {
    const response = await rawRequest(service.url, lines(`GET ${LEADS}${rest} HTTP/1.1`, HOST, auth(), ''));
    await expectProblem(response, 400, 'integration_invalid_request', []);
    expect(response.headers.get('connection')).toBe('close');
  },
);

test('a valid request on a raw socket is served, so the others fail only for their faults', async () => {
  const other = await service.aStudioWithKey();
  const body = JSON.stringify(aCapture());
  const request = post(`Content-Length: ${body.length}`).replace(secret, other.secret) + body;
  await readLead(await rawRequest(service.url, request), 201);
});
