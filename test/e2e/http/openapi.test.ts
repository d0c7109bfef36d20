import { beforeAll, describe, expect, test } from 'vitest';
import { document, expectDocumentedAnswer, PUBLIC_URL } from '../../support/documented.ts';
import { aService, LEADS } from '../../support/service.ts';

const service = aService();

const PATH = '/v1/openapi.json';

test('the OpenAPI document is public, and is the one that responses are checked against', {
  tags: ['10.openapi'],
}, async () => {
  const response = await fetch(service.url + PATH);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/json');
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(response.headers.has('ratelimit')).toBe(false);
  expect(await response.json()).toEqual(document);
});

test('the OpenAPI document has the version, the operations and the server address', {
  tags: ['9.version'],
}, () => {
  expect(document).toMatchObject({ openapi: '3.1.0', info: { version: '1.0.0' }, servers: [{ url: PUBLIC_URL }] });
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, security }]) => [operationId, method, path, security]),
  );
  expect(operations).toEqual([
    ['createLead', 'post', '/v1/integrations/leads', [{ apiKey: ['leads.create'] }]],
    ['listLeads', 'get', '/v1/integrations/leads', [{ apiKey: ['leads.read'] }]],
    ['getLead', 'get', '/v1/integrations/leads/{id}', [{ apiKey: ['leads.read'] }]],
  ]);
  expect(document.components.securitySchemes).toMatchObject({ apiKey: { type: 'http', scheme: 'bearer' } });
});

describe('the check of responses against the document fails on', () => {
  let body: Record<string, unknown>;
  let headers: Record<string, string>;
  beforeAll(async () => {
    const { secret } = await service.aStudioWithKey();
    const response = await service.get(secret, '?limit=0');
    body = (await response.json()) as typeof body;
    headers = Object.fromEntries(response.headers);
  });

  const held = (status: number, changes: { body?: object; headers?: Record<string, string> } = {}) => {
    const answer = new Response(JSON.stringify({ ...body, ...changes.body }), {
      status,
      headers: { ...headers, ...changes.headers },
    });
    return expectDocumentedAnswer('GET', LEADS, answer);
  };

  test('nothing in the unchanged response', () => held(400));

  test.each<[string, () => Promise<void>, RegExp]>([
    ['another status', () => held(418, { body: { status: 418 } }), /not documented to return 418/],
    ['another status in the body', () => held(400, { body: { status: 409 } }), /the body has status 409/],
    [
      "another operation's code",
      () => held(400, { body: { code: 'integration_source_invalid' } }),
      /integration_source_invalid is not documented/,
    ],
    ['a property more', () => held(400, { body: { more: 1 } }), /additional properties/],
    ['a property less', () => held(400, { body: { title: undefined } }), /required property 'title'/],
    ['another media type', () => held(400, { headers: { 'content-type': 'application/json' } }), /application\/json/],
    ['a header more', () => held(400, { headers: { 'x-more': '1' } }), /undocumented headers: x-more/],
    [
      'a header of another form',
      () => held(400, { headers: { ratelimit: '5' } }),
      /RateLimit does not match its schema/,
    ],
    ['a header less', () => held(400, { headers: { 'x-request-id': '' } }), /X-Request-Id does not match its schema/],
  ])('%s', async (_, answer, reason) => {
    await expect(answer()).rejects.toThrow(reason);
  });
});
