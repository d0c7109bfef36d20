import { randomUUID } from 'node:crypto';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';
import { newKeySecret } from '../../../common/rules/key-secret.ts';
import { MemberRole } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { DAY_MS } from '../../support/builders.ts';
import { lines, rawRequest } from '../../support/raw-http.ts';
import { aCapture, aService, expectProblem, LEADS, type StudioWithKey } from '../../support/service.ts';

const service = aService();

/** The three operations. The lead that is read does not exist: a 404 means that the key may read. */
const OPERATIONS: readonly [string, (secret: string, headers?: Record<string, string | null>) => Promise<Response>][] =
  [
    ['createLead', (secret, headers) => service.post(secret, aCapture(), headers)],
    ['getLead', (secret, headers) => service.get(secret, `/${randomUUID()}`, headers)],
    ['listLeads', (secret, headers) => service.get(secret, '', headers)],
  ];

/** Expects all three operations to be refused alike, and nothing to be written. */
async function expectClosed({ secret, studioId }: StudioWithKey, status: number, code: string): Promise<void> {
  for (const [, call] of OPERATIONS) await expectProblem(await call(secret), status, code, []);
  expect(await service.countLeads(studioId)).toBe(0);
}

/** Expects a key to open all three operations. */
async function expectOpen(secret: string): Promise<void> {
  const statuses = await Promise.all(OPERATIONS.map(async ([, call]) => (await call(secret)).status));
  expect(statuses).toEqual([201, 404, 200]);
}

describe('a request', () => {
  test.each<[string, (secret: string) => Record<string, string | null>]>([
    ['no header', () => ({ authorization: null })],
    ['the scheme alone', () => ({ authorization: 'Bearer' })],
    ['the key alone', (secret) => ({ authorization: secret })],
    ['no blank between', (secret) => ({ authorization: `Bearer${secret}` })],
    ['something behind the key', (secret) => ({ authorization: `Bearer ${secret} x` })],
    ['two keys in one', (secret) => ({ authorization: `Bearer ${secret}, Bearer ${secret}` })],
    ['the sign-in cookie instead', (secret) => ({ authorization: null, cookie: `session=${secret}; token=${secret}` })],
    ['the key cut off', (secret) => ({ authorization: `Bearer ${secret.slice(0, -1)}` })],
    ['the key in lower case', (secret) => ({ authorization: `Bearer ${secret.toLowerCase()}` })],
    ['the key in percent-encoding', (secret) => ({ authorization: `Bearer ${secret.replace('_', '%5F')}` })],
    ['a well-formed key that was never issued', () => ({ authorization: `Bearer ${newKeySecret()}` })],
    ['a very long key', () => ({ authorization: `Bearer lik_${'A'.repeat(8000)}` })],
  ])(
    'without a complete key is refused with 401, and nothing is written: %s',
    { tags: ['5.1', '5.5', '5.8', '7.integration_key_invalid', '7.www-authenticate'] },
    async (_, headersFor) => {
      const { secret, studioId } = await service.aStudioWithKey();
      for (const [, call] of OPERATIONS) {
        await expectProblem(await call(secret, headersFor(secret)), 401, 'integration_key_invalid', []);
      }
      expect(await service.countLeads(studioId)).toBe(0);
    },
  );

  // @proves node-1
  test('with the header twice is refused with 401, even if both are equal', { tags: ['5.header'] }, async () => {
    const { secret } = await service.aStudioWithKey();
    const authorization = `Authorization: Bearer ${secret}`;
    const head = lines(`GET ${LEADS} HTTP/1.1`, 'Host: leads.example.test', authorization, authorization, '');
    await expectProblem(await rawRequest(service.url, head), 401, 'integration_key_invalid');
  });
});

test.each(['Bearer', 'bearer', 'BEARER', 'Bearer  '])(
  'the scheme may be written as "%s"',
  { tags: ['5.1', '5.header'] },
  async (scheme) => {
    const { secret } = await service.aStudioWithKey();
    expect((await service.get(secret, '', { authorization: `${scheme} ${secret}` })).status).toBe(200);
  },
);

describe('a key', () => {
  test('is accepted until its expiry, and again once it is replaced with a later expiry', {
    tags: ['3.2.expired', '3.2.renewed', '5.8', '7.integration_key_invalid'],
  }, async () => {
    const before = Date.now();
    const studio = await service.aStudioWithKey({ expiresInMs: 1500 });
    const { studioId, memberId, apiKeyId } = studio;
    const after = Date.now();

    // The expiry is 1500 ms after some moment between before and after.
    for (;;) {
      const sentAt = Date.now();
      const response = await service.get(studio.secret);
      if (response.status !== 200) break;
      expect(sentAt).toBeLessThan(after + 1500);
    }
    expect(Date.now()).toBeGreaterThanOrEqual(before + 1500);
    await expectClosed(studio, 401, 'integration_key_invalid');

    const expireTime = timestampFromMs(Date.now() + DAY_MS);
    const { secret } = await service.apiKeys.replaceApiKey({ studioId, memberId, apiKeyId, expireTime });
    await expectOpen(secret);
    await expectProblem(await service.get(studio.secret), 401, 'integration_key_invalid');
  });

  test('of a removed issuer is refused until another owner or admin replaces it', {
    tags: ['3.2.renewed', '5.10', '7.integration_issuer_forbidden'],
  }, async () => {
    const studio = await service.aStudioWithKey();
    const { studioId, memberId, apiKeyId } = studio;
    await service.directory.putMember({ member: { studioId, id: 'admin-2', role: MemberRole.ADMIN } });

    await service.directory.removeMember({ studioId, memberId });
    await expectClosed(studio, 403, 'integration_issuer_forbidden');

    const { secret } = await service.apiKeys.replaceApiKey({ studioId, memberId: 'admin-2', apiKeyId });
    await expectOpen(secret);
  });
});
