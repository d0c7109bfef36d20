import { fullRenewal } from '../domain/claim-renewal.ts';
import type { Clock } from '../domain/clock.ts';
import type { ClaimRenewalStore, DirectoryStore } from '../store/store.ts';
import { everyStudio } from './list-studios.ts';

interface RenewAllClaimsDependencies {
  readonly store: ClaimRenewalStore & Pick<DirectoryStore, 'listStudios'>;
  readonly clock: Clock;
}

/**
 * Starts a complete claim renewal of all studios, which the cores carry out, as after an upgrade from release 1.0.
 * After its first step each lead also claims by the rule of that release, whose cores may run before and after.
 *
 * @returns the ids of the studios whose renewal was started, and of those whose was not because their region or renewal
 *   changed concurrently or cannot be read
 * @throws StoreUnavailable
 */
export async function renewAllClaims({ store, clock }: RenewAllClaimsDependencies) {
  const renewals = new Map((await store.listClaimRenewals()).map(({ studio, renewal }) => [studio.id, renewal]));
  const started: string[] = [];
  const notStarted: string[] = [];
  for await (const studio of everyStudio({ store })) {
    const renewal = renewals.get(studio.id) ?? null;
    const isSaved = await store.saveClaimRenewal({ studio, renewal }, fullRenewal(studio, clock()));
    (isSaved ? started : notStarted).push(studio.id);
  }
  return { started, notStarted };
}
