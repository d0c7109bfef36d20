import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { DEFAULT_CONSUMER } from '../../src/domain/consumer.ts';
import type { Lead, LeadStage } from '../../src/domain/lead.ts';
import type { LeadChange } from '../../src/domain/lead-change.ts';
import { newId } from '../../src/domain/new-id.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead, aStudio, BY, claimsOf, NOW, plus, STUDIO_ID, times } from '../support/builders.ts';
import { type Damage, emptyName, type OpenedStore, tryEach } from './opened-store.ts';
import { acknowledgeIn, actionsOn, changesIn, correctLead, moveLead } from './store-actions.ts';

/** The promises of `LeadChangeStore`, and of `ConsumerStore` to one consumer. */
export function leadChangeContract(damages: readonly Damage[], opened: () => OpenedStore): void {
  // @proves feed-1
  describe('the change feed', () => {
    let store: Store;
    beforeEach(async () => {
      store = opened().store;
      await store.putStudio(aStudio(), BY);
    });
    const { created } = actionsOn(() => store);

    const move = (lead: Lead, stage: LeadStage, now = plus(lead.updatedAt, 1000), to: Store = store) =>
      moveLead(to, lead, stage, { now });

    const changes = () => changesIn(store);
    const changedIds = async () => (await changes()).map(({ lead }) => lead.id);
    const changeOf = async (lead: Lead) => (await changes()).find((change) => change.lead.id === lead.id);
    const acknowledge = async (...changes: readonly (LeadChange | undefined)[]) =>
      (
        await acknowledgeIn(
          store,
          changes.map((change) => change ?? expect.fail('it does not exist')),
        )
      ).settled;
    const measured = async (bound: number) => (await store.measureDeliveries(DEFAULT_CONSUMER.number, bound)).waiting;
    const acknowledgeAll = async () => acknowledge(...(await changes()));

    test('a new lead is in the feed, complete, until it is acknowledged', async () => {
      const lead = await created(aLead({ note: 'Calls back.', sourceId: newId() }));

      const [change] = await changes();
      expect(change).toEqual({
        lead,
        revision: expect.any(Number),
        since: lead.createdAt,
        kinds: [{ kind: 'created', time: lead.createdAt }],
        attempts: 0,
      });
      expect(await acknowledge(change)).toBe(1);

      expect(await acknowledge(change)).toBe(0);
      // Neither a refused creation nor a change to what is there already is one.
      const rival = aLead({ contact: lead.contact });
      expect(await store.createLead(rival, claimsOf(rival))).toMatchObject({ kind: 'already-open' });
      expect(await move(lead, 'new')).toMatchObject({ kind: 'unchanged' });
      expect(await correctLead(store, lead, { note: lead.note })).toMatchObject({ kind: 'unchanged' });
      expect(await changes()).toEqual([]);
    });

    test('all changes since the last acknowledgement are one entry with the current state', async () => {
      const lead = await created();
      for (const [seconds, stage] of [
        [1, 'contacted'],
        [2, 'lost'],
        [3, 'new'],
      ] as const) {
        await move(lead, stage, plus(lead.createdAt, 1000 * seconds));
      }
      const now = plus(lead.createdAt, 4000);
      await correctLead(store, lead, { displayName: 'Ada King' }, { now });

      expect(await changes()).toEqual([
        {
          lead: { ...lead, displayName: 'Ada King', updatedAt: now },
          revision: expect.any(Number),
          since: lead.createdAt,
          kinds: [
            { kind: 'created', time: lead.createdAt },
            { kind: 'stage-changed', time: plus(lead.createdAt, 3000) },
            { kind: 'updated', time: now },
          ],
          attempts: 0,
        },
      ]);
    });

    test('a revision is at least the time of the change, and so higher than those lost by a restore', async () => {
      const lead = await created();
      const { studioId, id: leadId } = lead;
      await move(lead, 'won');
      const [moving] = await changes();
      expect(moving?.revision).toBeGreaterThanOrEqual(moving?.lead.updatedAt.getTime() ?? Number.NaN);
      const now = plus(lead.createdAt, 86_400_000);
      await store.resendLeads({ studioId, after: null, limit: 10 }, now);
      expect((await changes())[0]?.revision).toBe(now.getTime());
      await store.resendLeads({ studioId, after: null, limit: 10 }, plus(now, -1000));
      expect((await changes())[0]?.revision).toBe(now.getTime() + 1);
      await store.eraseLead({ studioId, leadId, memberId: null, now: plus(now, 5000) });
      expect((await changes())[0]?.revision).toBe(now.getTime() + 5000);
    });

    test('acknowledging an older state does not hide a newer one', async () => {
      const lead = await created();
      const [older] = await changes();
      await move(lead, 'contacted');
      const [newer] = await changes();

      expect(await acknowledge(older)).toBe(0);
      expect(await changes()).toEqual([newer]);
      expect(await acknowledge(newer)).toBe(1);
      expect(await acknowledge(older)).toBe(0);
      expect(await changes()).toEqual([]);
    });

    test('a changed lead is never visible without its entry in the feed', async () => {
      const other = await opened().another();
      const lead = await created();
      await acknowledgeAll();

      const reading = (async () => {
        while ((await other.findLead(lead.studioId, lead.id))?.stage !== 'won') await nextTurn();
        return changesIn(other, 1);
      })();
      await move(lead, 'won');

      expect(await reading).toMatchObject([{ lead: { id: lead.id, stage: 'won' } }]);
    });

    test('entries are sorted by their first unacknowledged change, up to the limit', async () => {
      const leads: Lead[] = [];
      for (const seconds of [3, 1, 2]) leads.push(await created(aLead({ createdAt: plus(NOW, 1000 * seconds) })));
      const [third, first, second] = leads as [Lead, Lead, Lead];

      expect(await changedIds()).toEqual([first.id, second.id, third.id]);
      await move(first, 'contacted', plus(NOW, 60_000));
      expect(await changedIds()).toEqual([first.id, second.id, third.id]);
      expect((await changesIn(store, 2)).map(({ lead }) => lead.id)).toEqual([first.id, second.id]);

      await acknowledge(await changeOf(first));
      await move(first, 'lost', plus(NOW, 70_000));
      expect(await changedIds()).toEqual([second.id, third.id, first.id]);
    });

    test('a lead is in the feed whatever the clock of its writer, even before entries already read', async () => {
      await created(aLead({ createdAt: NOW }));
      await acknowledgeAll();
      for (const createdAt of [plus(NOW, 10 * 365 * 86_400_000), new Date(1), plus(NOW, -86_400_000)]) {
        const lead = await created(aLead({ createdAt }));
        expect(await changedIds()).toEqual([lead.id]);
        await acknowledgeAll();
      }
    });

    test('the feed has the leads of all studios, and an acknowledgement names the studio', async () => {
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      const [one, other] = [await created(), await created(aLead({ studioId: 'studio-2' }))];
      const [change] = await changes();

      expect(new Set(await changedIds())).toEqual(new Set([one.id, other.id]));
      const elsewhere = [
        { studioId: 'studio-2', leadId: one.id, revision: change?.revision ?? 0 },
        { studioId: 'studio-3', leadId: one.id, revision: change?.revision ?? 0 },
        { studioId: STUDIO_ID, leadId: newId(), revision: change?.revision ?? 0 },
      ];
      expect(await store.acknowledgeDeliveries(DEFAULT_CONSUMER.number, elsewhere)).toEqual({
        settled: 0,
        superseded: 0,
        unknown: 3,
      });
      expect(await acknowledgeIn(store, [])).toEqual({ settled: 0, superseded: 0, unknown: 0 });
      expect((await changes()).length).toBe(2);
    });

    test('all leads of a studio can be resent, in parts, and earlier acknowledgements do not count', async () => {
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      const elsewhere = await created(aLead({ studioId: 'studio-2' }));
      const leads = await Promise.all(times(5, () => created()));
      const before = await changes();
      await acknowledge(...before);
      const pending = await created();
      const now = plus(pending.createdAt, 60_000);

      let after: string | null = null;
      const parts: number[] = [];
      do {
        const part = await store.resendLeads({ studioId: STUDIO_ID, after, limit: 4 }, now);
        parts.push(part.leads);
        after = part.next;
      } while (after !== null);

      expect(parts).toEqual([4, 2]);
      expect(await acknowledge(...before)).toBe(0);
      const again = await changes();
      expect(again.map(({ lead }) => lead.id).sort()).toEqual([...leads, pending].map(({ id }) => id).sort());
      expect(again.find(({ lead }) => lead.id === leads[0]?.id)).toMatchObject({
        lead: leads[0],
        since: now,
        kinds: [{ kind: 'resent', time: now }],
      });
      expect(await changeOf(pending)).toMatchObject({
        since: pending.createdAt,
        kinds: [{ kind: 'created' }, { kind: 'resent' }],
      });
      expect(await changeOf(elsewhere)).toBeUndefined();
      expect(await store.resendLeads({ studioId: 'studio-3', after: null, limit: 4 }, now)).toEqual({
        leads: 0,
        skipped: 0,
        next: null,
      });
    });

    test('the number of entries is counted up to a bound, with the time of the first', async () => {
      expect(await measured(10)).toEqual({ leads: 0, since: null });
      for (const seconds of [2, 1, 3]) await created(aLead({ createdAt: plus(NOW, 1000 * seconds) }));

      expect(await measured(10)).toEqual({ leads: 3, since: plus(NOW, 1000) });
      expect(await measured(2)).toEqual({ leads: 2, since: plus(NOW, 1000) });
      await acknowledgeAll();
      expect(await measured(10)).toEqual({ leads: 0, since: null });
    });

    test('an unreadable lead stays in the feed, is reported, and does not block others', async () => {
      const broken = await Promise.all(times(5, (index) => created(aLead({ createdAt: plus(NOW, index) }))));
      const whole = await created(aLead({ createdAt: plus(NOW, 1000) }));
      const unnamed = emptyName(damages);
      await opened().damage(unnamed, ...broken);

      expect((await changesIn(store, 2)).map(({ lead }) => lead.id)).toEqual([whole.id]);
      expect(new Set(opened().reported.map(({ id }) => id))).toEqual(new Set(broken.map(({ id }) => id)));

      const value = unnamed.value === '' ? 'Ada' : '"Ada"';
      await opened().damage({ ...unnamed, value }, ...broken);
      expect((await changes()).length).toBe(6);
    });

    // @proves limits-3
    test('a lead with an unreadable mark can be resent with all others, and change', () =>
      tryEach(opened(), damages, ['mark'], async (damage, studioId) => {
        const [first, bad, last] = [
          await created(aLead({ studioId })),
          await created(aLead({ studioId })),
          await created(aLead({ studioId })),
        ];
        await acknowledgeAll();
        await opened().damage(damage, bad);

        const now = plus(bad.createdAt, 60_000);
        expect(await store.resendLeads({ studioId, after: null, limit: 10 }, now)).toEqual({
          leads: 3,
          skipped: 0,
          next: null,
        });

        expect((await changedIds()).sort()).toEqual([first.id, bad.id, last.id]);
        await acknowledgeAll();
        expect(await changes()).toEqual([]);
        await opened().damage(damage, bad);
        // The revision is lost with the mark, and a change in the same millisecond would get the one that was acknowledged.
        const later = plus(now, 1);
        expect(await move(bad, 'contacted', later)).toMatchObject({ kind: 'changed' });
        expect((await changeOf(bad))?.kinds).toContainEqual({ kind: 'stage-changed', time: later });
        await acknowledgeAll();
      }));
  });
}
