import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { type EndpointSettings, parseEndpoints } from '../../relay/endpoints-file.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLwSw';
const GOOD = { url: 'https://crm.example.org/hooks?token=canary', secrets: [SECRET] };

const file = (endpoint: unknown, name = 'crm') => JSON.stringify({ endpoints: { [name]: endpoint } });

test('an endpoint has a consumer, an address and secrets; it is thin and not private by default', () => {
  const parsed = parseEndpoints(file(GOOD));
  const { url, secrets, ...others } = parsed.get('crm') as EndpointSettings;
  expect([[...parsed.keys()], url.reveal(), secrets.map((each) => each.reveal())]).toEqual([
    ['crm'],
    GOOD.url,
    [SECRET],
  ]);
  expect(others).toEqual({ payload: 'thin', allowPrivate: false });
});

test('an endpoints file can set all choices', () => {
  const chosen = {
    ...GOOD,
    secrets: [SECRET, SECRET, SECRET],
    payload: 'full',
    kinds: ['created', 'enquired'],
    allowPrivate: true,
  };
  expect(parseEndpoints(file(chosen)).get('crm')).toMatchObject({
    payload: 'full',
    kinds: ['created', 'enquired'],
    allowPrivate: true,
  });
});

test('an endpoints file has from 0 to 16 endpoints', () => {
  const many = (count: number) =>
    JSON.stringify({ endpoints: Object.fromEntries(Array.from({ length: count }, (_, index) => [`e${index}`, GOOD])) });
  expect(parseEndpoints(many(0)).size).toBe(0);
  expect(parseEndpoints(many(16)).size).toBe(16);
  expect(() => parseEndpoints(many(17))).toThrow(/there are more than 16 endpoints/);
});

// @proves relay-10
describe('an invalid endpoints file is refused without quoting a secret or an address', () => {
  test.each<[RegExp, string]>([
    [/^is not JSON$/, ''],
    [/^is not JSON$/, `{"endpoints": {"crm": {"url": "${GOOD.url}", "secrets": ["${SECRET}"]}`],
    [/the file must be object/, '[]'],
    [/required property 'endpoints'/, '{}'],
    [/the file has another field than endpoints$/, '{"endpoints": {}, "endpoint": {}}'],
    [/name of its consumer/, file(GOOD, 'CRM')],
    [/has crm twice/, `{"endpoints": {"crm": ${JSON.stringify(GOOD)}, "crm": ${JSON.stringify(GOOD)}}}`],
    [
      /has url twice/,
      `{"endpoints": {"crm": {"url": "https://a.example", "url": "${GOOD.url}", "secrets": ["${SECRET}"]}}}`,
    ],
    [/crm must have required property 'url'/, file({ secrets: [SECRET] })],
    [/crm must have required property 'secrets'/, file({ url: GOOD.url })],
    [/crm has another field than url, secrets, payload, kinds, allowPrivate$/, file({ ...GOOD, allow_private: true })],
    [/crm\/url must be an https:\/\/ address/, file({ ...GOOD, url: 'http://crm.example.org/canary' })],
    [/crm\/url must be an https:\/\/ address/, file({ ...GOOD, url: 'https://user:canary@crm.example.org' })],
    [/crm\/url must be an https:\/\/ address/, file({ ...GOOD, url: 'https://crm.example.org/#canary' })],
    [/crm\/url must be an https:\/\/ address/, file({ ...GOOD, url: 'https://crm.example.org:canary/' })],
    [/crm\/url must be string/, file({ ...GOOD, url: 7 })],
    [/crm\/secrets must NOT have fewer than 1/, file({ ...GOOD, secrets: [] })],
    [/crm\/secrets must NOT have more than 3/, file({ ...GOOD, secrets: Array(4).fill(SECRET) })],
    [/crm\/secrets\/0 must be whsec_/, file({ ...GOOD, secrets: ['canary'] })],
    [/crm\/secrets\/0 must be whsec_/, file({ ...GOOD, secrets: [`whsec_${Buffer.alloc(23).toString('base64')}`] })],
    [/crm\/secrets\/0 must be whsec_/, file({ ...GOOD, secrets: [`whsec_${Buffer.alloc(65).toString('base64')}`] })],
    [/crm\/secrets\/1 must be whsec_/, file({ ...GOOD, secrets: [SECRET, 'whsk_canary'] })],
    [/crm\/payload must be one of thin, full/, file({ ...GOOD, payload: 'canary' })],
    [/crm\/kinds\/0 must be one of created/, file({ ...GOOD, kinds: ['erased'] })],
    [/crm\/kinds must NOT have fewer/, file({ ...GOOD, kinds: [] })],
    [/crm\/allowPrivate must be boolean/, file({ ...GOOD, allowPrivate: 'yes' })],
  ])('an invalid endpoints file is refused: %s: %s', (reason, text) => {
    let fault = '';
    try {
      parseEndpoints(text);
    } catch (error) {
      fault = (error as Error).message;
    }
    expect(fault).toMatch(reason);
    expect(fault).not.toMatch(/canary|MfKQ9r8G/);
  });

  test('parsed endpoints show neither a secret nor an address', () => {
    const endpoints = parseEndpoints(file(GOOD));
    expect(inspect(endpoints, { depth: 9 }) + JSON.stringify([...endpoints])).not.toMatch(/canary|MfKQ9r8G/);
  });
});

test.each([24, 64])('a secret of %i bytes is valid', (bytes) => {
  expect(parseEndpoints(file({ ...GOOD, secrets: [`whsec_${Buffer.alloc(bytes, 7).toString('base64')}`] })).size).toBe(
    1,
  );
});
