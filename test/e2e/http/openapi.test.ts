import { expect, test } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };
import { document, PUBLIC_URL } from '../../support/documented.ts';
import { aService } from '../../support/service.ts';

const service = aService();

const PATH = '/v1/openapi.json';

test('the public OpenAPI document is the one that responses are checked against', {
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
  expect(document).toMatchObject({
    openapi: '3.1.0',
    info: { version: packageJson.version },
    servers: [{ url: PUBLIC_URL }],
  });
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

/** The contents of `/v1` since its first release, sorted; additions need a new version in the path. */
const FROZEN = {
  Lead: ['createdAt', 'displayName', 'id', 'note', 'sourceId', 'stage', 'updatedAt'],
  LeadStage: ['contacted', 'lost', 'new', 'trial_attended', 'trial_booked', 'won'],
  ProblemCode: [
    'integration_idempotency_conflict',
    'integration_invalid_request',
    'integration_issuer_forbidden',
    'integration_key_invalid',
    'integration_lead_already_open',
    'integration_lead_not_found',
    'integration_rate_limited',
    'integration_rate_unavailable',
    'integration_scope_forbidden',
    'integration_source_invalid',
    'integration_unavailable',
    'internal_error',
    'method_not_allowed',
    'route_not_found',
    'subscription_suspended',
  ],
};

test('the fields of leads, the stages and the codes are those of the first release', { tags: ['9.frozen'] }, () => {
  const { Lead, LeadStage, ProblemCode } = document.components.schemas as Readonly<
    Record<string, { readonly properties: object; readonly enum: readonly string[] }>
  >;
  const named = [Object.keys(Lead?.properties ?? {}), LeadStage?.enum, ProblemCode?.enum].map((list) =>
    list?.toSorted(),
  );
  expect(named).toEqual([FROZEN.Lead, FROZEN.LeadStage, FROZEN.ProblemCode]);
});
