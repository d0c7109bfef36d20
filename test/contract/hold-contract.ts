import { beforeEach, describe, expect, test } from 'vitest';
import type { Lead } from '../../src/domain/lead.ts';
import { newId } from '../../src/domain/new-id.ts';
import { NO_TIME } from '../../src/store/checked.ts';
import type { HoldPut, Store } from '../../src/store/store.ts';
import { aLead, aLeadSource, aMember, aStudio, BY, NOW, plus, STUDIO_ID, times } from '../support/builders.ts';
import { type Damage, type OpenedStore, tryEach } from './opened-store.ts';
import { actionsOn, moveLead } from './store-actions.ts';

const REASON = 'LEGAL_CASE_7';
const hold = { reason: REASON, createdAt: NOW };

/** The promises about holds, and what they forbid. */
export function holdContract(damages: readonly Damage[], opened: () => OpenedStore): void {
  // @proves erasure-5
  describe('holds', () => {
    let store: Store;
    beforeEach(async () => {
      store = opened().store;
      await store.putStudio(aStudio(), BY);
    });
    const { created } = actionsOn(() => store);

    const put = (leadId: string | null, more: Partial<HoldPut> = {}, at = store) =>
      at.putHold({ studioId: STUDIO_ID, leadId, reason: REASON, ...BY, now: NOW, ...more });
    const remove = (leadId: string | null, at = store) => put(leadId, { reason: null }, at);
    const erase = ({ studioId, id: leadId }: Pick<Lead, 'studioId' | 'id'>, at = store) =>
      at.eraseLead({ studioId, leadId, memberId: null, now: plus(new Date(), 60_000) });
    const eventsOf = async (leadId: string | null) =>
      (await store.listAuditEvents(STUDIO_ID, leadId))
        .filter(({ action }) => /hold/.test(action))
        .map(({ action, from, to, memberId }) => [action, from, to, memberId]);

    test('a held lead cannot be erased, and is what it was in all other respects, until the hold is removed', async () => {
      const lead = await created();
      const beside = await created();
      const [before] = await store.listLeadChanges(1);
      expect(await put(lead.id)).toEqual({ kind: 'put', before: null, hold });
      const another = await opened().another();
      for (const at of [store, another]) expect(await erase(lead, at)).toEqual({ kind: 'held' });

      // In the views that have all of a lead, and nowhere else.
      const held = { ...lead, hold };
      expect(await store.findLead(STUDIO_ID, lead.id)).toEqual(held);
      expect(await store.findLeadRecord(STUDIO_ID, lead.id)).toMatchObject({ lead: held });
      expect((await store.walkLeads(STUDIO_ID, null, 10)).records).toEqual([held, beside]);
      expect((await store.listLeads(STUDIO_ID, null, 10)).records).toEqual([beside, lead]);
      expect((await store.listLeadChanges(10))[0]).toEqual(before);

      expect(await moveLead(store, lead, 'won')).toMatchObject({ kind: 'changed' });
      expect(await erase(lead)).toEqual({ kind: 'held' });
      expect(await erase(beside)).toMatchObject({ kind: 'erased' });
      store = await opened().reopen();
      expect(await erase(lead)).toEqual({ kind: 'held' });
      expect(await remove(lead.id)).toEqual({ kind: 'put', before: hold, hold: null });
      expect(await store.findLead(STUDIO_ID, lead.id)).not.toHaveProperty('hold');
      expect(await erase(lead)).toMatchObject({ kind: 'erased' });
    });

    test('a lead that has changed since the expected time is no longer what was to be erased, held or not', async () => {
      const { id: leadId } = await created();
      await put(leadId);
      const erasure = { studioId: STUDIO_ID, leadId, memberId: null, now: NOW };
      expect(await store.eraseLead({ ...erasure, expectedUpdatedAt: plus(NOW, 1) })).toEqual({ kind: 'stale' });
    });

    test('an equal put changes nothing, one with another reason replaces the hold, and each change is an event', async () => {
      const { id } = await created();
      const later = plus(NOW, 5000);
      for (const leadId of [id, null]) {
        expect(await remove(leadId)).toEqual({ kind: 'put', before: null, hold: null });
        await put(leadId);
        expect(await put(leadId, { now: later })).toEqual({ kind: 'put', before: null, hold });
        const replaced = { reason: 'AUDIT', createdAt: later };
        expect(await put(leadId, { reason: 'AUDIT', now: later })).toEqual({
          kind: 'put',
          before: hold,
          hold: replaced,
        });
        await remove(leadId);
        await remove(leadId);
        const action = leadId === null ? 'studio-hold-changed' : 'lead-hold-changed';
        expect(await eventsOf(leadId)).toEqual([
          [action, 'AUDIT', null, BY.memberId],
          [action, REASON, 'AUDIT', BY.memberId],
          [action, null, REASON, BY.memberId],
        ]);
      }
    });

    test('a held studio keeps all its leads, also later ones, and no other studio; its leads may be held apart', async () => {
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      const lead = await created();
      const theirs = await created(aLead({ studioId: 'studio-2' }));
      const gone = await created();
      const erased = await erase(gone);
      expect(await put(null)).toEqual({ kind: 'put', before: null, hold });
      const another = await opened().another();
      expect(await another.findStudio(STUDIO_ID)).toEqual(aStudio({ hold }));
      expect((await store.listStudios(null, 1)).records).toEqual([aStudio({ hold })]);
      const later = await created();
      for (const each of [lead, later]) expect(await erase(each, another)).toEqual({ kind: 'held' });
      expect(await erase(gone)).toEqual({ ...erased, isNew: false });
      expect(await erase(theirs)).toMatchObject({ kind: 'erased' });
      expect(await store.putStudio(aStudio({ status: 'suspended', hold: null }), BY)).toMatchObject({ hold });
      await put(lead.id);
      await remove(null);
      expect(await erase(lead)).toEqual({ kind: 'held' });
      expect(await erase(later)).toMatchObject({ kind: 'erased' });
    });

    test('what does not exist, or was erased, cannot be held', async () => {
      const lead = await created();
      await erase(lead);
      const events = await store.listAuditEvents(STUDIO_ID, lead.id);
      for (const reason of [REASON, null]) {
        for (const leadId of [lead.id, newId()]) expect(await put(leadId, { reason })).toEqual({ kind: 'not-found' });
        for (const leadId of [lead.id, null])
          expect(await put(leadId, { reason, studioId: 'studio-none' })).toEqual({ kind: 'not-found' });
      }
      expect(await store.listAuditEvents(STUDIO_ID, lead.id)).toEqual(events);
      expect(await store.findStudio('studio-none')).toBeNull();
    });

    test('a test studio is not emptied while a hold stands on it, or on one of the next leads', async () => {
      const studioId = 'studio-test';
      await store.putStudio(aStudio({ id: studioId, isTest: true }), BY);
      const leads = [];
      for (const _ of times(3, () => 0)) leads.push(await created(aLead({ studioId })));
      const [first = expect.fail(), , last = expect.fail()] = leads;
      const idsLeft = async () => (await store.walkLeads(studioId, null, 10)).records.map(({ id }) => id);
      await put(null, { studioId });
      expect(await store.deleteLeads(studioId, 10, BY)).toBe('held');
      await put(null, { studioId, reason: null });
      await put(last.id, { studioId });
      expect(await store.deleteLeads(studioId, 10, BY)).toBe('held');
      expect(await idsLeft()).toEqual(leads.map(({ id }) => id));
      await erase(first);
      expect(await store.deleteLeads(studioId, 2, BY)).toBe(2);
      expect(await store.deleteLeads(studioId, 2, BY)).toBe('held');
      expect(await idsLeft()).toEqual([last.id]);
      await put(last.id, { studioId, reason: null });
      expect(await store.deleteLeads(studioId, 2, BY)).toBe(1);
    });

    test('whatever happens at once, no lead is erased while it is held, and each is held or erased', async () => {
      const another = await opened().another();
      for (let round = 0; round < 4; round += 1) {
        const leads = await Promise.all(times(10, () => created()));
        const outcomes = await Promise.all(
          leads.map(async ({ id, ...lead }, index) => {
            const [a, b] = index % 2 ? [store, another] : [another, store];
            const erasing = erase({ id, ...lead }, a);
            const [erased, held] = await Promise.all([erasing, put(id, {}, b), moveLead(b, { id, ...lead }, 'won')]);
            return { id, erased: erased.kind, held: held.kind };
          }),
        );
        for (const { id, erased, held } of outcomes) {
          expect([erased, held]).toEqual(held === 'put' ? ['held', 'put'] : ['erased', 'not-found']);
          expect((await store.findLead(STUDIO_ID, id))?.hold).toEqual(held === 'put' ? hold : undefined);
          expect(await eventsOf(id)).toHaveLength(held === 'put' ? 1 : 0);
        }
      }
    });

    test('rival holds leave one of them, with an event for each change', async () => {
      const { id } = await created();
      const another = await opened().another();
      for (const leadId of [id, null]) {
        const reasons = ['A', 'B', null, 'C', null, 'D'];
        await Promise.all(
          times(12, (index) =>
            put(leadId, { reason: reasons[index % 6] ?? null, now: plus(NOW, index) }, index % 2 ? store : another),
          ),
        );
        const now = leadId === null ? await store.findStudio(STUDIO_ID) : await store.findLead(STUDIO_ID, id);
        const events = (await eventsOf(leadId)).toReversed();
        expect(events.at(-1)?.[2] ?? null).toBe(now?.hold?.reason ?? null);
        for (const [index, event] of events.entries()) expect(event[1]).toBe(events[index - 1]?.[2] ?? null);
      }
    });

    // @proves erasure-6
    test('a studio ends for good, without members, sources and retention, unless it is held; its leads stay until they are erased', async () => {
      const ended = { kind: 'ended', members: 0, sources: 0 };
      const lead = await created();
      const [gone, held] = [await created(), await created()];
      await erase(gone);
      await put(held.id);
      for (const id of ['one', 'two']) await store.putMember(aMember({ id }), BY);
      await store.putLeadSource(aLeadSource(), BY);
      await put(null);
      expect(await store.endStudio(STUDIO_ID, BY)).toEqual({ kind: 'held' });
      expect(await store.findStudio(STUDIO_ID)).toEqual(aStudio({ hold }));
      await store.putStudio({ ...aStudio(), retentionDays: 30 }, BY);
      expect(await store.findMember(STUDIO_ID, 'one')).toBeTruthy();
      await remove(null);
      expect(await store.endStudio('studio-none', BY)).toEqual({ kind: 'not-found' });
      expect(await store.endStudio(STUDIO_ID, BY)).toEqual({ kind: 'ended', members: 2, sources: 1 });
      expect(await store.endStudio(STUDIO_ID, BY)).toEqual(ended);

      store = await opened().reopen();
      expect(await store.endStudio(STUDIO_ID, BY)).toEqual(ended);
      expect(await store.findStudio(STUDIO_ID)).toEqual(aStudio({ status: 'ended' }));
      expect(await store.findMember(STUDIO_ID, 'one')).toBeNull();
      expect((await store.listLeadSources(STUDIO_ID, null, 10)).records).toEqual([]);
      expect(await store.putMember(aMember(), BY)).toBe('ended');
      expect(await store.putLeadSource(aLeadSource(), BY)).toBe('ended');
      for (const more of [{}, { status: 'suspended' as const }, { quotaLimit: 5 }])
        expect(await store.putStudio({ ...aStudio(), ...more }, BY)).toBe('ended');
      expect(await store.walkUnerasedLeads(STUDIO_ID, null, 10)).toEqual({
        leads: [
          { id: lead.id, isHeld: false },
          { id: held.id, isHeld: true },
        ],
        next: null,
      });
      const page = await store.walkUnerasedLeads(STUDIO_ID, lead.id, 1);
      expect(page).toEqual({ leads: [], next: gone.id });
      const events = (await store.listAuditEvents(STUDIO_ID, null)).filter(({ to }) => to === 'ended');
      expect(events).toMatchObject([{ action: 'studio-status-changed', from: 'active', memberId: BY.memberId }]);
    });

    // @proves erasure-6
    test('no put of a studio revives one that ends at the same time, and no hold is passed', async () => {
      const another = await opened().another();
      for (let round = 0; round < 5; round += 1) {
        const id = `studio-ending-${round}`;
        await store.putStudio(aStudio({ id }), BY);
        const [end, held] = await Promise.all([
          store.endStudio(id, BY),
          put(null, { studioId: id }, another),
          ...times(4, (index) => another.putStudio(aStudio({ id, quotaLimit: index + 1 }), BY)),
        ]);
        const studio = await store.findStudio(id);
        expect(studio).toMatchObject({ status: end.kind === 'ended' ? 'ended' : 'active', hold });
        expect(held).toMatchObject({ kind: 'put' });
        expect(await store.endStudio(id, BY)).toEqual({ kind: 'held' });
      }
    });

    // @proves limits-1
    test('a hold that cannot be read stands like any other, and can be removed', () =>
      tryEach(opened(), damages, ['hold', 'held studio'], async ({ kind, ...damage }, studioId) => {
        const lead = await created(aLead({ studioId }));
        const leadId = kind === 'hold' ? lead.id : null;
        await put(leadId, { studioId });
        await opened().damage({ kind, ...damage }, { studioId, id: leadId ?? studioId });
        expect(await erase(lead)).toEqual({ kind: 'held' });
        const holder = kind === 'hold' ? await store.findLead(studioId, lead.id) : await store.findStudio(studioId);
        const read = holder?.hold ?? expect.fail('it has no hold');
        expect([read.reason, read.createdAt.getTime()]).toEqual([
          expect.stringMatching(/^(UNREADABLE|LEGAL_CASE_7)$/),
          expect.toBeOneOf([NOW.getTime(), NO_TIME.getTime()]),
        ]);
        expect(await put(leadId, { studioId, reason: null })).toEqual({ kind: 'put', before: read, hold: null });
        expect(await erase(lead)).toMatchObject({ kind: 'erased' });
      }));

    test('a lead of which nothing can be read can be held', () =>
      tryEach(opened(), damages, ['lead', 'mark', 'claim'], async (damage, studioId) => {
        const lead = await created(aLead({ studioId }));
        await opened().damage(damage, lead);
        expect(await put(lead.id, { studioId })).toEqual({ kind: 'put', before: null, hold });
        const outcome = await erase(lead).catch(({ kind }) => ({ kind }));
        expect(outcome).toEqual({ kind: expect.stringMatching(/^(held|lead)$/) });
        expect(await put(lead.id, { studioId, reason: null })).toEqual({ kind: 'put', before: hold, hold: null });
      }));
  });
}
