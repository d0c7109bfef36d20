import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { MemberRole, StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import {
  aCapture,
  anEmail,
  anOwnService,
  aService,
  expectProblem,
  LEADS,
  type StudioWithKey,
} from '../../support/service.ts';

const service = aService({ gateway: { QUOTA_LIMIT: '3', QUOTA_WINDOW_SECONDS: '3600' } });

type Meeting = (studio: StudioWithKey) => Promise<Response>;

/** Ways to meet each code of the contract's table. */
const CODES: readonly [code: string, status: number, meet: Meeting][] = [
  ['integration_invalid_request', 400, ({ secret }) => service.post(secret, aCapture({ extra: 1 }))],
  ['integration_source_invalid', 400, ({ secret }) => service.post(secret, aCapture({ sourceId: randomUUID() }))],
  ['integration_key_invalid', 401, () => fetch(service.url + LEADS)],
  [
    'subscription_suspended',
    402,
    async ({ studioId: id, secret }) => {
      await service.directory.putStudio({ studio: { id, status: StudioStatus.SUSPENDED } });
      return service.get(secret);
    },
  ],
  [
    'integration_scope_forbidden',
    403,
    async () => {
      const { secret } = await service.aStudioWithKey({ scopes: [ApiKeyScope.LEADS_CREATE] });
      return service.get(secret);
    },
  ],
  [
    'integration_issuer_forbidden',
    403,
    async ({ studioId, memberId, secret }) => {
      await service.directory.putMember({ member: { studioId, id: memberId, role: MemberRole.STAFF } });
      return service.get(secret);
    },
  ],
  ['integration_lead_not_found', 404, ({ secret }) => service.get(secret, `/${randomUUID()}`)],
  [
    'integration_idempotency_conflict',
    409,
    async ({ secret }) => {
      const key = { 'idempotency-key': randomUUID() };
      await service.post(secret, aCapture(), key);
      return service.post(secret, aCapture(), key);
    },
  ],
  [
    'integration_lead_already_open',
    409,
    async ({ secret }) => {
      const contact = anEmail();
      await service.post(secret, aCapture({ contact }));
      return service.post(secret, aCapture({ contact }));
    },
  ],
  [
    'integration_rate_limited',
    429,
    async ({ secret }) => {
      let response: Response;
      do response = await service.get(secret);
      while (response.ok);
      return response;
    },
  ],
  ['route_not_found', 404, () => fetch(`${service.url}/v1/nothing`)],
  ['method_not_allowed', 405, () => fetch(service.url + LEADS, { method: 'DELETE' })],
];

describe('an error', () => {
  test.each(CODES)(
    'keeps every rule of the contract, and always has the same title: %s',
    { tags: ['1.media-types', '2.5.type', '2.5.title', '2.5.status', '2.5.code', '2.5.detail', '2.5.requestId'] },
    async (code, status, meet) => {
      const [first, second] = [
        await expectProblem(await meet(await service.aStudioWithKey()), status, code),
        await expectProblem(await meet(await service.aStudioWithKey()), status, code),
      ];
      expect(second).toMatchObject({ type: first.type, title: first.title });
      expect(second.requestId).not.toBe(first.requestId);
    },
  );

  test('keeps every rule of the contract when it is internal_error, and tells nothing of the fault', {
    tags: ['2.5.discreet', '7.internal_error'],
  }, async () => {
    const misled = await anOwnService({ gateway: { CORE_TOKEN: 'not the one that the core was given' } });
    const { secret } = await misled.aStudioWithKey();
    const problem = await expectProblem(await misled.get(secret), 500, 'internal_error', []);
    expect(JSON.stringify(problem)).not.toMatch(/token|core|unauthenticated|connect/i);
  });

  test('shares its type and its title with no other code', async () => {
    const problems = await Promise.all(
      CODES.map(async ([code, status, meet]) =>
        expectProblem(await meet(await service.aStudioWithKey()), status, code),
      ),
    );
    expect(new Set(problems.map(({ type }) => type)).size).toBe(CODES.length);
    expect(new Set(problems.map(({ title }) => title)).size).toBe(CODES.length);
  });
});
