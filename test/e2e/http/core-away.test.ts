import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { tokenHash } from '../../../src/callers-file.ts';
import { times } from '../../support/builders.ts';
import {
  aCapture,
  aSeparateService,
  aService,
  CORE_TOKEN,
  expectProblem,
  LEADS,
  leadOf,
  type StudioWithKey,
} from '../../support/service.ts';

const service = aService();
let studio: StudioWithKey;
/** A key that the gateway has seen valid. */
let known: StudioWithKey;
beforeAll(async () => {
  [studio, known] = [await service.aStudioWithKey(), await service.aStudioWithKey()];
});

const folder = mkdtempSync(join(tmpdir(), 'lead-intake-'));
afterAll(() => rmSync(folder, { recursive: true }));
/** A callers file in which the gateway has another role than `gateway`. */
const callersFile = join(folder, 'callers.json');
const gateway = { may: ['read'], tokens: [{ sha256: tokenHash(CORE_TOKEN) }] };
writeFileSync(callersFile, JSON.stringify({ callers: { gateway } }));

/** Waits until the gateway has reconnected to the core, and is ready. */
async function served(): Promise<void> {
  const statuses = async () => [
    (await service.get(studio.secret)).status,
    (await fetch(`${service.url}/readyz`)).status,
  ];
  await vi.waitFor(async () => expect(await statuses()).toEqual([200, 200]), { timeout: 100_000 });
}

// @proves crashes-28
describe.each<[string, restart?: () => Promise<void>]>([
  ['is away'],
  ['refuses the token', () => service.startCore({ CORE_TOKEN: 'another token than that of the gateway' })],
  ['has no such role for the caller', () => service.startCore({ CORE_CALLERS_FILE: callersFile })],
])('while the core %s', (_, restart) => {
  beforeAll(async () => {
    expect((await service.get(known.secret)).status).toBe(200);
    await service.stopCore();
    await restart?.();
  });
  afterAll(async () => {
    if (restart) await service.stopCore();
    await service.startCore();
    await served();
  });

  test.each<[string, (secret: string) => Promise<Response>]>([
    ['createLead', (secret) => service.post(secret, aCapture())],
    ['createLead, with an invalid body', (secret) => service.post(secret, '{')],
    ['getLead', (secret) => service.get(secret, `/${randomUUID()}`)],
    ['getLead, with an invalid id', (secret) => service.get(secret, '/42')],
    ['listLeads', (secret) => service.get(secret)],
  ])(
    '%s is refused with 503 and a time to wait, with a key that the gateway has seen or not',
    { tags: ['7.integration_unavailable', '7.wait', '7.order'] },
    async (_, call) => {
      for (const { secret } of [studio, known])
        await expectProblem(await call(secret), 503, 'integration_unavailable', []);
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
