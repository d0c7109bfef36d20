import { RULES, type RuleId } from '../verify/contract-rules.ts';

/**
 * The tags of tests: the rules of the contract that they prove. `docs/reference/rules.md` lists them.
 * `npm run test:all -- --tags-filter='(5.10)'` runs the tests of a rule. Without the parentheses it is read as the number 5.1.
 */
export const RULE_TAGS = Object.entries(RULES).map(([name, description]) => ({ name: name as RuleId, description }));

declare module 'vitest' {
  interface TestTags {
    rule: RuleId;
  }
}
