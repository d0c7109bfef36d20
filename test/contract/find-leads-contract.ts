import { beforeEach, describe, expect, test } from 'vitest';
import { type Contact, openClaims } from '../../src/domain/contact.ts';
import { type Lead, MAX_LEADS_PER_CONTACT } from '../../src/domain/lead.ts';
import { readTexts } from '../../src/domain/lead-data.ts';
import { newId } from '../../src/domain/new-id.ts';
import type { Store } from '../../src/store/store.ts';
import { aClaim, aLead, aStudio, claimsOf, STUDIO_ID, times } from '../support/builders.ts';
import type { OpenedStore } from './opened-store.ts';
import { actionsOn, moveLead } from './store-actions.ts';

/** The promises of `findLeadsOfContact`. */
export function findLeadsContract(opened: () => OpenedStore): void {
  // @proves leads-9
  describe('the leads of a contact', () => {
    let store: Store;
    beforeEach(() => {
      store = opened().store;
    });
    const { created, moved, corrected } = actionsOn(() => store);

    const anEmail = (): Contact => ({ type: 'email', value: `${newId()}@example.org` });

    const byId = (leads: readonly Lead[]) => leads.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const foundBy = async (contactKeys: readonly string[], studioId = STUDIO_ID) =>
      byId((await store.findLeadsOfContact(studioId, contactKeys)).leads);
    const found = (contact: Contact, studio = aStudio()) => foundBy(openClaims(contact, studio).contactKeys);

    test('are found, open and closed, and no others', async () => {
      const contact = anEmail();
      const leads = [
        await moved(await created(aLead({ contact })), 'won'),
        await moved(await created(aLead({ contact })), 'lost'),
        await created(aLead({ contact })),
      ];
      const other = await created();
      await moved(await created(), 'won');
      const theirs = await created(aLead({ contact, studioId: 'studio-2' }));

      expect(await found(contact)).toEqual(byId(leads));
      expect(await found(other.contact)).toEqual([other]);
      expect(await found(anEmail())).toEqual([]);
      expect(await foundBy(claimsOf(theirs).contactKeys, 'studio-2')).toEqual([theirs]);
      expect(await foundBy(claimsOf(theirs).contactKeys, 'studio-3')).toEqual([]);
    });

    test('are found by any of their claims, each once, even after a restart', async () => {
      const [open, closed] = [aLead(), aLead()];
      const keys = (...names: string[]) => ({ contactKeys: names.map(aClaim) });
      await created(open, claimsOf(open, keys('a', 'b')));
      await created(closed, claimsOf(closed, keys('x')));
      const lost = await moved(closed, 'lost', { claims: claimsOf(closed, keys('b', 'c')) });

      store = await opened().reopen();
      expect(await foundBy([aClaim('a')])).toEqual([open]);
      expect(await foundBy([aClaim('c')])).toEqual([lost]);
      expect(await foundBy([aClaim('b')])).toEqual(byId([open, lost]));
      expect(await foundBy(['a', 'b', 'c'].map(aClaim))).toEqual(byId([open, lost]));
      // A closed lead is found by what it had claimed, too.
      expect(await foundBy([aClaim('x')])).toEqual([lost]);
    });

    // @proves studios-3
    test('have all that is kept of them in their records: enquiries, the idempotency key, and what they were created with', async () => {
      const lead = aLead({ note: 'first', sourceId: newId() });
      const { idempotencyKey } = claimsOf(lead);
      await created(lead, claimsOf(lead, { idempotencyKey }));
      const record = () => store.findLeadRecord(STUDIO_ID, lead.id);
      expect(await record()).toEqual({ lead, idempotencyKey, original: null });
      const original = readTexts(lead);
      const now = await corrected(lead, { displayName: 'Ada King', sourceId: null, note: null });
      expect(await record()).toEqual({ lead: now, idempotencyKey, original });
      const again = aLead({ contact: lead.contact, note: 'again' });
      await store.createLead(again, claimsOf(again), { keepsEnquiry: true });
      const enquiry = { id: expect.any(String), time: again.createdAt, ...readTexts(again) };
      store = await opened().reopen();
      expect(await record()).toEqual({ lead: { ...now, enquiries: [enquiry] }, idempotencyKey, original });

      expect(await store.findLeadRecord('studio-2', lead.id)).toBeNull();
      expect(await store.findLeadRecord(STUDIO_ID, newId())).toBeNull();
      await store.eraseLead({ studioId: STUDIO_ID, leadId: lead.id, memberId: null, now: now.updatedAt });
      expect(await record()).toBeNull();
    });

    test.each(['new', 'lost'] as const)(
      'are found by the corrected contact and not by the former one: %s',
      async (stage) => {
        const lead = await created();
        if (stage !== 'new') await moved(lead, stage);
        const contact = anEmail();
        const now = await corrected(lead, { contact });

        expect(await found(contact)).toEqual([now]);
        expect(await found(lead.contact)).toEqual([]);
        const to = stage === 'new' ? 'won' : 'contacted';
        expect(await moveLead(store, lead, to)).toEqual({ kind: 'other-contact' });
        const last = await moved(now, to);
        expect(await found(contact)).toEqual([last]);
        expect(await found(lead.contact)).toEqual([]);
      },
    );

    // @proves bounds-37
    test('above the bound: as many as the bound are found, including the open ones, whichever of the keys they have', async () => {
      const [first, second, third] = [aLead(), aLead(), aLead()];
      const { contact } = first;
      const [a, b, c] = [claimsOf(first).contactKeys, [aClaim('b')], [aClaim('c')]];
      await opened().makeLeads(...times(MAX_LEADS_PER_CONTACT + 3, () => aLead({ contact, stage: 'lost' })));
      const both = await created();
      await moved(both, 'lost', { claims: claimsOf(both, { contactKeys: [...a, ...b] }) });
      await created(first);
      await created(second, claimsOf(second, { contactKeys: b }));
      await created(third, claimsOf(third, { contactKeys: c }));

      for (const keys of [a, [...a, ...b, ...c], [...c, ...b, ...a]]) {
        const all = await foundBy(keys);
        expect(all).toHaveLength(MAX_LEADS_PER_CONTACT);
        expect(all).toEqual(expect.arrayContaining(keys === a ? [first] : [first, second, third]));
      }
    });
  });
}
