import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { DECIDED_RULES, RULE_IDS, RULES, type RuleId } from '../verify/contract-rules.ts';
import { type RuleRow, ruleComments, ruleRows, WITHOUT_CODE, WITHOUT_TEST } from './rule-table.ts';

const ROOT = join(import.meta.dirname, '..');

/** Matches ways to skip a test, or to let it fail, that parsing does not detect. */
const EXEMPTION = /\.fails\b|\bfails: ?true|\bskip\(/;

// @proves leads-1
describe('each rule of the contract', () => {
  let rows: ReadonlyMap<RuleId, RuleRow>;
  beforeAll(async () => {
    rows = new Map((await ruleRows()).map((row) => [row.rule, row]));
  });

  test.each(RULE_IDS)('%s has code and running tests, or a reason why not', (rule) => {
    const { code, tests } = rows.get(rule) as RuleRow;
    expect({ rule, hasCode: code.length > 0 }).toEqual({ rule, hasCode: WITHOUT_CODE[rule] === undefined });
    expect({ rule, hasTest: tests.length > 0 }).toEqual({ rule, hasTest: WITHOUT_TEST[rule] === undefined });
    for (const file of tests) {
      const text = readFileSync(join(ROOT, file), 'utf8').replace(/^\s*\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
      expect({ file, exemption: EXEMPTION.exec(text)?.[0] }).toEqual({ file, exemption: undefined });
    }
  });

  test('each rule that a comment names exists', () => {
    expect(ruleComments().filter(({ rule }) => !(rule in RULES))).toEqual([]);
  });
});

describe('docs/reference/contract.md', () => {
  const sections = readFileSync(join(ROOT, 'docs/reference/contract.md'), 'utf8').split(/^##+ (?=\d)/m);
  /** Each rule with its name, its section, and whether it is marked as decided by this service. */
  const rules = sections.slice(1).flatMap((section) => {
    const [number = ''] = /^\d+(?:\.\d+)?/.exec(section) ?? [];
    return [...section.matchAll(/\*\*(\d[\w.-]*)(°?)\*\*/g)].map(([, rule = '', mark]) => ({
      rule,
      number,
      isDecided: mark !== '',
    }));
  });

  test('contract.md has every rule once', () => {
    expect(rules.map(({ rule }) => rule).toSorted()).toEqual(RULE_IDS.toSorted());
  });

  test('contract.md has each rule in its section', () => {
    expect(rules.filter(({ rule, number }) => rule.slice(0, rule.lastIndexOf('.')) !== number)).toEqual([]);
  });

  test('contract.md marks the decisions of the service', () => {
    expect(rules.filter(({ isDecided }) => isDecided).map(({ rule }) => rule)).toEqual(
      expect.arrayContaining(Object.keys(DECIDED_RULES)),
    );
    expect(rules.filter(({ isDecided }) => isDecided)).toHaveLength(Object.keys(DECIDED_RULES).length);
  });
});
