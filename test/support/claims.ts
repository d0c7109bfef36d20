import { MAX_STALE_CALL_MS } from '../../src/domain/claim-renewal.ts';
import type { ClaimingLead, Store } from '../../src/store/store.ts';
import { renewClaims } from '../../src/usecases/renew-claims.ts';
import { NOW, plus } from './builders.ts';

/** Returns the open leads among the first `limit` leads of a studio, with their claims. */
export async function openClaimsIn(store: Store, studioId: string, limit = 1000): Promise<ClaimingLead[]> {
  return (await store.listClaims(studioId, null, limit)).leads.filter(({ isOpen }) => isOpen);
}

/**
 * Runs all steps of the renewals of claims.
 *
 * @param from the time of the first step
 * @param stepMs the time between two steps
 * @returns the time after the last step
 */
export async function completeRenewals(
  store: Store,
  from = NOW,
  stepMs = MAX_STALE_CALL_MS,
  observer: Parameters<typeof renewClaims>[1] = {},
): Promise<Date> {
  let now = from;
  while ((await renewClaims({ store, clock: () => now }, observer)) > 0) now = plus(now, stepMs);
  return now;
}
