import { expect, test } from 'vitest';
import { CONTRACT_RULES, type RuleId } from '../../conformance/contract-rules.ts';
import { OUT_OF_SIGHT } from '../../conformance/out-of-sight.ts';
import { CHECKS } from '../../conformance/verify.ts';

test('every rule of the contract is checked from outside, or it is said why not', () => {
  const checked = new Set<string>(CHECKS.flatMap(({ rules }) => rules));
  const unexplained = Object.keys(CONTRACT_RULES).filter((rule) => !checked.has(rule) && !OUT_OF_SIGHT[rule as RuleId]);
  expect(unexplained).toEqual([]);
});
