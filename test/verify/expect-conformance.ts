import { beforeAll, expect, test } from 'vitest';
import { Api } from '../../verify/api.ts';
import { CHECKS, type Report, verify } from '../../verify/verify.ts';
import { aService } from '../support/service.ts';

/**
 * Checks a service of this release against the contract, from outside.
 *
 * @param core the core's settings, known when tests run
 */
export function expectConformance(core: () => Record<string, string>): void {
  // A quota that suffices for the checks, but that a busy machine still uses up, at 80 requests a second.
  const service = aService(() => ({ core: core(), gateway: { QUOTA_LIMIT: '800', QUOTA_WINDOW_SECONDS: '10' } }));
  let report: Report;

  beforeAll(async () => {
    const { secret, sourceId } = await service.aStudioWithKey();
    report = await verify(new Api(service.url, secret, sourceId), { quota: true });
  });

  test('a deployment of this release keeps every rule that can be checked from outside', () => {
    const broken = report.checks.filter(({ verdict }) => verdict === 'failed');
    expect(broken.map(({ title, why }) => `${title}: ${why}`)).toEqual([]);
  });

  test('every check is made', () => {
    expect(report.checks.filter(({ verdict }) => verdict === 'not made')).toEqual([]);
    expect(report.checks.map(({ title }) => title)).toEqual(CHECKS.map(({ title }) => title));
  });
}
