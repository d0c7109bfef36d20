import { METHODS } from 'node:http';
import { describe, expect, test } from 'vitest';
import { lines, rawRequest } from '../../support/raw-http.ts';
import { aService, expectProblem, LEADS } from '../../support/service.ts';

const service = aService();

const ONE = `${LEADS}/0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c11`;

/** Sends a request without a key, by default with a body that is not JSON. */
const send = (method: string, path: string, body = '{') =>
  rawRequest(
    service.url,
    lines(
      `${method} ${path} HTTP/1.1`,
      'Host: leads.example.test',
      ...(body ? ['Content-Type: application/json', `Content-Length: ${body.length}`] : []),
      '',
    ) + body,
  );

// CONNECT has no path; http-faults.test.ts covers it.
const methodsBut = (...allowed: string[]) =>
  METHODS.filter((method) => method !== 'CONNECT' && !allowed.includes(method));

describe('a method that a path does not support', () => {
  test.each([
    ...methodsBut('GET', 'POST', 'HEAD').map((method) => [method, LEADS, 'GET, POST'] as const),
    ...methodsBut('GET', 'HEAD').map((method) => [method, ONE, 'GET'] as const),
    ...['PUT', 'POST', 'DELETE'].map((method) => [method, `${LEADS}/no-uuid`, 'GET'] as const),
    ...['POST', 'QUERY', 'OPTIONS'].flatMap((method) => [
      [method, '/healthz', 'GET'] as const,
      [method, '/readyz', 'GET'] as const,
    ]),
  ])(
    'gets 405 and Allow, without a key and with any body: %s %s',
    { tags: ['7.method_not_allowed', '7.order'] },
    async (method, path, allow) => {
      for (const body of ['', '{', '{}']) {
        const response = await send(method, path, body);
        expect(response.headers.get('allow')).toBe(allow);
        await expectProblem(response, 405, 'method_not_allowed', []);
      }
    },
  );

  test.each([
    [LEADS, 'GET, POST'],
    [ONE, 'GET'],
    ['/healthz', 'GET'],
  ])('gets 405 and Allow, without a body, for HEAD: %s', { tags: ['7.method_not_allowed'] }, async (path, allow) => {
    const { status, headers } = await send('HEAD', path, '');
    expect(status).toBe(405);
    expect(headers.get('allow')).toBe(allow);
    expect(headers.get('content-type')).toBe('application/problem+json');
    expect(headers.get('x-request-id')).toMatch(/./);
  });
});

// @proves fastify-5
describe('an unknown path', () => {
  test.each([
    '/',
    '/v1',
    '/v1/integrations/lead',
    `${LEADS}/`,
    `${ONE}/notes`,
    `/${LEADS}`,
    `${LEADS};v=1`,
    '/v1/integrations/Leads',
    '/v2/integrations/leads',
    '/v1%2Fintegrations%2Fleads',
    '/v1/../v1/integrations/leads',
    '/__proto__',
    '*',
  ])(
    'gets 404, without a key and with any method and body: %s',
    { tags: ['7.route_not_found', '7.order'] },
    async (path) => {
      for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS', 'QUERY']) {
        await expectProblem(await send(method, path), 404, 'route_not_found', []);
      }
    },
  );
});
