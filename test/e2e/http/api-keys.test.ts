import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';
import { MemberRole } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { DAY_MS, times } from '../../support/builders.ts';
import { aService, BOTH_SCOPES, type StudioWithKey } from '../../support/service.ts';

const service = aService();

/** Creates another key of a studio; by default, as its owner. */
const anotherKey = ({ studioId, memberId }: StudioWithKey, overrides: Record<string, unknown> = {}) =>
  service.apiKeys.createApiKey({
    studioId,
    memberId,
    name: 'Another',
    scopes: [...BOTH_SCOPES],
    expireTime: timestampFromMs(Date.now() + DAY_MS),
    ...overrides,
  });

const MINUTE_MS = 60_000;

describe('keys', () => {
  test.each([
    ['an owner', MemberRole.OWNER],
    ['an admin', MemberRole.ADMIN],
  ])('are listed and issued by %s', { tags: ['2.6.creation', '5.4'] }, async (_, role) => {
    const studio = await service.aStudioWithKey();
    const { studioId } = studio;
    await service.directory.putMember({ member: { studioId, id: 'member-2', role } });

    const { secret } = await anotherKey(studio, { memberId: 'member-2' });

    expect((await service.get(secret)).status).toBe(200);
    expect((await service.apiKeys.listApiKeys({ studioId, memberId: 'member-2' })).apiKeys.length).toBe(2);
  });

  test.each([
    ['staff', 'staff-1'],
    ['a person who is not a member', 'outsider-1'],
  ])('are listed and issued by no one else: %s', { tags: ['5.4'] }, async (_, memberId) => {
    const studio = await service.aStudioWithKey();
    const { studioId, apiKeyId } = studio;
    await service.directory.putMember({ member: { studioId, id: 'staff-1', role: MemberRole.STAFF } });

    await expect(anotherKey(studio, { memberId })).rejects.toThrow(/owner or an admin/);
    await expect(service.apiKeys.listApiKeys({ studioId, memberId })).rejects.toThrow(/owner or an admin/);
    await expect(service.apiKeys.replaceApiKey({ studioId, memberId, apiKeyId })).rejects.toThrow(/owner or an admin/);
    await expect(service.apiKeys.revokeApiKey({ studioId, memberId, apiKeyId })).rejects.toThrow(/owner or an admin/);

    expect((await service.get(studio.secret)).status).toBe(200);
    const { apiKeys } = await service.apiKeys.listApiKeys({ studioId, memberId: studio.memberId });
    expect(apiKeys.length).toBe(1);
  });
});

describe('a new key', () => {
  test('shows its secret once: no later response has it', { tags: ['2.6.creation', '5.6'] }, async () => {
    const studio = await service.aStudioWithKey();
    const { apiKey, secret } = await anotherKey(studio);
    expect(secret).toMatch(/^lik_[A-Za-z0-9_-]{48}$/);

    const { studioId, memberId } = studio;
    const apiKeyId = apiKey?.id ?? '';
    const listed = await service.apiKeys.listApiKeys({ studioId, memberId });
    const revoked = await service.apiKeys.revokeApiKey({ studioId, memberId, apiKeyId });

    for (const answer of [listed.apiKeys, revoked.apiKey, apiKey]) {
      expect(JSON.stringify(answer, (_, value) => (typeof value === 'bigint' ? `${value}` : value))).not.toContain(
        secret.slice(0, 40),
      );
    }
  });

  test('lives for at most 366 days', { tags: ['8.key-validity'] }, async () => {
    const studio = await service.aStudioWithKey();
    const longest = () => Date.now() + 366 * DAY_MS;

    await anotherKey(studio, { expireTime: timestampFromMs(longest()) });
    await expect(anotherKey(studio, { expireTime: timestampFromMs(longest() + MINUTE_MS) })).rejects.toThrow(
      /not valid/,
    );
    const { studioId, memberId, apiKeyId } = studio;
    await expect(
      service.apiKeys.replaceApiKey({
        studioId,
        memberId,
        apiKeyId,
        expireTime: timestampFromMs(longest() + MINUTE_MS),
      }),
    ).rejects.toThrow(/not valid/);
  });
});

describe('a studio', () => {
  /** Requests many keys concurrently; returns the secrets of those that were issued. */
  async function issue(studio: StudioWithKey, count: number): Promise<string[]> {
    const outcomes = await Promise.allSettled(times(count, () => anotherKey(studio)));
    return outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value.secret] : []));
  }

  test('has at most 20 keys that are neither revoked nor expired, also for 30 concurrent requests', {
    tags: ['8.api-keys'],
  }, async () => {
    const studio = await service.aStudioWithKey();

    const secrets = await issue(studio, 30);

    expect(secrets.length).toBe(19);
    for (const secret of secrets) expect((await service.get(secret)).status).toBe(200);
    await expect(anotherKey(studio)).rejects.toThrow(/20 keys/);
  });
});
