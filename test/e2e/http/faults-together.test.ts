import { beforeAll, describe, expect, test } from 'vitest';
import { lines, rawRequest } from '../../support/raw-http.ts';
import { aCapture, aService, expectProblem, LEADS } from '../../support/service.ts';

const service = aService();
let secret: string;
let foreignCursor: string;
beforeAll(async () => {
  ({ secret } = await service.aStudioWithKey());
  const other = await service.aStudioWithKey();
  for (const _ of [1, 2]) await service.post(other.secret, aCapture());
  const page = await service.get(other.secret, '?limit=1');
  foreignCursor = ((await page.json()) as { nextCursor: string }).nextCursor;
});

/** Faults of one part of a creation: its lines or its text, and the fields that they are reported under. */
type Part<Value> = readonly (readonly [name: string, value: Value, fields: readonly string[]])[];

const KEYS: Part<readonly string[]> = [
  ['a good key', ['Idempotency-Key: 0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c11'], []],
  ['a key that is no UUID', ['Idempotency-Key: 1'], ['Idempotency-Key']],
  ['an empty key', ['Idempotency-Key:'], ['Idempotency-Key']],
  ['a key twice', Array(2).fill('Idempotency-Key: 0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c11'), ['Idempotency-Key']],
];

const TYPES: Part<readonly string[]> = [
  ['a good media type', ['Content-Type: application/json'], []],
  ['another media type', ['Content-Type: text/plain'], ['Content-Type']],
  ['an empty media type', ['Content-Type:'], ['Content-Type']],
  ['two media types', ['Content-Type: application/json', 'Content-Type: text/plain'], ['Content-Type']],
  ['another charset', ['Content-Type: application/json; charset=latin1'], ['Content-Type']],
  [
    'two charsets, the other first',
    ['Content-Type: application/json; charset=latin1; charset="utf-8"'],
    ['Content-Type'],
  ],
];

const VALID = JSON.stringify(aCapture());
const withLength = (body: string) => lines(`Content-Length: ${Buffer.byteLength(body)}`, '') + body;
const inChunks = (body: string) =>
  `${lines('Transfer-Encoding: chunked', '')}${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`;

const BODIES: Part<string> = [
  ['a good body', withLength(VALID), []],
  ['no body', lines(''), ['body']],
  ['a body that is no JSON', withLength('{'), ['body']],
  ['a body with two faults', withLength('{"displayName":"","x":1}'), ['displayName', 'x', 'contact']],
  ['the same in chunks', inChunks('{"displayName":"","x":1}'), ['displayName', 'x', 'contact']],
  ['a body that is too long', withLength(' '.repeat(40_000)), ['body']],
  ['the same in chunks', inChunks(' '.repeat(40_000)), ['body']],
  ['a compressed body', lines('Content-Encoding: gzip') + withLength(VALID), ['Content-Encoding']],
];

describe.each(KEYS)('a creation with %s', (_, keyLines, ofKey) => {
  describe.each(TYPES)('and %s', (_, typeLines, ofType) => {
    test.each(BODIES.filter(([, , ofBody]) => ofKey.length + ofType.length + ofBody.length > 0))(
      'and %s reports all its faults together',
      { tags: ['2.5.together', '4.1.headers', '4.1.body'] },
      async (_, rest, ofBody) => {
        const head = [
          `POST ${LEADS} HTTP/1.1`,
          'Host: a',
          `Authorization: Bearer ${secret}`,
          ...keyLines,
          ...typeLines,
        ];
        const response = await rawRequest(service.url, lines(...head) + rest);
        await expectProblem(response, 400, 'integration_invalid_request', [...ofKey, ...ofType, ...ofBody]);
      },
    );
  });
});

const LIMITS: Part<string> = [
  ['no limit', '', []],
  ['limit 0', '&limit=0', ['limit']],
  ['a limit that is too high', '&limit=101', ['limit']],
  ['a limit that is no number', '&limit=x', ['limit']],
  ['two limits', '&limit=1&limit=2', ['limit']],
];
const CURSORS: Part<() => string> = [
  ['no cursor', () => '', []],
  ['a forged cursor', () => '&cursor=Zm9yZ2Vk', ['cursor']],
  ['a cursor of another studio', () => `&cursor=${foreignCursor}`, ['cursor']],
  ['an empty cursor', () => '&cursor=', ['cursor']],
  ['a cursor with other characters', () => '&cursor=a.b', ['cursor']],
  ['a cursor that is too long', () => `&cursor=${'a'.repeat(513)}`, ['cursor']],
  ['two cursors', () => '&cursor=a&cursor=b', ['cursor']],
];

describe.each(LIMITS)('a list with %s', (_, limit, ofLimit) => {
  test.each(CURSORS.filter(([, , ofCursor]) => ofLimit.length + ofCursor.length > 0))(
    'and %s reports all its faults together',
    { tags: ['2.5.together', '4.3.limit', '4.3.cursor'] },
    async (_, cursor, ofCursor) => {
      const response = await service.get(secret, `?${limit}${cursor()}`);
      await expectProblem(response, 400, 'integration_invalid_request', [...ofLimit, ...ofCursor]);
    },
  );
});

describe('an invalid address', () => {
  const paths = [LEADS, `${LEADS}/0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c11`, '/v1/nowhere', '/healthz', '/'];
  const broken = ['/%zz', '?%zz', '?limit=1&x=%', '?cursor=%C0%AF'];

  test.each(paths)('is reported before a missing key, path and method: %s', { tags: ['7.order'] }, async (path) => {
    for (const rest of broken) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const request = lines(`${method} ${path}${rest} HTTP/1.1`, 'Host: a', '');
        await expectProblem(await rawRequest(service.url, request), 400, 'integration_invalid_request', []);
      }
    }
  });

  test('is not counted', { tags: ['8.counted'] }, async () => {
    const left = async () => Number(/r=(\d+)/.exec((await service.get(secret)).headers.get('ratelimit') ?? '')?.[1]);
    const before = await left();
    expect((await service.get(secret, '?%zz')).headers.has('ratelimit')).toBe(false);
    expect(await left()).toBe(before - 1);
  });
});
