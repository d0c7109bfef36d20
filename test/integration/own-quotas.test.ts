import { describe, expect, test } from 'vitest';
import { hashKeySecret } from '../../common/rules/key-secret.ts';
import { AuditAction } from '../../proto/gen/leadintake/v1/audit_pb.ts';
import { StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { aService, type StudioWithKey } from '../support/service.ts';

const service = aService();

/** The quotas in a key's authentication. */
async function quotasOf({ secret }: StudioWithKey) {
  const answer = await service.apiKeys.authenticateApiKey({ secretSha256: hashKeySecret(secret) });
  return [answer.keyQuotaLimit, answer.studioQuotaLimit];
}

describe('a studio', () => {
  // @proves quota-3
  test('has a quota of its own once it is put, and keeps it when other fields are put', async () => {
    const studio = await service.aStudioWithKey();
    const { studioId: id } = studio;
    expect(await quotasOf(studio)).toEqual([undefined, undefined]);

    const put = await service.directory.putStudio({ studio: { id, quotaLimit: 300 } });
    expect(put.studio).toMatchObject({ id, status: StudioStatus.ACTIVE, quotaLimit: 300 });
    await service.directory.putStudio({ studio: { id, status: StudioStatus.ACTIVE, regionCode: 'DE' } });
    await service.directory.putStudio({ studio: { id, regionCode: 'AT' }, updateMask: { paths: ['region_code'] } });

    expect((await service.directory.getStudio({ studioId: id })).studio).toMatchObject({ quotaLimit: 300 });
    expect(await quotasOf(studio)).toEqual([undefined, 300]);
  });

  test('has no quota of its own after a put with the mask and without a number', async () => {
    const studio = await service.aStudioWithKey();
    const { studioId: id } = studio;
    await service.directory.putStudio({ studio: { id, quotaLimit: 300 } });

    const put = await service.directory.putStudio({ studio: { id }, updateMask: { paths: ['quota_limit'] } });

    expect(put.studio?.quotaLimit).toBeUndefined();
    expect(await quotasOf(studio)).toEqual([undefined, undefined]);
  });
});

describe('a key', () => {
  // @proves quota-3
  test('has a quota of its own once it is put, also with another secret, until it is removed', async () => {
    const studio = await service.aStudioWithKey();
    const { studioId, memberId, apiKeyId } = studio;

    const { apiKey } = await service.directory.putApiKeyQuota({ studioId, apiKeyId, quotaLimit: 40 });
    expect(apiKey).toMatchObject({ id: apiKeyId, quotaLimit: 40 });
    expect(await quotasOf(studio)).toEqual([40, undefined]);
    expect((await service.apiKeys.listApiKeys({ studioId, memberId })).apiKeys).toMatchObject([{ quotaLimit: 40 }]);
    const { secret } = await service.apiKeys.replaceApiKey({ studioId, memberId, apiKeyId });
    expect(await quotasOf({ ...studio, secret })).toEqual([40, undefined]);

    const { apiKey: after } = await service.directory.putApiKeyQuota({ studioId, apiKeyId: apiKeyId.toUpperCase() });
    expect(after?.quotaLimit).toBeUndefined();
    expect(await quotasOf({ ...studio, secret })).toEqual([undefined, undefined]);
  });
});

test('the audit log has who changed a quota, with the former and the new value', async () => {
  const { studioId, apiKeyId } = await service.aStudioWithKey();
  await service.directory.putStudio({ studio: { id: studioId, quotaLimit: 300 }, memberId: 'accountant-1' });
  await service.directory.putApiKeyQuota({ studioId, apiKeyId, quotaLimit: 40, memberId: 'accountant-1' });
  await service.directory.putApiKeyQuota({ studioId, apiKeyId });

  const { events } = await service.audit.listAuditEvents({ studioId });

  expect(events.slice(0, 3)).toMatchObject([
    { action: AuditAction.API_KEY_QUOTA_CHANGED, apiKeyId, from: '40' },
    { action: AuditAction.API_KEY_QUOTA_CHANGED, apiKeyId, to: '40', memberId: 'accountant-1' },
    { action: AuditAction.STUDIO_QUOTA_CHANGED, to: '300', memberId: 'accountant-1' },
  ]);
  expect([events[0]?.to, events[1]?.from, events[2]?.from]).toEqual([undefined, undefined, undefined]);
});
