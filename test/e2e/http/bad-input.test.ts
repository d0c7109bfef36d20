import { gzipSync } from 'node:zlib';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { lines, rawRequest } from '../../support/raw-http.ts';
import { aCapture, anEmail, aService, expectProblem, LEADS, readLead } from '../../support/service.ts';

const service = aService({ gateway: { QUOTA_LIMIT: '1000000' } });
let secret: string;
let studioId: string;
let foreignCursor: string;
beforeAll(async () => {
  ({ secret, studioId } = await service.aStudioWithKey());
  const other = await service.aStudioWithKey();
  for (const _ of [1, 2]) await service.post(other.secret, aCapture());
  const page = await service.get(other.secret, '?limit=1');
  ({ nextCursor: foreignCursor } = (await page.json()) as { nextCursor: string });
});

// Refused requests write nothing.
afterEach(async () => expect(await service.countLeads(studioId)).toBe(0));

/** Expects a body to be refused for exactly these fields. */
async function expectRefused(body: unknown, fields?: readonly string[], headers: Record<string, string> = {}) {
  return expectProblem(await service.post(secret, body, headers), 400, 'integration_invalid_request', fields);
}

/** Returns a valid body with more JSON properties in front. */
const bodyWith = (properties: string) => JSON.stringify(aCapture()).replace('{', `{${properties},`);

const UUID = '0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c11';

// @proves fastify-1
test('a missing value or a wrong type is refused with its field, and nothing is converted', async () => {
  await expectRefused({}, ['displayName', 'contact']);
  await expectRefused({ contact: {} }, ['displayName', 'contact.type', 'contact.value']);
  for (const value of [1, true, [], {}, ['a@b']]) {
    const texts = { displayName: value, sourceId: value, note: value };
    await expectRefused({ ...texts, contact: { type: 'email', value } }, [...Object.keys(texts), 'contact.value']);
    await expectRefused(aCapture({ contact: { type: value, value: '12345' } }), ['contact.type']);
  }
  for (const value of [null, 1, 'ada@example.org', [anEmail()]]) {
    await expectRefused({ displayName: null, contact: value }, ['displayName', 'contact']);
  }
});

const UNUSUAL_NAMES = ['__proto__', 'constructor', 'toString', '', 'a/b', '~1', 'id', 'DisplayName', 'displayName '];

// @proves fastify-1
describe('an unknown property', () => {
  // @proves node-25
  test('an unknown property is refused by name, however unusual', {
    tags: ['2.2.nothing-else', '2.5.fields'],
  }, async () => {
    for (const value of ['null', '"x"', '{"a":1}']) {
      const properties = UNUSUAL_NAMES.map((name) => `${JSON.stringify(name)}:${value}`);
      await expectRefused(bodyWith(properties.join()), UNUSUAL_NAMES);
    }
  });

  // @proves bounds-8
  test('a body with many unknown properties is refused, and the response names 50', {
    tags: ['2.5.together'],
  }, async () => {
    const many = Array.from({ length: 90 }, (_, index) => `"x${index}":0`).join();
    const { fields = {} } = await expectRefused(bodyWith(many));
    expect(Object.keys(fields)).toHaveLength(50);
  });

  test('a property name with half a surrogate pair gets an error body that strict parsers read', async () => {
    const text = await (await service.post(secret, bodyWith('"\\ud800":0,"\\udc00x":0'))).text();
    expect(text).not.toMatch(/\\ud[89a-f]/i);
    expect(Object.keys(JSON.parse(text).fields)).toEqual(['\ufffd', '\ufffdx']);
  });

  test('properties of __proto__ do not stand in for missing values', { tags: ['2.2.nothing-else'] }, async () => {
    await expectRefused(`{"__proto__":${JSON.stringify(aCapture())}}`, ['__proto__', 'displayName', 'contact']);
    await expectRefused(`{"displayName":"Ada","contact":{"__proto__":${JSON.stringify(anEmail())}}}`, [
      'contact.__proto__',
      'contact.type',
      'contact.value',
    ]);
  });
});

test('a byte order mark is ignored, and the last of duplicate properties wins', {
  tags: ['4.1.body'],
}, async () => {
  const other = await service.aStudioWithKey();
  const contact = JSON.stringify(anEmail());
  const body = `\ufeff{"displayName":1,"displayName":"Ada","contact":${contact}}`;

  expect((await readLead(await service.post(other.secret, body), 201)).displayName).toBe('Ada');
  await expectRefused(`{"displayName":"Ada","displayName":1,"contact":${contact}}`, ['displayName']);
});

test.each([
  ['a high surrogate alone', String.raw`\ud800`],
  ['NUL', String.raw`\u0000`],
])('text with invalid Unicode or NUL is refused with its field: %s', { tags: ['2.2.unicode'] }, async (_, bad) => {
  const body = (type: string, value: string) =>
    `{"displayName":"Ada${bad}","note":"x${bad}y","sourceId":"${UUID}${bad}","contact":{"type":"${type}","value":"${value}"}}`;
  const texts = ['displayName', 'note', 'sourceId'];
  await expectRefused(body('email', `a${bad}@example.org`), [...texts, 'contact.value']);
  await expectRefused(body('phone', `12345${bad}`), [...texts, 'contact.value']);
  await expectRefused(body(`email${bad}`, 'a@b'), [...texts, 'contact.type']);
});

test('an error response never contains text from the request', { tags: ['2.5.discreet'] }, async () => {
  const text = await (await service.post(secret, aCapture({ contact: anEmail('not.an.address'), note: 7 }))).text();
  expect(text).not.toContain('not.an.address');
  expect(text).not.toContain(secret);
});

test('an Idempotency-Key in quotes is refused with advice to remove the quotes', async () => {
  const { fields } = await expectRefused(aCapture(), ['Idempotency-Key'], { 'idempotency-key': `"${UUID}"` });
  expect(fields?.['Idempotency-Key']).toEqual([expect.stringContaining('leave the quotes out')]);
});

/** Variants of a part of a creation, each with the fields reported for it. The first is good, the second bad. */
type Part<Value> = readonly (readonly [name: string, value: Value, fields: readonly string[]])[];

const GOOD_KEY = `Idempotency-Key: ${UUID}`;
const KEYS: Part<readonly string[]> = [
  ['a good key', [GOOD_KEY], []],
  ['a key that is no UUID', ['Idempotency-Key: 1'], ['Idempotency-Key']],
  ['no key', [], ['Idempotency-Key']],
  ['an empty key', ['Idempotency-Key:'], ['Idempotency-Key']],
  ['a key twice', [GOOD_KEY, GOOD_KEY], ['Idempotency-Key']],
];

const GOOD_TYPE = 'Content-Type: application/json';
const TYPES: Part<readonly string[]> = [
  ['a good media type', [GOOD_TYPE], []],
  ...[
    'text/plain',
    '',
    `application/json\r\n${GOOD_TYPE}`,
    'application/json; charset=""',
    'application/json; profile=x; CHARSET=us-ascii',
    'application/json; charset=latin1; charset="utf-8"',
  ].map((type) => [JSON.stringify(type), [`Content-Type: ${type}`], ['Content-Type']] as const),
];

const VALID = JSON.stringify(aCapture());
const withBytes = (...bytes: number[]) => VALID.replace('Ada', String.fromCharCode(...bytes));
const withLength = (body: string) => lines(`Content-Length: ${body.length}`, '') + body;
const inChunks = (body: string) =>
  `${lines('Transfer-Encoding: chunked', '')}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
const packed = gzipSync(VALID).toString('latin1');

/** Each character of a text stands for one byte. */
const BODIES: Part<string> = [
  ['a good body', withLength(VALID), []],
  ['a body with two faults', withLength('{"displayName":"","x":1}'), ['displayName', 'x', 'contact']],
  ['the same in chunks', inChunks('{"displayName":"","x":1}'), ['displayName', 'x', 'contact']],
  ['no body', lines(''), ['body']],
  ['a body that is too long', withLength(' '.repeat(40_000)), ['body']],
  ['the same in chunks', inChunks(' '.repeat(40_000)), ['body']],
  ...['GZIP', 'identity, gzip'].flatMap((coding) =>
    [packed, VALID, '{}'].map((body) => {
      const text = lines(`Content-Encoding: ${coding}`) + withLength(body);
      return [`a body with Content-Encoding: ${coding}`, text, ['Content-Encoding']] as const;
    }),
  ),
  ...Object.entries({
    'a list': '[]',
    'a text': '"text"',
    null: 'null',
    'a body that is cut off': VALID.slice(0, -1),
    'a comma too many': VALID.replace(/\}$/, ',}'),
    'two documents': VALID + VALID,
    'a bare control character': '{"displayName":"A\u0001"}',
    'a byte that begins nothing': withBytes(0xff),
    'a surrogate in UTF-8': withBytes(0xed, 0xa0, 0x80),
    'Latin-1': withBytes(0xeb),
    'UTF-16': Buffer.from(`\ufeff${VALID}`, 'utf16le').toString('latin1'),
    'compressed JSON': packed,
  }).map(([name, body]) => [name, withLength(body), ['body']] as const),
];

/** Each fault alone, and together with a fault in each other part. */
const CREATIONS = [KEYS, TYPES, BODIES].flatMap((part, at) =>
  part
    .slice(1)
    .flatMap((fault) => [0, 1].map((other) => [KEYS, TYPES, BODIES].map((each) => each[other]).with(at, fault))),
);

test.each(CREATIONS.map((parts) => ({ parts, names: parts.map((part) => part?.[0]).join(' and ') })))(
  'a creation with $names reports all its faults together',
  { tags: ['2.5.together', '4.1.headers', '4.1.body'] },
  async ({ parts }) => {
    const [key = [], type = [], rest] = parts.map((part) => part?.[1] ?? []);
    const head = lines(`POST ${LEADS} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${secret}`, ...key, ...type);
    const response = await rawRequest(service.url, Buffer.from(head + rest, 'latin1'));
    const fields = parts.flatMap((part) => part?.[2] ?? []);
    await expectProblem(response, 400, 'integration_invalid_request', fields);
  },
);

const LIMITS = ['0', '101', 'x', '1&limit=2'];
const CURSORS = [
  'Zm9yZ2Vk',
  'FOREIGN',
  '',
  'a.b',
  'a'.repeat(513),
  `${'A'.repeat(42)}%2B%2F`,
  'a%0A',
  '%00',
  'a&cursor=b',
];

test('a list request reports all its faults together', {
  tags: ['2.5.together', '4.3.limit', '4.3.cursor', '4.3.own-cursor', '4.3.parameters'],
}, async () => {
  const refused = async (query: string, fields: readonly string[]) => {
    const response = await service.get(secret, query.replace('FOREIGN', foreignCursor));
    await expectProblem(response, 400, 'integration_invalid_request', fields);
  };
  for (const limit of LIMITS) {
    await refused(`?limit=${limit}`, ['limit']);
    for (const cursor of CURSORS) await refused(`?limit=${limit}&cursor=${cursor}`, ['limit', 'cursor']);
  }
  for (const cursor of CURSORS) await refused(`?cursor=${cursor}`, ['cursor']);
});

describe('an invalid address', () => {
  test('an invalid address is reported before a missing key, path or method', { tags: ['7.order'] }, async () => {
    for (const path of [LEADS, `${LEADS}/${UUID}`, '/v1/nowhere', '/healthz', '/']) {
      for (const rest of ['/%zz', '?%zz', '?limit=1&x=%', '?cursor=%C0%AF']) {
        for (const method of ['GET', 'POST', 'DELETE']) {
          const request = lines(`${method} ${path}${rest} HTTP/1.1`, 'Host: a', '');
          await expectProblem(await rawRequest(service.url, request), 400, 'integration_invalid_request', []);
        }
      }
    }
  });

  test('a request with an invalid address does not count against the quota', { tags: ['8.counted'] }, async () => {
    const left = async () => Number(/r=(\d+)/.exec((await service.get(secret)).headers.get('ratelimit') ?? '')?.[1]);
    const before = await left();
    expect((await service.get(secret, '?%zz')).headers.has('ratelimit')).toBe(false);
    expect(await left()).toBe(before - 1);
  });
});
