import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Api } from '../../src/conformance/api.ts';
import { CONTRACT_RULES, type RuleId } from '../../src/conformance/contract-rules.ts';
import { OUT_OF_SIGHT } from '../../src/conformance/out-of-sight.ts';
import { CHECKS, type Report, verify } from '../../src/conformance/verify.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { type Service, startService } from '../support/service.ts';

test('every rule of the contract is checked, or it is said why not', () => {
  const checked = new Set<string>(CHECKS.flatMap(({ rules }) => rules));
  const unexplained = Object.keys(CONTRACT_RULES).filter((rule) => !checked.has(rule) && !OUT_OF_SIGHT[rule as RuleId]);
  expect(unexplained).toEqual([]);
});

describe('a deployment', () => {
  describe('on SQLite', () => expectConformance({}));
  describeWithMongo('on MongoDB', (mongoUrl) =>
    expectConformance({
      get DATABASE_URL() {
        return `${mongoUrl()}conformance-${crypto.randomUUID()}`;
      },
    }),
  );
});

function expectConformance(core: Record<string, string>): void {
  let service: Service;
  let report: Report;

  beforeAll(async () => {
    // Enough for the checks, and soon used up and there again.
    service = await startService({ core, gateway: { QUOTA_LIMIT: '300', QUOTA_WINDOW_SECONDS: '2' } });
    const { secret, sourceId } = await service.aStudioWithKey();
    report = await verify(new Api(service.url, secret, sourceId), { quota: true });
  });
  afterAll(() => service?.dispose());

  test('of ours keeps every rule that can be seen from outside', () => {
    const broken = report.checks.filter(({ verdict }) => verdict === 'failed');
    expect(broken.map(({ title, why }) => `${title}: ${why}`)).toEqual([]);
  });

  test('is held against every check', () => {
    expect(report.checks.filter(({ verdict }) => verdict === 'passed').map(({ title }) => title)).toEqual(
      CHECKS.map(({ title }) => title),
    );
  });
}
