import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { newKeySecret } from '../../../common/rules/key-secret.ts';
import { MemberRole } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { DAY_MS, times } from '../../support/builders.ts';
import { lines, rawRequest } from '../../support/raw-http.ts';
import { aService, BOTH_SCOPES, expectProblem, LEADS, type StudioWithKey } from '../../support/service.ts';

const service = aService();

/** Creates another key in a studio, as its owner by default. */
const anotherKey = ({ studioId, memberId }: StudioWithKey, overrides: Record<string, unknown> = {}) =>
  service.apiKeys.createApiKey({
    studioId,
    memberId,
    name: 'Another',
    scopes: [...BOTH_SCOPES],
    expireTime: timestampFromMs(Date.now() + DAY_MS),
    ...overrides,
  });

// test/security/isolation.test.ts covers well-formed keys that are not valid.
test.each<[string, (secret: string) => Record<string, string | null>]>([
  ['no header', () => ({ authorization: null })],
  ['the scheme alone', () => ({ authorization: 'Bearer' })],
  ['the key alone', (secret) => ({ authorization: secret })],
  ['no blank between', (secret) => ({ authorization: `Bearer${secret}` })],
  ['something behind the key', (secret) => ({ authorization: `Bearer ${secret} x` })],
  ['the sign-in cookie instead', (secret) => ({ authorization: null, cookie: `session=${secret}; token=${secret}` })],
  ['the key in lower case', (secret) => ({ authorization: `Bearer ${secret.toLowerCase()}` })],
  ['a well-formed key that was never issued', () => ({ authorization: `Bearer ${newKeySecret()}` })],
  ['a very long key', () => ({ authorization: `Bearer lik_${'A'.repeat(8000)}` })],
])(
  'a request without a complete key is refused with 401: %s',
  { tags: ['5.1', '5.5', '5.8', '7.integration_key_invalid', '7.www-authenticate'] },
  async (_, headersFor) => {
    const { secret } = await service.aStudioWithKey();
    await expectProblem(await service.get(secret, '', headersFor(secret)), 401, 'integration_key_invalid', []);
  },
);

// @proves node-1
test('a duplicate Authorization header is refused, and its scheme may have any letter case', {
  tags: ['5.1', '5.header'],
}, async () => {
  const { secret } = await service.aStudioWithKey();
  const authorization = `Authorization: Bearer ${secret}`;
  const head = lines(`GET ${LEADS} HTTP/1.1`, 'Host: leads.example.test', authorization, authorization, '');
  await expectProblem(await rawRequest(service.url, head), 401, 'integration_key_invalid');
  for (const scheme of ['bearer', 'BEARER', 'Bearer  ']) {
    expect((await service.get(secret, '', { authorization: `${scheme} ${secret}` })).status).toBe(200);
  }
});

test('only owners and admins can list, issue, replace and revoke keys', {
  tags: ['2.6.creation', '5.4'],
}, async () => {
  const studio = await service.aStudioWithKey();
  const { studioId, apiKeyId } = studio;
  await service.directory.putMember({ member: { studioId, id: 'staff-1', role: MemberRole.STAFF } });
  await service.directory.putMember({ member: { studioId, id: 'admin-1', role: MemberRole.ADMIN } });

  for (const memberId of ['staff-1', 'outsider-1']) {
    for (const call of [
      anotherKey(studio, { memberId }),
      service.apiKeys.listApiKeys({ studioId, memberId }),
      service.apiKeys.replaceApiKey({ studioId, memberId, apiKeyId }),
      service.apiKeys.revokeApiKey({ studioId, memberId, apiKeyId }),
    ])
      await expect(call).rejects.toThrow(/owner or an admin/);
  }
  expect((await service.get(studio.secret)).status).toBe(200);
  const { secret } = await anotherKey(studio, { memberId: 'admin-1' });
  expect((await service.get(secret)).status).toBe(200);
  expect((await service.apiKeys.listApiKeys({ studioId, memberId: 'admin-1' })).apiKeys.length).toBe(2);
});

test("a new key's secret is shown only once", { tags: ['2.6.creation', '5.6'] }, async () => {
  const studio = await service.aStudioWithKey();
  const { apiKey, secret } = await anotherKey(studio);
  expect(secret).toMatch(/^lik_[A-Za-z0-9_-]{48}$/);

  const { studioId, memberId } = studio;
  const listed = await service.apiKeys.listApiKeys({ studioId, memberId });
  const revoked = await service.apiKeys.revokeApiKey({ studioId, memberId, apiKeyId: apiKey?.id ?? '' });

  const texts = JSON.stringify([listed, revoked, apiKey], (_, value) =>
    typeof value === 'bigint' ? `${value}` : value,
  );
  expect(texts).not.toContain(secret.slice(0, 40));
});

test('a key is valid for at most 366 days', { tags: ['8.key-validity'] }, async () => {
  const studio = await service.aStudioWithKey();
  const at = (ms: number) => ({ expireTime: timestampFromMs(Date.now() + 366 * DAY_MS + ms) });
  await anotherKey(studio, at(0));
  for (const call of [anotherKey(studio, at(60_000)), service.apiKeys.replaceApiKey({ ...studio, ...at(60_000) })])
    await expect(call).rejects.toThrow(/not valid/);
});

// test/contract/api-key-contract.ts covers concurrent requests.
// @proves bounds-227
test('a studio has at most 20 live keys', { tags: ['8.api-keys'] }, async () => {
  const studio = await service.aStudioWithKey();
  await Promise.all(times(19, () => anotherKey(studio)));
  await expect(anotherKey(studio)).rejects.toThrow(/20 keys/);
});
