import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { beforeAll, expect, test } from 'vitest';
import { times } from '../support/builders.ts';
import { aService, LEADS } from '../support/service.ts';

// A bound on responses does not bound the work: these tests count the values that the processes create for a request.

/** The maximum bytes of a body, and of the headers. */
const [BODY, HEADERS] = [32 * 1024 - 100, 15_000];

const service = aService();
let secret = '';
beforeAll(async () => {
  ({ secret } = await service.aStudioWithKey());
});

/** Counts all values in a parsed value, which may be deeply nested. */
function valuesIn(parsed: unknown): number {
  const open = [parsed];
  let count = 0;
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    count += 1;
    if (typeof value === 'object' && value !== null) for (const each of Object.values(value)) open.push(each);
  }
  return count;
}

/** Counts the values created by parsing and splitting, and those added to lists, while a function runs. */
async function countWork(run: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const { parse } = JSON;
  const { split } = String.prototype;
  const { push } = Array.prototype;
  const counted = <Args extends unknown[], Made>(make: (...args: Args) => Made, findCount: (made: Made) => number) =>
    function (this: unknown, ...args: Args): Made {
      const made = Reflect.apply(make, this, args);
      count += findCount(made);
      return made;
    };
  try {
    JSON.parse = counted(parse, valuesIn);
    String.prototype.split = counted(split as (text: string) => string[], (made) => made.length) as typeof split;
    Array.prototype.push = counted(push, () => 1);
    await run();
  } finally {
    JSON.parse = parse;
    String.prototype.split = split;
    Array.prototype.push = push;
  }
  return count;
}

/** Returns the least work of several runs, because other suites of this process may add to a count. */
async function leastWork(run: () => Promise<unknown>): Promise<number> {
  const counts: number[] = [];
  for (const _ of times(10, () => 0)) counts[counts.length] = await countWork(run);
  return Math.min(...counts);
}

type Headers = Readonly<Record<string, string>>;

async function send(method: string, path: string, headers: Headers = {}, body = ''): Promise<void> {
  const call = request(service.url + path, { method, agent: false, headers: { host: 'leads', ...headers } });
  call.end(body);
  const [response] = await once(call, 'response');
  response.resume();
  await once(response, 'close');
}

const key = (): Headers => ({ authorization: `Bearer ${secret}` });
const create = (body: string, headers: Headers = {}) =>
  send(
    'POST',
    LEADS,
    { ...key(), 'content-type': 'application/json', 'idempotency-key': randomUUID(), ...headers },
    body,
  );

const fill = (text: string, length: number) => text.repeat(length / text.length);
const distinct = (length: number, of: (index: number) => string) => {
  let text = '';
  for (let index = 0; text.length < length; index += 1) text += of(index);
  return text;
};
const properties = distinct(BODY, (index) => `"x${index}":1,`);

/** Requests with as much of something as a request can have. */
const FULL: Readonly<Record<string, () => Promise<void>>> = {
  'unknown properties': () => create(`{${properties}"y":1}`),
  'unknown properties of the contact': () => create(`{"displayName":"Ada","contact":{${properties}"y":1}}`),
  'one property again and again': () => create(`{${fill('"x":1,', BODY)}"x":1}`),
  'elements of a list': () => create(`[${fill('1,', BODY)}1]`),
  'elements of a list in a property': () => create(`{"note":[${fill('1,', BODY)}1]}`),
  'lists in lists': () => create(fill('[', BODY / 2) + fill(']', BODY / 2)),
  'objects in objects': () => create(`${fill('{"":', BODY / 2)}1${'}'.repeat(BODY / 8)}`),
  'elements behind quotes': () => create(`{"\\"":"\\\\","x":[${fill('"",', BODY)}1]}`),
  'parameters of the media type': () => create('{}', { 'content-type': `application/json${fill(';a=b', HEADERS)}` }),
  'parameters of the address': () => send('GET', `${LEADS}?limit=0${distinct(HEADERS, (index) => `&${index}`)}`, key()),
  'limits in the address': () => send('GET', `${LEADS}?${fill('&limit=1', HEADERS)}`, key()),
  'segments of the address': () => send('GET', fill('/a', HEADERS)),
  'media types that are accepted': () => send('GET', '/docs', { accept: fill(',', HEADERS) }),
  'parameters of a media type that is accepted': () => send('GET', '/docs', { accept: fill(';', HEADERS) }),
  'codings that are accepted': () =>
    send('HEAD', '/docs/assets/scalar.js', { 'accept-encoding': distinct(HEADERS, (index) => `a${index},`) }),
  'tags of a page': () => send('GET', '/docs', { 'if-none-match': fill('"a",', HEADERS) }),
  'tags of a file': () => send('HEAD', '/docs/assets/scalar.js', { 'if-none-match': fill('"a",', HEADERS) }),
  'addresses of proxies': () => send('GET', LEADS, { ...key(), 'x-forwarded-for': fill('192.0.2.1,', HEADERS) }),
};

// @proves hostile-2 bounds-211 bounds-212 bounds-213
test.each(Object.keys(FULL))(
  'a request with as many %s as it can have costs hardly more than any other',
  async (name) => {
    const ordinary = () => (name.includes('tags') ? send('GET', '/docs') : create('{"displayName":""}'));
    await ordinary();
    const expected = await leastWork(ordinary);
    expect(expected).toBeGreaterThan(10);
    expect(await leastWork(FULL[name] ?? ordinary)).toBeLessThan(expected + 500);
  },
);

test('the counted work includes parsing, splitting and collecting', async () => {
  expect(await countWork(async () => times(10, () => [].push()))).toBeGreaterThanOrEqual(10);
  expect(await countWork(async () => JSON.parse('[[1,2],{"a":3}]'))).toBe(6);
  expect(await countWork(async () => 'a,b,c'.split(','))).toBe(3);
});
