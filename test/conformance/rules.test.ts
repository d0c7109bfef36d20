import { expect, test } from 'vitest';
import { CONTRACT_RULES, type RuleId } from '../../src/conformance/contract-rules.ts';
import { OUT_OF_SIGHT } from '../../src/conformance/out-of-sight.ts';
import { CHECKS } from '../../src/conformance/verify.ts';

test('every rule of the contract is checked from outside, or it is said why not', () => {
  const checked = new Set<string>(CHECKS.flatMap(({ rules }) => rules));
  const unexplained = Object.keys(CONTRACT_RULES).filter((rule) => !checked.has(rule) && !OUT_OF_SIGHT[rule as RuleId]);
  expect(unexplained).toEqual([]);
});
