import { CONTACT_RULE_VERSION, type ContactRule, type ContactRules, isSameRule } from './claims.ts';
import type { RegionCode } from './contact.ts';

/** The steps of a claim renewal, in order. */
export const RENEWAL_STEPS = ['first', 'second', 'third', 'last'] as const;

/**
 * The progress of recomputing the claims of a studio's leads after its region or the contact rule changed. It takes
 * four passes over all leads:
 *
 * 1. `first` starts immediately and gives each lead its claims by the new rule and by the former ones.
 * 2. `second` starts when no request or process with only a former rule can still be in flight, and covers leads those
 *    wrote. After it, former rules are no longer claimed.
 * 3. `third` starts immediately and removes claims by former rules.
 * 4. `last` starts when requests that still used former rules have ended, and removes the claims those added.
 */
export interface ClaimRenewal {
  readonly step: (typeof RENEWAL_STEPS)[number];
  /** When the previous step ended or the region changed; waiting times count from here. */
  readonly since: Date;
  /** The last lead that the step has processed; null: it has not begun. */
  readonly after: string | null;
  readonly formerRules: readonly ContactRule[];
}

/** How long a request that has read the former region can be in flight; milliseconds. Longer than any call takes. */
export const MAX_STALE_CALL_MS = 10_000;

/** How long processes of the previous release may run beside this one during a rolling upgrade; milliseconds. */
export const MAX_UPGRADE_MS = 600_000;

/** Returns a studio's renewal after its region is set; null: nothing to renew. */
export function renewalAfter(
  before: ContactRules,
  regionCode: RegionCode | null,
  inProgress: ClaimRenewal | null,
  now: Date,
): ClaimRenewal | null {
  if (before.regionCode === regionCode) return inProgress;
  const current = { version: CONTACT_RULE_VERSION, region: regionCode };
  const former = [...before.formerRules, { version: CONTACT_RULE_VERSION, region: before.regionCode }];
  const different = former.filter(
    (rule, index) => !isSameRule(rule, current) && former.findIndex((other) => isSameRule(other, rule)) === index,
  );
  return { step: 'first', since: now, after: null, formerRules: different };
}

/** Returns the earliest time at which the step may begin. */
export function earliestStart({ step, since, formerRules }: ClaimRenewal): Date {
  if (step === 'first' || step === 'third') return since;
  const isOfRelease = formerRules.some(({ version }) => version !== CONTACT_RULE_VERSION);
  return new Date(since.getTime() + (isOfRelease ? MAX_UPGRADE_MS : MAX_STALE_CALL_MS));
}

/** Returns the renewal of a studio that was written by a release with rule version 1 only. */
export const renewalFromRuleV1 = (region: RegionCode | null): ClaimRenewal => ({
  step: 'first',
  since: new Date(0),
  after: null,
  formerRules: [{ version: 1, region }],
});

/**
 * Returns the renewal of a studio whose leads may claim by rule version 1, the current one, and former ones on record.
 */
export function fullRenewal({ regionCode, formerRules }: ContactRules, now: Date): ClaimRenewal {
  const first = renewalFromRuleV1(regionCode);
  const others = formerRules.filter((rule) => !first.formerRules.some((each) => isSameRule(each, rule)));
  return { ...first, since: now, formerRules: [...others, ...first.formerRules] };
}

/** Returns the step after a completed one; null: the renewal is complete. */
export function nextStep(renewal: ClaimRenewal, now: Date): ClaimRenewal | null {
  switch (renewal.step) {
    case 'first':
      return { ...renewal, step: 'second', since: now, after: null };
    case 'second':
      return { step: 'third', since: now, after: null, formerRules: [] };
    case 'third':
      return { ...renewal, step: 'last', since: now, after: null };
    case 'last':
      return null;
  }
}
