import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createVitest } from 'vitest/node';
import { RULE_IDS, type RuleId } from '../verify/contract-rules.ts';
import { CHECKS } from '../verify/verify.ts';

const ROOT = join(import.meta.dirname, '..');
const readText = (file: string) => readFileSync(join(ROOT, file), 'utf8');

/** A rule with its code and its proofs. */
export interface RuleRow {
  readonly rule: RuleId;
  /** Files with a `@rule` comment that names it. */
  readonly code: readonly string[];
  /** Files with a test that has the rule as a tag. The suite of `verify` has the rules of its checks. */
  readonly tests: readonly string[];
}

/** Why no code implements a rule. */
export const WITHOUT_CODE: Partial<Record<RuleId, string>> = {
  '1.no-browser': 'Nothing sets a CORS header.',
  '4.2.ignored': 'No code reads them.',
  '6.events': 'There are none.',
  '9.frozen': 'A promise about later releases.',
};

/** Why no test proves a rule. */
export const WITHOUT_TEST: Partial<Record<RuleId, string>> = {
  '6.events': 'There is nothing to observe.',
};

const VERIFY = 'test/verify/sqlite.test.ts';

/** Returns a row for each rule, section by section. */
export async function ruleRows(): Promise<readonly RuleRow[]> {
  const tests = [...CHECKS.map(({ rules }) => ({ file: VERIFY, tags: rules })), ...(await taggedTests())];
  const marks = ruleComments();
  return RULE_IDS.map((rule) => ({
    rule,
    code: [...new Set(marks.filter((mark) => mark.rule === rule).map(({ file }) => file))].toSorted(),
    tests: [...new Set(tests.filter(({ tags }) => (tags as readonly string[]).includes(rule)).map(({ file }) => file))],
  }));
}

/** Returns every name after `@rule` in a comment of the code, even if no rule has it. */
export function ruleComments(): readonly { readonly file: string; readonly rule: string }[] {
  const files = globSync('{common,gateway,src}/**/*.ts', { cwd: ROOT });
  return files.flatMap((file) => {
    const marks = readText(file).matchAll(/@rule ([^*\n]+)/g);
    return [...marks].flatMap(([, rules = '']) => rules.trim().split(/\s+/)).map((rule) => ({ file, rule }));
  });
}

/** Returns the tests that have tags and are not skipped. The files are parsed, not executed. */
async function taggedTests(): Promise<readonly { readonly file: string; readonly tags: readonly string[] }[]> {
  const vitest = await createVitest('test', {
    config: join(ROOT, 'test/vitest.config.ts'),
    watch: false,
    reporters: [],
  });
  try {
    const files = globSync('test/**/*.test.ts', { cwd: ROOT });
    const { testModules } = await vitest.collect(files.filter((file) => readText(file).includes('tags: [')));
    return testModules
      .toSorted((a, b) => a.relativeModuleId.localeCompare(b.relativeModuleId))
      .flatMap((module) => {
        const fault = module.errors()[0];
        if (fault) throw new Error(`${module.relativeModuleId} cannot be parsed: ${fault.message}`);
        return [...module.children.allTests()]
          .filter(({ tags, options }) => tags.length > 0 && options.mode === 'run')
          .map(({ tags }) => ({ file: module.relativeModuleId, tags }));
      });
  } finally {
    await vitest.close();
  }
}
