import { printable, printableJson } from '../common/printable.ts';
import type { Report, RuleResult } from './verify.ts';

const VERDICTS = ['passed', 'in part', 'failed', 'not checked'] as const;

/** Returns a report as JSON, or as a table of rules. */
export function reportText(report: Report, json: boolean): string {
  const lines = json
    ? [printableJson({ ...countVerdicts(report), ...report })]
    : [...report.rules.flatMap(formatResult), '', formatSummary(report)];
  return `${lines.join('\n')}\n`;
}

function formatResult({ rule, text, verdict, why }: RuleResult): string[] {
  const shown = verdict === 'failed' ? 'FAILED' : verdict;
  const line = `${shown.padEnd(12)} ${rule.padEnd(36)} ${text}`;
  return why === undefined ? [line] : [line, `${' '.repeat(13)}${printable(why)}`];
}

function formatSummary(report: Report): string {
  const { rules } = countVerdicts(report).counts;
  const passed = `${rules.passed} rules hold, ${rules['in part']} hold as far as they were checked`;
  return `${passed}, ${rules.failed} are broken, ${rules['not checked']} cannot be checked with one key.`;
}

function countVerdicts({ rules }: Report) {
  const count = (verdict: RuleResult['verdict']) => rules.filter((rule) => rule.verdict === verdict).length;
  return { counts: { rules: Object.fromEntries(VERDICTS.map((verdict) => [verdict, count(verdict)])) } };
}
