import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { tokenHash } from '../../../src/callers-file.ts';
import {
  aCapture,
  aService,
  CORE_TOKEN,
  expectProblem,
  LEADS,
  readLead,
  type StudioWithKey,
} from '../../support/service.ts';

const service = aService({ gateway: { QUOTA_WINDOW_SECONDS: '3600' } });
let studio: StudioWithKey;
/** Keys that the gateway has seen as valid. The second one has used up its quota. */
let known: StudioWithKey;
let usedUp: StudioWithKey;
beforeAll(async () => {
  [studio, known, usedUp] = [
    await service.aStudioWithKey(),
    await service.aStudioWithKey(),
    await service.aStudioWithKey(),
  ];
  await service.directory.putApiKeyQuota({ ...usedUp, quotaLimit: 1 });
  for (const { secret } of [known, usedUp]) expect((await service.get(secret)).status).toBe(200);
});

const folder = mkdtempSync(join(tmpdir(), 'lead-intake-'));
afterAll(() => rmSync(folder, { recursive: true }));
/** A callers file that gives the gateway a role other than `gateway`. */
const callersFile = join(folder, 'callers.json');
const gateway = { may: ['read'], tokens: [{ sha256: tokenHash(CORE_TOKEN) }] };
writeFileSync(callersFile, JSON.stringify({ callers: { gateway } }));

test.each<[string, Record<string, string>?]>([
  ['is away'],
  ['refuses the token', { CORE_TOKEN: 'another token than that of the gateway' }],
  ['gives the gateway another role', { CORE_CALLERS_FILE: callersFile }],
])(
  'while the core %s, requests that need it get 503 and write nothing',
  { tags: ['7.integration_unavailable', '7.wait', '7.order', '7.unknown-outcome', '8.quota-headers', '10.health'] },
  async (_, settings) => {
    const [capture, key] = [aCapture(), { 'idempotency-key': randomUUID() }];
    await service.stopCore();
    if (settings) await service.startCore(settings);

    for (const { secret } of [studio, known]) {
      for (const answer of [
        service.post(secret, capture, key),
        service.post(secret, '{'),
        service.get(secret, `/${randomUUID()}`),
        service.get(secret, '/42'),
        service.get(secret),
      ])
        await expectProblem(await answer, 503, 'integration_unavailable', []);
    }
    await expectProblem(await service.get(`${studio.secret}x`), 401, 'integration_key_invalid');
    await expectProblem(await fetch(service.url + LEADS), 401, 'integration_key_invalid');
    await expectProblem(await service.get(studio.secret, '/'), 404, 'route_not_found');
    await expectProblem(await fetch(service.url + LEADS, { method: 'DELETE' }), 405, 'method_not_allowed');
    await expectProblem(await service.get(usedUp.secret), 429, 'integration_rate_limited', []);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    await expect.poll(async () => (await fetch(`${service.url}/readyz`)).status).toBe(503);
    const { detail } = await expectProblem(await fetch(`${service.url}/readyz`), 503, 'integration_unavailable');
    expect(detail).toBe('Not ready: the core does not serve.');

    if (settings) await service.stopCore();
    await service.startCore();
    const served = async () => [
      (await service.get(known.secret)).status,
      (await fetch(`${service.url}/readyz`)).status,
    ];
    await vi.waitFor(async () => expect(await served()).toEqual([200, 200]), { timeout: 100_000 });
    const leads = await service.countLeads(studio.studioId);
    const response = await service.post(studio.secret, capture, key);
    expect(response.headers.has('idempotent-replayed')).toBe(false);
    await readLead(response, 201);
    expect(await service.countLeads(studio.studioId)).toBe(leads + 1);
  },
);
