import { expect, test } from 'vitest';
import { CONTRACT_RULES, type RuleId } from '../../verify/contract-rules.ts';
import { NOT_VERIFIABLE } from '../../verify/not-verifiable.ts';
import { CHECKS } from '../../verify/verify.ts';

test('every rule of the contract is checked from outside or has a reason why not', () => {
  const checked = new Set<string>(CHECKS.flatMap(({ rules }) => rules));
  const unexplained = Object.keys(CONTRACT_RULES).filter(
    (rule) => !checked.has(rule) && !NOT_VERIFIABLE[rule as RuleId],
  );
  expect(unexplained).toEqual([]);
});
