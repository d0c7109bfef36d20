import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { DECIDED_RULES, RULE_IDS, RULES, type RuleId } from '../conformance/contract-rules.ts';
import { codeMarks, type RuleRow, ruleRows, WITHOUT_CODE, WITHOUT_TEST } from './rule-table.ts';

const ROOT = join(import.meta.dirname, '..');

/** How long it may take to read all suites that prove something; milliseconds. */
const READ_WITHIN_MS = 60_000;

/** What keeps a test from being run, or from failing, that reading it for its tags does not tell. */
const NOT_HELD_TO = /\.fails\b|\bfails: ?true|\bskip\(/;

describe('each rule of the contract', () => {
  let rows: ReadonlyMap<RuleId, RuleRow>;
  beforeAll(async () => {
    rows = new Map((await ruleRows()).map((row) => [row.rule, row]));
  }, READ_WITHIN_MS);

  test.each(RULE_IDS)('%s is carried out by code and proven by tests that are run, or it is said why not', (rule) => {
    const { code, tests } = rows.get(rule) as RuleRow;
    expect({ rule, hasCode: code.length > 0 }).toEqual({ rule, hasCode: WITHOUT_CODE[rule] === undefined });
    expect({ rule, hasTest: tests.length > 0 }).toEqual({ rule, hasTest: WITHOUT_TEST[rule] === undefined });
    for (const { file } of tests) {
      const text = readFileSync(join(ROOT, file), 'utf8').replace(/^\s*\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
      expect({ file, notHeldTo: NOT_HELD_TO.exec(text)?.[0] }).toEqual({ file, notHeldTo: undefined });
    }
  });

  test('has its name wherever code names one', () => {
    expect(codeMarks().filter(({ rule }) => !(rule in RULES))).toEqual([]);
  });
});

describe('docs/reference/contract.md', () => {
  const sections = readFileSync(join(ROOT, 'docs/reference/contract.md'), 'utf8').split(/^##+ (?=\d)/m);
  /** Each rule by its name, the section that it stands in, and whether it is marked as decided here. */
  const said = sections.slice(1).flatMap((section) => {
    const [number = ''] = /^\d+(?:\.\d+)?/.exec(section) ?? [];
    return [...section.matchAll(/\*\*(\d[\w.-]*)(°?)\*\*/g)].map(([, rule = '', mark]) => ({
      rule,
      number,
      isDecided: mark !== '',
    }));
  });

  test('has every rule, each once', () => {
    expect(said.map(({ rule }) => rule).toSorted()).toEqual(RULE_IDS.toSorted());
  });

  test('has each in its section', () => {
    expect(said.filter(({ rule, number }) => rule.slice(0, rule.lastIndexOf('.')) !== number)).toEqual([]);
  });

  test('marks what the service has decided', () => {
    expect(said.filter(({ isDecided }) => isDecided).map(({ rule }) => rule)).toEqual(
      expect.arrayContaining(Object.keys(DECIDED_RULES)),
    );
    expect(said.filter(({ isDecided }) => isDecided)).toHaveLength(Object.keys(DECIDED_RULES).length);
  });
});
