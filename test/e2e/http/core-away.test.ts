import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { times } from '../../support/builders.ts';
import {
  aCapture,
  aSeparateService,
  aService,
  expectProblem,
  LEADS,
  leadOf,
  type StudioWithKey,
} from '../../support/service.ts';

const service = aService();
let studio: StudioWithKey;
beforeAll(async () => {
  studio = await service.aStudioWithKey();
});

/** Waits until the gateway has reconnected to the core, and is ready. */
async function served(): Promise<void> {
  const statuses = async () => [
    (await service.get(studio.secret)).status,
    (await fetch(`${service.url}/readyz`)).status,
  ];
  await vi.waitFor(async () => expect(await statuses()).toEqual([200, 200]), { timeout: 100_000 });
}

// @proves crashes-28
describe('while the core is away', () => {
  beforeAll(() => service.stopCore());
  afterAll(async () => {
    await service.startCore();
    await served();
  });

  test.each([
    ['createLead', () => service.post(studio.secret, aCapture())],
    ['createLead, with an invalid body', () => service.post(studio.secret, '{')],
    ['getLead', () => service.get(studio.secret, `/${randomUUID()}`)],
    ['listLeads', () => service.get(studio.secret)],
  ])(
    '%s is refused with 503 and a time to wait',
    { tags: ['7.integration_unavailable', '7.wait'] },
    async (_, call) => {
      await expectProblem(await call(), 503, 'integration_unavailable', []);
    },
  );

  test.each([
    ['a malformed key', 401, 'integration_key_invalid', () => service.get(`${studio.secret}x`)],
    ['a missing key', 401, 'integration_key_invalid', () => fetch(service.url + LEADS)],
    ['an unknown path', 404, 'route_not_found', () => service.get(studio.secret, '/')],
    ['a wrong method', 405, 'method_not_allowed', () => fetch(service.url + LEADS, { method: 'DELETE' })],
  ])('what needs no core is refused as usual: %s', { tags: ['7.order'] }, async (_, status, code, call) => {
    await expectProblem(await call(), status, code);
  });

  test('a key whose quota is used up is refused as usual', { tags: ['7.order', '8.quota-headers'] }, async () => {
    const limited = await aSeparateService({ gateway: { QUOTA_LIMIT: '1' } });
    const { secret } = await limited.aStudioWithKey();
    expect((await limited.get(secret)).headers.get('ratelimit')).toMatch(/r=0;/);
    await limited.stopCore();

    await expectProblem(await limited.get(secret), 429, 'integration_rate_limited', []);
  });

  test('the gateway is alive and not ready', { tags: ['10.health'] }, async () => {
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    await expect.poll(async () => (await fetch(`${service.url}/readyz`)).status).toBe(503);
    const { detail } = await expectProblem(await fetch(`${service.url}/readyz`), 503, 'integration_unavailable');
    expect(detail).toBe('Not ready: the core does not serve.');
  });
});

// @proves crashes-28
describe('when the core is back', () => {
  test('everything is served again, and no refused request was written', {
    tags: ['7.unknown-outcome'],
  }, async () => {
    const [capture, key] = [aCapture(), { 'idempotency-key': randomUUID() }];
    await service.stopCore();
    for (const _ of times(5, () => 0)) {
      await expectProblem(await service.post(studio.secret, capture, key), 503, 'integration_unavailable');
    }
    await service.startCore();
    await served();

    expect(await service.countLeads(studio.studioId)).toBe(0);
    const response = await service.post(studio.secret, capture, key);
    expect(response.headers.has('idempotent-replayed')).toBe(false);
    const { id } = await leadOf(response, 201);
    expect((await service.get(studio.secret, `/${id}`)).status).toBe(200);
    expect(await service.countLeads(studio.studioId)).toBe(1);
  });
});
