import { errorSummary } from '../common/error-summary.ts';
import { uuidFault } from '../common/rules/field-rules.ts';
import type { ProblemCode } from '../gateway/problems.ts';
import { type Answer, type Api, aCapture } from './api.ts';
import type { Check } from './check.ts';
import { ACCESS_CHECKS } from './checks/access.ts';
import { CREATION_CHECKS } from './checks/creation.ts';
import { IDEMPOTENCY_CHECKS } from './checks/idempotency.ts';
import { OPEN_LEAD_CHECKS } from './checks/open-leads.ts';
import { QUOTA_CHECKS } from './checks/quota.ts';
import { READING_CHECKS } from './checks/reading.ts';
import { CONTRACT_RULES, RULE_IDS, RULES, type RuleId } from './contract-rules.ts';
import { NOT_VERIFIABLE } from './not-verifiable.ts';

/** All checks. The one that exhausts the key's quota runs last. */
export const CHECKS: readonly Check[] = [
  ...ACCESS_CHECKS,
  ...CREATION_CHECKS,
  ...IDEMPOTENCY_CHECKS,
  ...OPEN_LEAD_CHECKS,
  ...READING_CHECKS,
  ...QUOTA_CHECKS,
];

export interface CheckResult {
  readonly title: string;
  readonly rules: readonly RuleId[];
  readonly verdict: 'passed' | 'failed' | 'not made';
  /** The observation that failed the check, or why it did not run. */
  readonly why?: string;
}

export interface RuleResult {
  readonly rule: RuleId;
  readonly text: string;
  /** "in part": every check passed, and `why` lists what was not checked. */
  readonly verdict: 'passed' | 'in part' | 'failed' | 'not checked';
  readonly why?: string;
}

export interface Report {
  readonly rules: readonly RuleResult[];
  readonly checks: readonly CheckResult[];
}

export interface VerifyOptions {
  /** Whether to run the check that exhausts the key's quota. */
  readonly quota: boolean;
  /** Called before each check. */
  readonly onCheck?: (title: string, index: number, count: number) => void;
}

/** Reports that the deployment cannot be tested: a setting is wrong, or the deployment does not answer or refuses the key. */
export class CannotVerify extends Error {}

const KEY_STATUSES = [401, 402, 403];
const PATH_CODES: readonly string[] = ['route_not_found', 'method_not_allowed'] satisfies readonly ProblemCode[];

/**
 * Expects well-formed settings, a deployment that answers, and a key with both scopes.
 *
 * @throws CannotVerify
 */
export async function preflight(api: Api): Promise<void> {
  if (api.sourceId !== undefined && uuidFault(api.sourceId) !== undefined)
    throw new CannotVerify('LEAD_INTAKE_SOURCE_ID is not a UUID: it must be the id of an enabled source of the studio');
  for (const send of [() => api.list('limit=1'), () => api.create(aCapture())]) {
    const answer = await send().catch((error) => {
      throw new CannotVerify(`the deployment does not answer: ${errorSummary(error)}; check --base-url`);
    });
    const { status, text } = answer;
    const what = `status ${status}: ${text.slice(0, 500)}`;
    if (!isServiceAnswer(answer))
      throw new CannotVerify(`the address does not answer as the service, but with ${what}; check --base-url`);
    if (KEY_STATUSES.includes(status))
      throw new CannotVerify(`the key is refused with ${what}; use a key with both scopes`);
    if (status >= 300) throw new CannotVerify(`the deployment cannot be tested now: ${what}`);
  }
}

/** Returns whether a response has a lead, leads, or a problem of the service other than a wrong path. */
function isServiceAnswer({ status, headers, text }: Answer): boolean {
  try {
    const { lead, leads, code } = Object(JSON.parse(text));
    if (status < 300) return lead !== undefined || leads !== undefined;
    const isProblem = headers.get('content-type')?.startsWith('application/problem+json') && typeof code === 'string';
    return isProblem === true && !PATH_CODES.includes(code);
  } catch {
    return false;
  }
}

/** Runs all checks. A failed check does not stop the others. */
export async function verify(api: Api, { quota, onCheck = () => {} }: VerifyOptions): Promise<Report> {
  const checks: CheckResult[] = [];
  for (const [index, check] of CHECKS.entries()) {
    onCheck(check.title, index, CHECKS.length);
    const isSkipped = !quota && QUOTA_CHECKS.includes(check);
    checks.push(await runCheck(check, api, isSkipped ? 'it exhausts the quota: add --quota' : check.obstacle?.(api)));
  }
  const rules = RULE_IDS.filter(isReported).map((rule) => computeRuleResult(rule, checks));
  return { rules, checks };
}

/** Returns whether to report a rule: all rules of the contract, and this service's own rules that have a check. */
const isReported = (rule: RuleId): boolean =>
  rule in CONTRACT_RULES || CHECKS.some(({ rules }) => rules.includes(rule));

async function runCheck({ title, rules, run }: Check, api: Api, obstacle: string | undefined): Promise<CheckResult> {
  if (obstacle !== undefined) return { title, rules, verdict: 'not made', why: obstacle };
  try {
    await run(api);
    return { title, rules, verdict: 'passed' };
  } catch (error) {
    return { title, rules, verdict: 'failed', why: errorSummary(error) };
  }
}

function computeRuleResult(rule: RuleId, checks: readonly CheckResult[]): RuleResult {
  const text = RULES[rule];
  const ruleChecks = checks.filter(({ rules }) => rules.includes(rule));
  const failed = ruleChecks.find(({ verdict }) => verdict === 'failed');
  if (failed) return { rule, text, verdict: 'failed', why: `${failed.title}: ${failed.why}` };
  const unchecked = [
    ...ruleChecks.filter(({ verdict }) => verdict === 'not made').map(({ why }) => why),
    NOT_VERIFIABLE[rule],
  ];
  const why = unchecked.filter((each) => each !== undefined).join('; ');
  if (!ruleChecks.some(({ verdict }) => verdict === 'passed')) return { rule, text, verdict: 'not checked', why };
  return why === '' ? { rule, text, verdict: 'passed' } : { rule, text, verdict: 'in part', why };
}
