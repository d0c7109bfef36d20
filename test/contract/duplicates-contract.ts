import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Lead, LeadClaims } from '../../src/domain/lead.ts';
import { type Store, StoreUnavailable } from '../../src/store/store.ts';
import { aLead, STUDIO_ID } from '../support/builders.ts';
import { correctLead, moveLead } from './store-actions.ts';

/** A store that lacks a unique index, with leads that the index would not allow. */
interface StoreWithDuplicates {
  readonly store: Store;
  /** A lead without a duplicate, and its claims. */
  readonly alone: Lead;
  readonly claims: LeadClaims;
  readonly closed: Lead;
  /** One of two leads with the same value. */
  readonly first: Lead;
  readonly firstClaims: LeadClaims;
}

/**
 * The promises of a store on a database with two leads of one key or one contact.
 *
 * @param ambiguous the duplicates with which the store cannot replay the creation of one of them
 */
export function duplicatesContract(
  open: (by: 'key' | 'contact') => Promise<StoreWithDuplicates>,
  ambiguous: readonly ('key' | 'contact')[],
): void {
  test('leads are read, an unambiguous retry is replayed, and a lead can be closed', async () => {
    const { store, alone, claims, closed, first } = await open('key');

    expect(await store.findLead(STUDIO_ID, alone.id)).toEqual(alone);
    expect((await store.listLeads(STUDIO_ID, null, 10)).records).toHaveLength(4);
    expect(await store.createLead({ ...alone, id: randomUUID() }, claims)).toEqual({ kind: 'replayed', lead: alone });
    expect(await store.findLeadByIdempotencyKey(STUDIO_ID, claims.idempotencyKey)).toMatchObject({ lead: alone });
    expect(await moveLead(store, alone, 'contacted')).toMatchObject({ kind: 'changed' });
    expect(await moveLead(store, first, 'won')).toMatchObject({ kind: 'changed' });
    await expect(moveLead(store, closed, 'new')).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await store.findLead(STUDIO_ID, closed.id)).toMatchObject({ stage: 'lost' });
  });

  test('leads can be corrected, but an open one cannot get another contact', async () => {
    const { store, alone, closed } = await open('key');
    const { contact } = aLead();

    expect(await correctLead(store, alone, { note: 'x' })).toMatchObject({ kind: 'updated' });
    expect(await correctLead(store, closed, { contact })).toMatchObject({ kind: 'updated' });
    await expect(correctLead(store, alone, { contact })).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await store.findLead(STUDIO_ID, alone.id)).toMatchObject({ contact: alone.contact });
  });

  test.each(ambiguous)(
    'with one %s, a retry of a duplicate fails: it is unknown which lead was returned',
    async (by) => {
      const { store, first, firstClaims } = await open(by);

      await expect(store.createLead({ ...first, id: randomUUID() }, firstClaims)).rejects.toThrow(StoreUnavailable);
      await expect(store.findLeadByIdempotencyKey(STUDIO_ID, firstClaims.idempotencyKey)).rejects.toThrow(
        StoreUnavailable,
      );
    },
  );
}
