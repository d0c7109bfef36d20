import { METHODS } from 'node:http';
import { expect, test } from 'vitest';
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

test.each([
  [LEADS, 'GET, POST', methodsBut('GET', 'POST', 'HEAD')],
  [ONE, 'GET', methodsBut('GET', 'HEAD')],
  [`${LEADS}/no-uuid`, 'GET', ['PUT', 'POST', 'DELETE']],
  ['/healthz', 'GET', ['POST', 'QUERY', 'OPTIONS']],
  ['/readyz', 'GET', ['POST', 'QUERY', 'OPTIONS']],
])(
  'an unsupported method gets 405 and Allow, without a key and with any body: %s',
  { tags: ['7.method_not_allowed', '7.order'] },
  async (path, allow, methods) => {
    for (const [index, method] of methods.entries()) {
      const response = await send(method, path, ['', '{', '{}'][index % 3]);
      expect(response.headers.get('allow')).toBe(allow);
      await expectProblem(response, 405, 'method_not_allowed', []);
    }
    const { status, headers } = await send('HEAD', path, '');
    expect([status, headers.get('allow')]).toEqual([405, allow]);
    expect(headers.get('content-type')).toBe('application/problem+json');
    expect(headers.get('x-request-id')).toMatch(/./);
  },
);

// @proves fastify-5
test('an unknown path gets 404, without a key and with any method and body', {
  tags: ['7.route_not_found', '7.order'],
}, async () => {
  for (const path of [
    '/',
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
  ]) {
    for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS', 'QUERY']) {
      await expectProblem(await send(method, path), 404, 'route_not_found', []);
    }
  }
});
