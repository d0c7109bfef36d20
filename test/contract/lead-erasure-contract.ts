import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DEFAULT_CONSUMER } from '../../src/domain/consumer.ts';
import type { Lead } from '../../src/domain/lead.ts';
import { newId } from '../../src/domain/new-id.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead, aStudio, BY, keysFor, NOW, plus, STUDIO_ID, times } from '../support/builders.ts';
import { contradictionsIn } from '../support/contradictions.ts';
import type { OpenedStore } from './opened-store.ts';
import {
  acknowledgeIn,
  actionsOn,
  changesIn,
  correctLead,
  createdConsumer,
  moveLead,
  toAcknowledgement,
} from './store-actions.ts';

/** The promises of `LeadErasureStore`. */
export function leadErasureContract(opened: () => OpenedStore): void {
  // @proves erasure-1
  describe('erasing leads', () => {
    let store: Store;
    beforeEach(async () => {
      store = opened().store;
      await store.putStudio(aStudio(), BY);
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
    });
    afterEach(async () => expect(await contradictionsIn(opened().databaseUrl)).toEqual([]));
    const { created } = actionsOn(() => store);

    const erase = ({ studioId, id }: Lead, now = plus(new Date(), 60_000), from = store) =>
      from.eraseLead({ studioId, leadId: id, memberId: 'member-1', now });
    const move = (lead: Lead, stage: Lead['stage']) =>
      moveLead(store, lead, stage, { now: plus(lead.createdAt, 1000) });
    const rename = (lead: Lead, displayName: string, from = store) =>
      correctLead(from, lead, { displayName }, { now: plus(lead.createdAt, 2000) });

    test.each(['new', 'won'] as const)(
      'an erased lead cannot be found, keeps its stage, and frees its contact: %s',
      async (stage) => {
        const lead = await created(aLead({ note: 'Calls back.' }));
        const other = await created();
        if (stage !== 'new') await move(lead, stage);
        await rename(lead, 'Ada King');
        const now = plus(lead.createdAt, 60_000);
        const { id, studioId, createdAt } = lead;

        expect(await erase(lead, now)).toEqual({
          kind: 'erased',
          lead: { id, studioId, stage, createdAt, updatedAt: now, erasedAt: now },
          isNew: true,
        });

        expect(await store.findLead(studioId, id)).toBeNull();
        expect(await store.presenceOfLead(studioId, id)).toBe('erased');
        expect(await store.presenceOfLead(studioId, other.id)).toBe('present');
        for (const [studio, lead] of [
          ['studio-2', id],
          ['studio-2', other.id],
          [studioId, newId()],
        ] as const) {
          expect(await store.presenceOfLead(studio, lead)).toBeNull();
        }
        expect((await store.listLeads(studioId, null, 10)).records).toEqual([other]);
        expect(await move(lead, 'lost')).toEqual({ kind: 'not-found' });
        expect(await rename(lead, 'Ada')).toEqual({ kind: 'not-found' });
        expect((await store.findLeadsOfContact(studioId, keysFor(lead).contactKeys)).leads).toEqual([]);
        await created(aLead({ contact: lead.contact }));
      },
    );

    // @proves erasure-17
    test('an erased lead is deleted with all its data once each named consumer acknowledged it', async () => {
      const { number } = await createdConsumer(store);
      const [first, second, open, theirs] = [
        await created(),
        await created(),
        await created(),
        await created(aLead({ studioId: 'studio-2' })),
      ];
      const all = [first, second, open, theirs].map(({ id }) => id);
      const now = plus(new Date(), 60_000);
      for (const lead of [first, second, theirs]) await erase(lead, now);
      const deleted = (until = now) => store.deleteErasedLeads(STUDIO_ID, all, until);
      // First nothing is distributed, then both wait, then only one is acknowledged.
      expect(await deleted()).toBe(0);
      const changes = (await store.listDeliveries(number, 10))?.changes ?? [];
      expect(await deleted()).toBe(0);
      const [ofFirst] = changes.filter(({ lead }) => lead.id === first.id).map(toAcknowledgement);
      if (!ofFirst) return expect.fail('it was not sent');
      await store.acknowledgeDeliveries(number, [ofFirst]);
      expect(await deleted(plus(now, -1))).toBe(0);
      expect(await deleted()).toBe(1);
      expect(await deleted()).toBe(0);
      expect(await store.presenceOfLead(STUDIO_ID, first.id)).toBeNull();
      expect(await store.listAuditEvents(STUDIO_ID, first.id)).toEqual([]);
      expect((await store.walkErasedLeads(STUDIO_ID, null, 10)).leads).toMatchObject([{ id: second.id }]);
      // The default consumer, which nobody polls, did not prevent the deletion.
      expect(await store.measureDeliveries(DEFAULT_CONSUMER.number, 10)).toMatchObject({ waiting: { leads: 3 } });
      expect((await changesIn(store, 10)).map(({ lead }) => lead.id)).not.toContain(first.id);
      await store.removeConsumer(number, BY);
      expect(await deleted()).toBe(1);
      expect(await store.findLead(STUDIO_ID, open.id)).toEqual(open);
      expect(await store.presenceOfLead('studio-2', theirs.id)).toBe('erased');
      const { idempotencyKey } = keysFor(first);
      const again = aLead();
      expect(await store.createLead(again, keysFor(again, { idempotencyKey }))).toMatchObject({ kind: 'created' });
      expect(await store.deleteErasedLeads('studio-none', all, now)).toBe(0);
    });

    // @proves studios-3
    test('a corrected lead is found for erasure by each former contact, until it is erased', async () => {
      const lead = await created(aLead({ contact: { type: 'email', value: 'first@example.org' } }));
      const theirs = await created(aLead({ studioId: 'studio-2', contact: lead.contact }));
      const contacts = ['first', 'second', 'third'].map(
        (name) => ({ type: 'email', value: `${name}@example.org` }) as const,
      );
      const computeKeys = (contact: Lead['contact']) => keysFor(aLead({ contact })).contactKeys;
      const foundBy = async (contact: Lead['contact'], former?: 'former') =>
        (await store.findLeadsOfContact(STUDIO_ID, computeKeys(contact), former)).leads.map(({ id }) => id);
      const [first, second, third] = contacts as [Lead['contact'], Lead['contact'], Lead['contact']];
      await correctLead(store, lead, { contact: second }, { now: plus(lead.createdAt, 1) });
      await move({ ...lead, contact: second }, 'won');
      await correctLead(store, { ...lead, contact: second }, { contact: third }, { now: plus(lead.createdAt, 2000) });
      await move({ ...lead, contact: third }, 'contacted');

      for (const contact of [first, second]) {
        expect(await foundBy(contact)).toEqual([]);
        expect(await foundBy(contact, 'former')).toEqual([lead.id]);
        await created(aLead({ contact }));
      }
      expect([await foundBy(third), await foundBy(third, 'former')]).toEqual([[lead.id], []]);

      await erase(lead);
      for (const contact of contacts) {
        for (const former of [undefined, 'former'] as const)
          expect(await foundBy(contact, former)).not.toContain(lead.id);
      }
      expect((await store.findLeadsOfContact('studio-2', computeKeys(first))).leads).toEqual([theirs]);
    });

    test("repeating an erased lead's key reports the erasure, whatever the data, and writes nothing", async () => {
      const lead = aLead();
      const keys = keysFor(lead);
      await created(lead, keys);
      await erase(lead);
      const { idempotencyKey } = keys;

      expect(await store.createLead({ ...lead, id: newId() }, keys)).toEqual({ kind: 'erased' });
      const other = aLead();
      expect(await store.createLead(other, keysFor(other, { idempotencyKey }))).toEqual({ kind: 'erased' });
      expect(await store.findLeadByIdempotencyKey(STUDIO_ID, idempotencyKey)).toEqual({ kind: 'erased' });
      expect((await store.listLeads(STUDIO_ID, null, 10)).records).toEqual([]);
    });

    test('erasing a lead again changes neither its time, its events, nor the feed', async () => {
      const lead = await created();
      const first = await erase(lead);
      await acknowledgeIn(store, await changesIn(store, 10));

      expect(await erase(lead, plus(new Date(), 86_400_000), await opened().another())).toEqual({
        ...first,
        isNew: false,
      });

      expect(await changesIn(store, 10)).toEqual([]);
      expect((await store.listAuditEvents(STUDIO_ID, lead.id)).map(({ action }) => action)).toEqual(['lead-erased']);
    });

    // @proves erasure-15
    test('concurrent erasures of the same leads count each lead once', async () => {
      const leads = await Promise.all(times(20, () => created()));
      const rivals = [store, await opened().another(), store];
      const now = plus(leads[0]?.createdAt ?? NOW, 60_000);
      const outcomes = await Promise.all(rivals.flatMap((from) => leads.map((lead) => erase(lead, now, from))));
      expect(outcomes.every(({ kind }) => kind === 'erased')).toBe(true);
      expect(outcomes.filter((each) => each.kind === 'erased' && each.isNew)).toHaveLength(leads.length);
      expect((await store.walkErasedLeads(STUDIO_ID, null, 10)).leads).toHaveLength(10);
    });

    test('a lead that changed since the expected time is not erased', async () => {
      const lead = await created();
      await rename(lead, 'Ada King');
      const { studioId, id: leadId } = lead;
      const now = plus(lead.createdAt, 60_000);
      const eraseIfUnchangedSince = (expectedUpdatedAt: Date) =>
        store.eraseLead({ studioId, leadId, memberId: null, now, expectedUpdatedAt });

      expect(await eraseIfUnchangedSince(lead.updatedAt)).toEqual({ kind: 'stale' });
      const current = await store.findLead(studioId, leadId);
      expect(current?.displayName).toBe('Ada King');
      expect(await eraseIfUnchangedSince(current?.updatedAt ?? NOW)).toMatchObject({ kind: 'erased' });
      expect(await eraseIfUnchangedSince(lead.updatedAt)).toMatchObject({ kind: 'erased' });
    });

    test('the feed sends an erased lead without its personal data', async () => {
      const lead = await created();
      const outcome = await erase(lead);

      expect(await changesIn(store, 10)).toEqual([
        {
          lead: outcome.kind === 'erased' && outcome.lead,
          revision: expect.any(Number),
          since: lead.createdAt,
          kinds: [{ kind: 'created', time: lead.createdAt }, expect.objectContaining({ kind: 'erased' })],
          attempts: 0,
        },
      ]);
    });

    test('concurrent corrections never restore data of an erased lead', async () => {
      const other = await opened().another();
      const leads = await Promise.all(times(10, () => created()));

      await Promise.all(
        leads.flatMap((lead, index) => [
          rename(lead, 'Ada King'),
          erase(lead, plus(new Date(), 60_000 + index), other),
          rename(lead, 'Ada Byron', other),
          move(lead, 'won'),
        ]),
      );

      expect((await store.listLeads(STUDIO_ID, null, 100)).records).toEqual([]);
      for (const { lead } of await changesIn(store, 100)) expect(lead).not.toHaveProperty('displayName');
    });
  });
}
