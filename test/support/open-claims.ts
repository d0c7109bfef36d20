import type { ClaimingLead, Store } from '../../src/store/store.ts';

/** Returns the open leads among the first `limit` leads of a studio, with their claims. */
export async function openClaimsIn(store: Store, studioId: string, limit = 1000): Promise<ClaimingLead[]> {
  return (await store.listClaims(studioId, null, limit)).leads.filter(({ isOpen }) => isOpen);
}
