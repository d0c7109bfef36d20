import { expect, test } from 'vitest';
import { lines, rawRequest } from '../../support/raw-http.ts';
import { aService, expectProblem, LEADS } from '../../support/service.ts';

const service = aService({ deadlines: { requestArrivalMs: 1000 } });

// @proves node-5 fastify-4 bounds-4
test('a request that stalls in the middle of its body gets 408 in problem+json', { tags: ['7.no-http'] }, async () => {
  const { secret, studioId } = await service.aStudioWithKey();
  const head = lines(
    `POST ${LEADS} HTTP/1.1`,
    'Host: leads.example.test',
    `Authorization: Bearer ${secret}`,
    'Idempotency-Key: 0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c11',
    'Content-Type: application/json',
    'Content-Length: 100',
    'X-Request-Id: mine',
    '',
  );
  const response = await rawRequest(service.url, `${head}{"displayName":`);
  await expectProblem(response, 408, 'integration_invalid_request', []);
  expect(response.headers.get('x-request-id')).toBe('mine');
  expect(response.headers.get('ratelimit')).toMatch(/r=\d+/);
  expect(response.headers.get('connection')).toBe('close');
  expect(await service.countLeads(studioId)).toBe(0);
  expect((await service.get(secret)).status).toBe(200);
});
