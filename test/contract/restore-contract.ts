import { beforeEach, describe, expect, test } from 'vitest';
import { newId } from '../../src/domain/new-id.ts';
import type { Store } from '../../src/store/store.ts';
import { aConsumer, aLead, aStudio, BY, NOW, plus, STUDIO_ID } from '../support/builders.ts';
import { type Damage, emptyName, type OpenedStore, tryEach } from './opened-store.ts';
import { actionsOn, changesIn, correctLead } from './store-actions.ts';

const DAY_MS = 86_400_000;

/** The promises about a restore, and about the calls that consumers make after it. */
export function restoreContract(damages: readonly Damage[], opened: () => OpenedStore): void {
  // @proves feed-10
  describe('a database that is restored', () => {
    let store: Store;
    beforeEach(async () => {
      store = opened().store;
      await store.putStudio(aStudio(), BY);
    });
    const { created } = actionsOn(() => store);
    const OVERLAP_MS = 300_000;
    const NEVER = { epoch: 0, restoredTo: null, backedUpAt: null };

    test('each restore gets a higher epoch, even if a clock was set back, and the earliest time', async () => {
      const other = await opened().another();
      expect(await store.findEpoch()).toEqual(NEVER);
      const first = { epoch: NOW.getTime(), restoredTo: plus(NOW, -5000 - OVERLAP_MS), backedUpAt: null };
      expect(await store.raiseEpoch(plus(NOW, -5000), NOW, BY)).toEqual(first);
      expect(await other.findEpoch()).toEqual(first);

      // A consumer may not know of either restore.
      const second = { ...first, epoch: NOW.getTime() + 1 };
      expect(await other.raiseEpoch(plus(NOW, -1000), plus(NOW, -DAY_MS), BY)).toEqual(second);
      expect(await store.findEpoch()).toEqual(second);
      const third = { ...first, epoch: NOW.getTime() + 2, restoredTo: plus(NOW, -9000 - OVERLAP_MS) };
      expect(await store.raiseEpoch(plus(NOW, -9000), NOW, BY)).toEqual(third);
      const reopened = await opened().reopen();
      expect(await reopened.findEpoch()).toEqual(third);
      // The backup has the former epoch.
      expect(await reopened.raiseEpoch(null, NOW, BY)).toEqual({ ...third, epoch: NOW.getTime() + 3 });
    });

    test('a restore may have lost everything if nobody knows when its backup began', async () => {
      expect(await store.raiseEpoch(null, NOW, BY)).toMatchObject({ restoredTo: new Date(0) });
    });

    test('concurrently noted restores keep the earliest time and each get an epoch', async () => {
      await store.raiseEpoch(NOW, NOW, BY);
      const stores = [store, await opened().another()];
      const to = [plus(NOW, -1000), null, plus(NOW, -9000), null, plus(NOW, -5000), NOW];
      const raised = await Promise.all(to.map((time, index) => stores[index % 2]?.raiseEpoch(time, NOW, BY)));
      expect(new Set(raised.map((each) => each?.epoch)).size).toBe(to.length);
      expect(await store.findEpoch()).toMatchObject({
        epoch: NOW.getTime() + to.length,
        restoredTo: plus(NOW, -9000 - OVERLAP_MS),
      });
    });

    test('the epoch is stored beside consumers and test studios, whichever comes first', async () => {
      await store.raiseEpoch(NOW, NOW, BY);
      expect(await store.createConsumer(aConsumer(), BY)).toMatchObject({ kind: 'created' });
      await store.putStudio(aStudio({ id: 'studio-test', isTest: true }), BY);
      expect(await store.raiseEpoch(NOW, plus(NOW, 1), BY)).toMatchObject({ epoch: NOW.getTime() + 1 });
      expect(await store.createConsumer(aConsumer({ name: 'other' }), BY)).toMatchObject({ kind: 'created' });
      expect(await store.listConsumers()).toHaveLength(2);
      expect(await store.findEpoch()).toMatchObject({
        epoch: NOW.getTime() + 1,
        restoredTo: plus(NOW, -OVERLAP_MS),
      });
    });

    test('an unreadable restore counts as none, or as one that may have lost everything', async () => {
      await tryEach(opened(), damages, ['epoch'], async (damage, studioId) => {
        await store.raiseEpoch(NOW, NOW, BY);
        await opened().damage(damage, { studioId, id: newId() });
        const everything = { epoch: expect.any(Number), restoredTo: new Date(0) };
        expect(await store.findEpoch()).toMatchObject(damage.field === 'epoch' ? NEVER : everything);
        await changesIn(store, 1);
        expect(await store.raiseEpoch(NOW, NOW, BY)).toMatchObject({
          epoch: expect.any(Number),
          restoredTo: expect.any(Date),
        });
        expect((await store.findEpoch()).epoch).toBeGreaterThanOrEqual(NOW.getTime());
      });
    });

    test('a resend after a restore uses revisions above those of clocks that were ahead', async () => {
      const lead = await created();
      const [now, lowest] = [plus(lead.createdAt, 1000), lead.createdAt.getTime() + DAY_MS];
      await store.resendLeads({ studioId: STUDIO_ID, after: null, limit: 10 }, now, { lowest });
      const [change] = await changesIn(store, 1);
      expect(change).toMatchObject({ revision: lowest, kinds: [{ kind: 'created' }, { kind: 'resent', time: now }] });
      await correctLead(store, lead, { displayName: 'Ada King' });
      expect(await changesIn(store, 1)).toMatchObject([{ revision: lowest + 1 }]);
    });

    test('findMissingLeads names only leads that the studio never had', async () => {
      const [kept, erased, unreadable] = [await created(), await created(), await created()];
      await store.eraseLead({ studioId: STUDIO_ID, leadId: erased.id, memberId: null, now: plus(NOW, 1000) });
      await opened().damage(emptyName(damages), unreadable);
      await store.putStudio(aStudio({ id: 'other' }), BY);
      const other = await created(aLead({ studioId: 'other' }));
      const [lost, last] = [newId(), 'ffffffff-ffff-ffff-ffff-ffffffffffff'];

      const asked = [lost, kept.id, erased.id, other.id, unreadable.id, last];
      expect(await store.findMissingLeads(STUDIO_ID, asked)).toEqual([lost, other.id, last]);
      expect(await store.findMissingLeads('other', asked)).toEqual(asked.filter((id) => id !== other.id));
      expect(await store.findMissingLeads('nowhere', [kept.id])).toEqual([kept.id]);
      expect(await store.findMissingLeads(STUDIO_ID, [])).toEqual([]);
      const late = await created();
      expect(await (await opened().another()).findMissingLeads(STUDIO_ID, [late.id])).toEqual([]);
    });
  });
}
