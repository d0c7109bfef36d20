import { renewalOfEverything } from '../domain/claim-renewal.ts';
import type { Clock } from '../domain/clock.ts';
import type { ClaimRenewalStore, DirectoryStore } from '../store/store.ts';
import { everyStudio } from './list-studios.ts';

interface RenewAllClaimsDependencies {
  readonly store: ClaimRenewalStore & Pick<DirectoryStore, 'listStudios'>;
  readonly clock: Clock;
}

/**
 * Has the claims of all studios made anew from the beginning, by the cores, as after an upgrade from release 1.0: from the end of
 * the first step on, each lead holds to the rule of that release, too. So cores of that release may be at work before and after.
 *
 * @returns the ids of the studios of which that has begun, and of those of which it has not: their region or their renewal changed in
 *   this moment, or cannot be read
 * @throws StoreUnavailable
 */
export async function renewAllClaims({ store, clock }: RenewAllClaimsDependencies) {
  const underWay = new Map((await store.listClaimRenewals()).map(({ studio, renewal }) => [studio.id, renewal]));
  const begun: string[] = [];
  const left: string[] = [];
  for await (const studio of everyStudio({ store })) {
    const renewal = underWay.get(studio.id) ?? null;
    const isNoted = await store.noteClaimRenewal({ studio, renewal }, renewalOfEverything(studio, clock()));
    (isNoted ? begun : left).push(studio.id);
  }
  return { begun, left };
}
