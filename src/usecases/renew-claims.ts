import { mayBeginAt, nextStep } from '../domain/claim-renewal.ts';
import { isSameRule, type OpenClaims, openClaims } from '../domain/claims.ts';
import type { Clock } from '../domain/clock.ts';
import type { ClaimingLead, ClaimRenewalStore, LeadChangeStore, StudioRenewal } from '../store/store.ts';

/** How many leads are looked at before it is noted how far the renewal has come. */
const MAX_LEADS_PER_PAGE = 100;

/** Is told how a renewal goes on. */
export interface RenewalObserver {
  /** A step has come so far, after so many leads got other claims. */
  progressed?(renewal: StudioRenewal, renewed: number): void;
  /** A step is over, after so many leads got other claims. */
  stepEnded?(renewal: StudioRenewal, renewed: number): void;
  /** Two open leads have one contact by the rule of today: one has its claim, the other what is left. */
  leadInTheWay?(studioId: string, leadId: string, holderId: string): void;
  /** A studio's renewal cannot go on now. */
  failed?(renewal: StudioRenewal, error: unknown): void;
}

interface RenewalDependencies {
  readonly store: ClaimRenewalStore & Pick<LeadChangeStore, 'markUnmarked'>;
  readonly clock: Clock;
}

/**
 * Makes anew what open leads claim and closed ones are found by, as far as that is due. May be broken off at any moment and begun again, also by
 * several processes at once: it goes on where it was noted last. What keeps one studio's from going on keeps no other's.
 *
 * @returns how many studios are not done yet, because a step of theirs has to wait
 * @throws StoreUnavailable
 */
export async function renewClaims(
  { store, clock }: RenewalDependencies,
  observer: RenewalObserver = {},
  signal?: AbortSignal,
): Promise<number> {
  let waiting = 0;
  const failures: unknown[] = [];
  for (const renewal of await store.listClaimRenewals()) {
    if (signal?.aborted) return waiting + 1;
    try {
      const isOver = mayBeginAt(renewal.renewal) <= clock() && (await carryOutStep(renewal));
      if (!isOver || nextStep(renewal.renewal, clock())) waiting += 1;
    } catch (error) {
      failures.push(error);
      observer.failed?.(renewal, error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return waiting;

  /** @returns whether the step is over */
  async function carryOutStep(begun: StudioRenewal): Promise<boolean> {
    let current = begun;
    let renewed = 0;
    for (;;) {
      if (signal?.aborted) return false;
      const { studio, renewal } = current;
      const { leads, next } = await store.listClaims(studio.id, renewal.after, MAX_LEADS_PER_PAGE);
      const outcomes = await Promise.all(leads.map((lead) => renew(current, lead)));
      renewed += outcomes.filter((isRenewed) => isRenewed).length;
      // Every lead of an earlier release comes by here, once nobody of that release is at work any more.
      await store.markUnmarked(studio.id, renewal.after, next);
      const noted = next === null ? nextStep(renewal, clock()) : { ...renewal, after: next };
      // Somebody else has come further, or the region has changed: the next round tells.
      if (!(await store.noteClaimRenewal(current, noted))) return false;
      if (next === null || noted === null) {
        observer.stepEnded?.(begun, renewed);
        return true;
      }
      current = { studio, renewal: noted };
      observer.progressed?.(current, renewed);
    }
  }

  async function renew({ studio }: StudioRenewal, lead: ClaimingLead): Promise<boolean> {
    const claims = openClaims(lead.contact, studio);
    if (isSame(claims, lead.claims)) return false;
    const holder = await store.renewClaims(studio.id, lead, claims);
    if (holder !== null) observer.leadInTheWay?.(studio.id, lead.id, holder);
    return true;
  }
}

const isSame = (a: OpenClaims, b: OpenClaims): boolean =>
  isSameRule(a.contactRule, b.contactRule) && a.contactKeys.join(' ') === b.contactKeys.join(' ');
