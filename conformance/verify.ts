import { errorSummary } from '../common/error-summary.ts';
import { type Api, aCapture } from './api.ts';
import type { Check } from './check.ts';
import { ACCESS_CHECKS } from './checks/access.ts';
import { CREATION_CHECKS } from './checks/creation.ts';
import { IDEMPOTENCY_CHECKS } from './checks/idempotency.ts';
import { OPEN_LEAD_CHECKS } from './checks/open-leads.ts';
import { QUOTA_CHECKS } from './checks/quota.ts';
import { READING_CHECKS } from './checks/reading.ts';
import { CONTRACT_RULES, RULE_IDS, RULES, type RuleId } from './contract-rules.ts';
import { NOT_VERIFIABLE } from './not-verifiable.ts';

/** All checks. The one that uses up the key's quota comes last. */
export const CHECKS: readonly Check[] = [
  ...ACCESS_CHECKS,
  ...CREATION_CHECKS,
  ...IDEMPOTENCY_CHECKS,
  ...OPEN_LEAD_CHECKS,
  ...READING_CHECKS,
  ...QUOTA_CHECKS,
];

/** What became of a check. */
export interface CheckResult {
  readonly title: string;
  readonly rules: readonly RuleId[];
  readonly verdict: 'passed' | 'failed' | 'not made';
  /** What was seen instead, or why it was not made. */
  readonly why?: string;
}

/** What is known of a rule after all checks. */
export interface RuleResult {
  readonly rule: RuleId;
  readonly text: string;
  /** "in part": what was checked holds, and `why` says what was not. */
  readonly verdict: 'passed' | 'in part' | 'failed' | 'not checked';
  readonly why?: string;
}

/** What a run found. */
export interface Report {
  readonly rules: readonly RuleResult[];
  readonly checks: readonly CheckResult[];
}

/** How a run is made. */
export interface VerifyOptions {
  /** Whether the key's quota may be used up. */
  readonly quota: boolean;
  /** Is told before each check. */
  readonly onCheck?: (title: string, index: number, count: number) => void;
}

/** There is nothing to check: nobody answers, or the key opens nothing. */
export class CannotVerify extends Error {}

/**
 * Expects the deployment to answer, and the key to have both scopes.
 *
 * @throws CannotVerify
 */
export async function preflight(api: Api): Promise<void> {
  const answers = [() => api.list('limit=1'), () => api.create(aCapture())];
  for (const ask of answers) {
    const { status, text } = await ask().catch((error) => {
      throw new CannotVerify(`the deployment does not answer: ${errorSummary(error)}`);
    });
    if (status !== 200 && status !== 201) {
      throw new CannotVerify(
        `the key must be one with both scopes; it is answered with ${status}: ${text.slice(0, 500)}`,
      );
    }
  }
}

/** Holds a deployment against the contract, check by check; what one finds keeps no other from being made. */
export async function verify(api: Api, { quota, onCheck = () => {} }: VerifyOptions): Promise<Report> {
  const checks: CheckResult[] = [];
  for (const [index, check] of CHECKS.entries()) {
    onCheck(check.title, index, CHECKS.length);
    const isLeftOut = !quota && QUOTA_CHECKS.includes(check);
    checks.push(await make(check, api, isLeftOut ? 'it uses up the quota (--quota)' : check.impossible?.(api)));
  }
  const rules = RULE_IDS.filter(isHeldAgainst).map((rule) => resultOf(rule, checks));
  return { rules, checks };
}

/** All of the contract itself; of what the service has decided beside it, that which a check is about. */
const isHeldAgainst = (rule: RuleId): boolean =>
  rule in CONTRACT_RULES || CHECKS.some(({ rules }) => rules.includes(rule));

async function make({ title, rules, run }: Check, api: Api, impossible: string | undefined): Promise<CheckResult> {
  if (impossible !== undefined) return { title, rules, verdict: 'not made', why: impossible };
  try {
    await run(api);
    return { title, rules, verdict: 'passed' };
  } catch (error) {
    return { title, rules, verdict: 'failed', why: errorSummary(error) };
  }
}

function resultOf(rule: RuleId, checks: readonly CheckResult[]): RuleResult {
  const text = RULES[rule];
  const own = checks.filter(({ rules }) => rules.includes(rule));
  const failed = own.find(({ verdict }) => verdict === 'failed');
  if (failed) return { rule, text, verdict: 'failed', why: `${failed.title}: ${failed.why}` };
  const unseen = [...own.filter(({ verdict }) => verdict === 'not made').map(({ why }) => why), NOT_VERIFIABLE[rule]];
  const why = unseen.filter((each) => each !== undefined).join('; ');
  if (!own.some(({ verdict }) => verdict === 'passed')) return { rule, text, verdict: 'not checked', why };
  return why === '' ? { rule, text, verdict: 'passed' } : { rule, text, verdict: 'in part', why };
}
