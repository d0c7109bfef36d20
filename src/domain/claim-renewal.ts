import { CONTACT_RULE_VERSION, type ContactRule, type ContactRules, isSameRule } from './claims.ts';
import type { RegionCode } from './contact.ts';

/** The steps, in their order. */
export const RENEWAL_STEPS = ['first', 'second', 'third', 'last'] as const;

/**
 * How far the claims of a studio's leads are made anew, after its region or the rule has changed. All are gone through
 * four times: at once, so that each lead holds to every form; again when nobody is at work any more who knows no rule but a
 * former one, after which former rules are held to no longer; at once again, to let go of them; and a last time, for what
 * those made who had still held to them.
 */
export interface ClaimRenewal {
  readonly step: (typeof RENEWAL_STEPS)[number];
  /** When the step before it came to its end, or the region changed: from then on it waits. */
  readonly since: Date;
  /** The lead up to which the step has come; null: it has not begun. */
  readonly after: string | null;
  readonly formerRules: readonly ContactRule[];
}

/**
 * How long somebody may be at work who has not heard of a new region; milliseconds. Longer than any call takes.
 */
export const CALLS_OVER_MS = 10_000;

/** How long processes of the release before may work beside this one while one after the other is replaced; milliseconds. */
export const RELEASE_OVER_MS = 600_000;

/** What is to be renewed once a studio has another region than it had; null: nothing. */
export function renewalAfter(
  before: ContactRules,
  regionCode: RegionCode | null,
  underWay: ClaimRenewal | null,
  now: Date,
): ClaimRenewal | null {
  if (before.regionCode === regionCode) return underWay;
  const current = { version: CONTACT_RULE_VERSION, region: regionCode };
  const former = [...before.formerRules, { version: CONTACT_RULE_VERSION, region: before.regionCode }];
  const different = former.filter(
    (rule, index) => !isSameRule(rule, current) && former.findIndex((other) => isSameRule(other, rule)) === index,
  );
  return { step: 'first', since: now, after: null, formerRules: different };
}

/** When the step may begin. */
export function mayBeginAt({ step, since, formerRules }: ClaimRenewal): Date {
  if (step === 'first' || step === 'third') return since;
  const isOfRelease = formerRules.some(({ version }) => version !== CONTACT_RULE_VERSION);
  return new Date(since.getTime() + (isOfRelease ? RELEASE_OVER_MS : CALLS_OVER_MS));
}

/** The renewal of a studio that was written by a release which knew the first rule only. */
export const renewalFromFirstRule = (region: RegionCode | null): ClaimRenewal => ({
  step: 'first',
  since: new Date(0),
  after: null,
  formerRules: [{ version: 1, region }],
});

/** The renewal of a studio whose leads may claim by the first rule, by today's, and by former ones that are known. */
export function renewalOfEverything({ regionCode, formerRules }: ContactRules, now: Date): ClaimRenewal {
  const first = renewalFromFirstRule(regionCode);
  const others = formerRules.filter((rule) => !first.formerRules.some((each) => isSameRule(each, rule)));
  return { ...first, since: now, formerRules: [...others, ...first.formerRules] };
}

/** What follows a step that has come to its end; null: everything is renewed. */
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
