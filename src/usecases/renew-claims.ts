import { earliestStart, nextStep } from '../domain/claim-renewal.ts';
import { isSameRule, type OpenClaims, openClaims } from '../domain/claims.ts';
import type { Clock } from '../domain/clock.ts';
import type { ClaimingLead, ClaimRenewalStore, LeadChangeStore, StudioRenewal } from '../store/store.ts';

/** The number of leads that are processed before the progress is stored. */
const MAX_LEADS_PER_PAGE = 100;

/** Observes claim renewals. */
export interface RenewalObserver {
  /** Called when a step's progress was stored. @param renewed the number of leads whose claims changed */
  onProgress?(renewal: StudioRenewal, renewed: number): void;
  /** Called when a step is complete. @param renewed the number of leads whose claims changed */
  stepEnded?(renewal: StudioRenewal, renewed: number): void;
  /** Called when two open leads have the same contact by the current rule; `holderId` keeps the claim. */
  claimConflict?(studioId: string, leadId: string, holderId: string): void;
  /** Called when a studio's renewal fails; the next run retries it. */
  failed?(renewal: StudioRenewal, error: unknown): void;
}

interface RenewalDependencies {
  readonly store: ClaimRenewalStore & Pick<LeadChangeStore, 'markUnmarked'>;
  readonly clock: Clock;
}

/**
 * Carries out all claim renewal steps that are due. It may be interrupted at any time and run again, also concurrently
 * by several processes: it resumes from the stored progress. A failure in one studio does not affect the others.
 *
 * @returns the number of studios whose renewal is not complete because a step has to wait
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
      const isOver = earliestStart(renewal.renewal) <= clock() && (await carryOutStep(renewal));
      if (!isOver || nextStep(renewal.renewal, clock())) waiting += 1;
    } catch (error) {
      failures.push(error);
      observer.failed?.(renewal, error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return waiting;

  /** @returns whether the step is complete */
  async function carryOutStep(begun: StudioRenewal): Promise<boolean> {
    let current = begun;
    let renewed = 0;
    for (;;) {
      if (signal?.aborted) return false;
      const { studio, renewal } = current;
      const { leads, next } = await store.listClaims(studio.id, renewal.after, MAX_LEADS_PER_PAGE);
      const outcomes = await Promise.all(leads.map((lead) => renew(current, lead)));
      renewed += outcomes.filter((isRenewed) => isRenewed).length;
      // Leads that an earlier release wrote without a change mark get one here, after all its processes have stopped.
      await store.markUnmarked(studio.id, renewal.after, next);
      const noted = next === null ? nextStep(renewal, clock()) : { ...renewal, after: next };
      // Another process has progressed further, or the region has changed: the next run reads the new state.
      if (!(await store.saveClaimRenewal(current, noted))) return false;
      if (next === null || noted === null) {
        observer.stepEnded?.(begun, renewed);
        return true;
      }
      current = { studio, renewal: noted };
      observer.onProgress?.(current, renewed);
    }
  }

  async function renew({ studio }: StudioRenewal, lead: ClaimingLead): Promise<boolean> {
    const claims = openClaims(lead.contact, studio);
    if (isSame(claims, lead.claims)) return false;
    const holder = await store.renewClaims(studio.id, lead, claims);
    if (holder !== null) observer.claimConflict?.(studio.id, lead.id, holder);
    return true;
  }
}

const isSame = (a: OpenClaims, b: OpenClaims): boolean =>
  isSameRule(a.contactRule, b.contactRule) && a.contactKeys.join(' ') === b.contactKeys.join(' ');
