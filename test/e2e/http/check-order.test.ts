import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { MemberRole, StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { aCapture, anEmail, aService, BOTH_SCOPES, expectProblem } from '../../support/service.ts';

const LIMIT = 2;

const service = aService({ gateway: { QUOTA_LIMIT: String(LIMIT), QUOTA_WINDOW_SECONDS: '3600' } });

/** The possible faults of a creation, in the order of the checks. */
const FAULTS = [
  { name: 'revoked key', status: 401, code: 'integration_key_invalid' },
  { name: 'suspended studio', status: 402, code: 'subscription_suspended' },
  { name: 'demoted issuer', status: 403, code: 'integration_issuer_forbidden' },
  { name: 'missing scope', status: 403, code: 'integration_scope_forbidden' },
  { name: 'used up quota', status: 429, code: 'integration_rate_limited' },
  { name: 'invalid body', status: 400, code: 'integration_invalid_request' },
  { name: 'reused Idempotency-Key', status: 409, code: 'integration_idempotency_conflict' },
  { name: 'foreign source', status: 400, code: 'integration_source_invalid' },
  { name: 'open contact', status: 409, code: 'integration_lead_already_open' },
] as const;

type FaultName = (typeof FAULTS)[number]['name'];

/**
 * Sends a request with exactly these faults. Returns the response and the number of leads written.
 *
 * @param isKnown whether the gateway has seen the key while it was valid
 */
async function sendWith(
  isKnown: boolean,
  ...names: readonly FaultName[]
): Promise<{ response: Response; written: number }> {
  const has = (name: FaultName) => names.includes(name);
  // The key may always list leads, because lists use up its quota.
  const { studioId, secret } = await aKeyWith(
    isKnown,
    has,
    has('missing scope') ? [ApiKeyScope.LEADS_READ] : BOTH_SCOPES,
  );
  const idempotencyKey = randomUUID();
  const contact = anEmail();
  if (has('reused Idempotency-Key')) await createByRpc(studioId, idempotencyKey, anEmail().value);
  if (has('open contact')) await createByRpc(studioId, randomUUID(), contact.value);
  const leads = await service.countLeads(studioId);
  const response = await service.post(
    secret,
    aCapture({
      contact,
      ...(has('foreign source') && { sourceId: randomUUID() }),
      ...(has('invalid body') && { extra: 1 }),
    }),
    { 'idempotency-key': idempotencyKey },
  );
  return { response, written: (await service.countLeads(studioId)) - leads };
}

/** Returns a key with the given faults. */
async function aKeyWith(isKnown: boolean, has: (name: FaultName) => boolean, scopes: readonly ApiKeyScope[]) {
  const { studioId, memberId, apiKeyId, secret } = await service.aStudioWithKey({ scopes });
  const before = has('used up quota') ? LIMIT : Number(isKnown);
  for (let sent = 0; sent < before; sent += 1) expect((await service.get(secret)).status).toBe(200);
  if (has('demoted issuer')) {
    await service.directory.putMember({ member: { studioId, id: 'owner-2', role: MemberRole.OWNER } });
    await service.directory.putMember({ member: { studioId, id: memberId, role: MemberRole.STAFF } });
  }
  if (has('revoked key')) {
    const manager = has('demoted issuer') ? 'owner-2' : memberId;
    await service.apiKeys.revokeApiKey({ studioId, memberId: manager, apiKeyId });
  }
  if (has('suspended studio')) {
    await service.directory.putStudio({ studio: { id: studioId, status: StudioStatus.SUSPENDED } });
  }
  return { studioId, secret };
}

const createByRpc = (studioId: string, idempotencyKey: string, email: string) =>
  service.leads.createLead({
    studioId,
    idempotencyKey,
    displayName: 'Grace Hopper',
    contact: { value: { case: 'email', value: email } },
  });

/** Whether a fault arose after the gateway's last check of the key. A refusal by the quota relies on that check. */
const isKeyFault = (name: FaultName) => ['revoked key', 'suspended studio', 'demoted issuer'].includes(name);

/** Invalid reads. A gateway could refuse them without the core, but must check the key first. */
const INVALID_READS = ['?limit=0', '?cursor=!', '?limit=0&cursor=!', '/no-uuid'];

const pairs = FAULTS.flatMap((first, index) =>
  FAULTS.slice(index).map((second) => ({ first, second, names: `${first.name}, ${second.name}` })),
);

describe.each([
  { isKnown: false, key: 'a key that the gateway has never seen' },
  { isKnown: true, key: 'a key that was good a moment ago' },
])('with $key', ({ isKnown }) => {
  test('a request without faults is served', async () => {
    const { response, written } = await sendWith(isKnown);
    expect(response.status).toBe(201);
    expect(written).toBe(1);
  });

  test.each(pairs)(
    'a request with two faults is refused for the first in order, writing nothing: $names',
    { tags: ['7.order'] },
    async ({ first, second }) => {
      const { response, written } = await sendWith(isKnown, first.name, second.name);
      const { status, code } = second.name === 'used up quota' && isKeyFault(first.name) ? second : first;
      await expectProblem(response, status, code);
      expect(written).toBe(0);
    },
  );

  test.each(FAULTS.slice(0, 5))(
    'an invalid read is refused for its key and does not count: $name',
    { tags: ['7.order', '8.counted'] },
    async ({ name, status, code }) => {
      const isMissing = name === 'missing scope';
      const scopes = isMissing ? [ApiKeyScope.LEADS_CREATE] : BOTH_SCOPES;
      for (const read of INVALID_READS) {
        const { secret } = await aKeyWith(isKnown && !isMissing, (fault) => fault === name, scopes);
        const response = await service.get(secret, read);
        await expectProblem(response, status, code);
        expect(response.headers.has('ratelimit')).toBe(name === 'used up quota');
      }
    },
  );
});
