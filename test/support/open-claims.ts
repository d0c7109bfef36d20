import type { ClaimingLead, Store } from '../../src/store/store.ts';

/** The open ones among the first leads of a studio, with what they claim. */
export async function openClaimsIn(store: Store, studioId: string, limit = 1000): Promise<ClaimingLead[]> {
  return (await store.listClaims(studioId, null, limit)).leads.filter(({ isOpen }) => isOpen);
}
