import { expect, test } from 'vitest';
import type { Lead } from '../../src/domain/lead.ts';
import { type Store, StoreUnavailable } from '../../src/store/store.ts';
import { aLead, claimsOf, STUDIO_ID } from '../support/builders.ts';
import { correctLead, moveLead } from './store-actions.ts';

/** A store that lacks its index of keys, with leads that the index would not allow. */
interface StoreWithDuplicates {
  readonly store: Store;
  /** A lead without a duplicate. */
  readonly alone: Lead;
  readonly closed: Lead;
  /** One of two leads with the same key. */
  readonly first: Lead;
}

/** What a store does on a database with two leads of one key. */
export function duplicatesContract(open: () => Promise<StoreWithDuplicates>): void {
  test('leads are read, closed and corrected, and none is created', async () => {
    const { store, alone, closed, first } = await open();
    const lead = aLead();

    await expect(store.createLead(lead, claimsOf(lead))).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await store.findLead(STUDIO_ID, alone.id)).toEqual(alone);
    expect((await store.listLeads(STUDIO_ID, null, 10)).records).toHaveLength(4);
    expect(await moveLead(store, alone, 'contacted')).toMatchObject({ kind: 'changed' });
    expect(await moveLead(store, first, 'won')).toMatchObject({ kind: 'changed' });
    expect(await correctLead(store, alone, { note: 'x' })).toMatchObject({ kind: 'updated' });
    expect(await correctLead(store, closed, { contact: lead.contact })).toMatchObject({ kind: 'updated' });
  });
}
