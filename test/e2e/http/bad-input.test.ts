import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { aCapture, anEmail, aService, expectProblem, leadOf } from '../../support/service.ts';

const service = aService();

/** Expects a body to be refused, for exactly these fields if given, and nothing to be written. */
async function expectRefused(body: unknown, fields?: readonly string[], headers: Record<string, string | null> = {}) {
  const { secret, studioId } = await service.aStudioWithKey();
  const response = await service.post(secret, body, headers);
  const problem = await expectProblem(response, 400, 'integration_invalid_request', fields);
  expect(await service.countLeads(studioId)).toBe(0);
  return problem;
}

/** The text of a valid body with more properties in front, as they would be written in JSON. */
const bodyWith = (properties: string) => JSON.stringify(aCapture()).replace('{', `{${properties},`);

const UUID = '0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c11';

// @proves fastify-1
test.each<[string, string, Record<string, unknown>[]]>([
  ['displayName', 'displayName', [undefined, null, 1, true, [], {}, ['Ada']].map((displayName) => ({ displayName }))],
  [
    'contact',
    'contact',
    [undefined, null, 1, true, 'ada@example.org', [], [anEmail()]].map((contact) => ({ contact })),
  ],
  ['sourceId', 'sourceId', [1, 0, false, [], {}, [UUID]].map((sourceId) => ({ sourceId }))],
  ['note', 'note', [1, 0, false, [], {}, ['x']].map((note) => ({ note }))],
  [
    'type of the contact',
    'contact.type',
    [undefined, null, 1, true, [], {}, ['email']].map((type) => ({ contact: { type, value: 'ada@example.org' } })),
  ],
  [
    'email address',
    'contact.value',
    [undefined, null, 1, true, [], {}, ['a@b']].map((value) => ({ contact: { type: 'email', value } })),
  ],
  [
    'phone number',
    'contact.value',
    [undefined, null, 12345, true, [], {}, ['12345']].map((value) => ({ contact: { type: 'phone', value } })),
  ],
])(
  'a missing value or one of the wrong type is refused with its field, and nothing is written: %s',
  { tags: ['2.2.displayName', '2.2.contact', '2.2.sourceId', '2.2.note', '4.1.5', '7.integration_invalid_request'] },
  async (_, field, all) => {
    for (const overrides of all) await expectRefused(aCapture(overrides), [field]);
  },
);

const UNUSUAL_NAMES = ['extra', '__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '', 'a/b', '~1'];

// @proves fastify-1
describe('an unknown property', () => {
  // @proves node-25
  test.each([
    ...UNUSUAL_NAMES,
    'id',
    'stage',
    'studioId',
    'idempotencyKey',
    'DisplayName',
    'display_name',
    'displayName ',
  ])(
    'of the body is refused with its name, and nothing is written: "%s"',
    { tags: ['2.2.nothing-else', '2.5.fields', '4.1.5', '7.integration_invalid_request'] },
    async (name) => {
      for (const value of ['null', '"x"', '{"a":1}']) {
        await expectRefused(bodyWith(`${JSON.stringify(name)}:${value}`), [name]);
      }
    },
  );

  // @proves bounds-8
  test('is refused when there are many, of which the response names 50', { tags: ['2.5.together'] }, async () => {
    const many = Array.from({ length: 90 }, (_, index) => `"x${index}":0`).join();
    const { fields = {} } = await expectRefused(bodyWith(many));
    expect(Object.keys(fields)).toHaveLength(50);
  });

  test('with half a surrogate pair in its name leaves a body that a strict parser reads', async () => {
    const { secret } = await service.aStudioWithKey();
    const response = await service.post(secret, bodyWith('"\\ud800":0,"\\udc00x":0'));
    const text = await response.text();
    expect(text).not.toMatch(/\\ud[89a-f]/i);
    expect(Object.keys(JSON.parse(text).fields)).toEqual(['\ufffd', '\ufffdx']);
  });

  test('named like the prototype provides no missing values', { tags: ['2.2.nothing-else'] }, async () => {
    await expectRefused(`{"__proto__":${JSON.stringify(aCapture())}}`, ['__proto__', 'displayName', 'contact']);
    await expectRefused(`{"displayName":"Ada","contact":{"__proto__":${JSON.stringify(anEmail())}}}`, [
      'contact.__proto__',
      'contact.type',
      'contact.value',
    ]);
  });
});

test.each(['[]', '"text"', '-0', 'null', `[${JSON.stringify(aCapture())}]`])(
  'a body that is not a JSON object is refused: %s',
  { tags: ['4.1.body'] },
  async (body) => {
    await expectRefused(body, ['body']);
  },
);

const VALID = JSON.stringify(aCapture());
const withBytes = (...bytes: number[]) =>
  Buffer.concat([
    Buffer.from('{"displayName":"'),
    Buffer.from(bytes),
    Buffer.from('","contact":{"type":"email","value":"a@b"}}'),
  ]);

test.each<[string, string | Buffer]>([
  ['nothing', ''],
  ['cut off', VALID.slice(0, -1)],
  ['a comma too many', VALID.replace(/\}$/, ',}')],
  ['single quotes', VALID.replaceAll('"', "'")],
  ['two documents', VALID + VALID],
  ['NaN', bodyWith('"note":NaN')],
  ['a bare control character in a text', '{"displayName":"A\u0001"}'],
  ['a broken escape', '{"displayName":"\\x41"}'],
  ['a byte that begins nothing', withBytes(0xff)],
  ['a surrogate in UTF-8', withBytes(0xed, 0xa0, 0x80)],
  ['Latin-1', Buffer.from(JSON.stringify(aCapture({ displayName: 'Zoë' })), 'latin1')],
  ['UTF-16', Buffer.from(`\ufeff${VALID}`, 'utf16le')],
  ['compressed', gzipSync(VALID)],
])('a body that is not JSON in UTF-8 is refused: %s', { tags: ['4.1.body'] }, async (_, body) => {
  await expectRefused(body, ['body']);
});

test('a byte order mark before the JSON is ignored', async () => {
  const { secret } = await service.aStudioWithKey();
  await leadOf(await service.post(secret, `\ufeff${JSON.stringify(aCapture())}`), 201);
});

test('the last value of a duplicate property counts, and is validated', { tags: ['4.1.body'] }, async () => {
  const { secret } = await service.aStudioWithKey();
  const contact = JSON.stringify(anEmail());

  const lead = await leadOf(
    await service.post(secret, `{"displayName":1,"displayName":"Ada","contact":${contact}}`),
    201,
  );

  expect(lead.displayName).toBe('Ada');
  await expectRefused(`{"displayName":"Ada","displayName":1,"contact":${contact}}`, ['displayName']);
  await expectRefused(`{"displayName":"Ada","contact":${contact},"contact":{"type":"email"}}`, ['contact.value']);
});

describe('text', () => {
  test.each([
    ['a high surrogate alone', String.raw`\ud800`],
    ['NUL', String.raw`\u0000`],
  ])(
    'that is not Unicode, or has a NUL, is refused with its field, and nothing is written: %s',
    { tags: ['2.2.unicode'] },
    async (_, escaped) => {
      const email = JSON.stringify(anEmail());
      const cases: [string, string][] = [
        ['displayName', `{"displayName":"Ada${escaped}","contact":${email}}`],
        ['note', `{"displayName":"Ada","contact":${email},"note":"x${escaped}y"}`],
        ['contact.value', `{"displayName":"Ada","contact":{"type":"email","value":"a${escaped}@example.org"}}`],
        ['contact.value', `{"displayName":"Ada","contact":{"type":"phone","value":"12345${escaped}"}}`],
        ['sourceId', `{"displayName":"Ada","contact":${email},"sourceId":"${UUID}${escaped}"}`],
        ['contact.type', `{"displayName":"Ada","contact":{"type":"email${escaped}","value":"a@b"}}`],
      ];
      for (const [field, body] of cases) await expectRefused(body, [field]);
    },
  );
});

test.each([
  'application/json; charset=iso-8859-1',
  'application/json; profile=x; CHARSET=us-ascii',
  'application/json; charset=""',
])('a charset that is not UTF-8 is refused: %s', { tags: ['4.1.body'] }, async (mediaType) => {
  await expectRefused(aCapture(), ['Content-Type'], { 'content-type': mediaType });
});

test.each(['GZIP', 'identity, gzip'])(
  'a body with a Content-Encoding is refused for that alone, compressed or not: %s',
  { tags: ['4.1.body'] },
  async (coding) => {
    const packed = gzipSync(JSON.stringify(aCapture()));
    for (const body of [packed, aCapture(), {}]) {
      await expectRefused(body, ['Content-Encoding'], { 'content-encoding': coding });
    }
  },
);

describe('an Idempotency-Key', () => {
  test('in quotes, as in the IETF draft, is refused with the advice to leave them out', {
    tags: ['4.1.headers'],
  }, async () => {
    const { secret } = await service.aStudioWithKey();
    const response = await service.post(secret, aCapture(), { 'idempotency-key': `"${UUID}"` });
    const { fields } = await expectProblem(response, 400, 'integration_invalid_request', ['Idempotency-Key']);
    expect(fields?.['Idempotency-Key']).toEqual([expect.stringContaining('leave the quotes out')]);
  });
});

test('an error never contains text from the request', { tags: ['2.5.discreet'] }, async () => {
  const { secret } = await service.aStudioWithKey();
  const response = await service.post(secret, aCapture({ contact: anEmail('not.an.address'), note: 7 }));
  const text = await response.text();
  expect(text).not.toContain('not.an.address');
  expect(text).not.toContain(secret);
});
