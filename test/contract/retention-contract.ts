import { beforeEach, describe, expect, test } from 'vitest';
import type { Lead } from '../../src/domain/lead.ts';
import { newIdAt } from '../../src/domain/new-id.ts';
import type { Store, StudioPut } from '../../src/store/store.ts';
import { countExpiredLeads, type RetentionObserver, retainLeads } from '../../src/usecases/retain-leads.ts';
import { aLead, anApiKey, aStudio, BY, claimsOf, DAY_MS, NOW, plus, STUDIO_ID, times } from '../support/builders.ts';
import { type Damage, emptyName, type OpenedStore } from './opened-store.ts';
import { correctLead, moveLead } from './store-actions.ts';

const FAST = { lookMs: 0, idleMs: 0, turnMs: 60_000, leadsPerTurn: 500, restMs: 0, listMs: 0 };

/** The promises of `RetentionStore` and of a studio's retention, and of what erases by them. */
export function retentionContract(damages: readonly Damage[], opened: () => OpenedStore): void {
  describe('retention', () => {
    let store: Store;
    beforeEach(async () => {
      store = opened().store;
      await store.putStudio(aStudio(), BY);
    });
    const put = (change: Partial<StudioPut>, now = NOW) =>
      store.putStudio({ id: STUDIO_ID, status: undefined, regionCode: undefined, ...change }, { ...BY, now });
    /** A closed lead that last changed so many days, and milliseconds, before NOW. */
    const closed = (days: number, ms = 0, overrides: Partial<Lead> = {}) => {
      const updatedAt = plus(NOW, -days * DAY_MS - ms);
      const createdAt = plus(updatedAt, -DAY_MS);
      return aLead({ id: newIdAt(createdAt), createdAt, updatedAt, stage: 'lost', ...overrides });
    };
    const readableIds = async (studioId = STUDIO_ID) =>
      (await store.listLeads(studioId, null, 1000)).records.map(({ id }) => id).toSorted();

    /** Retains leads until NOW, by a clock that stands, until a studio was looked through some times after `isDone`. */
    async function retain(isDone: () => Promise<boolean>, through = store): Promise<Record<string, number>> {
      const [outcomes, ending]: [Record<string, number>, AbortController] = [{}, new AbortController()];
      let turnsLeft = 5;
      const observer: RetentionObserver = {
        async time() {
          if (await isDone()) turnsLeft -= 1;
          if (turnsLeft === 0) ending.abort();
        },
        passed(outcome, leads) {
          outcomes[outcome] = Math.max(outcomes[outcome] ?? 0, leads) || 0;
        },
        erased() {},
        failed(error) {
          throw error;
        },
      };
      await retainLeads({ store: through, clock: () => NOW }, observer, ending.signal, FAST);
      return outcomes;
    }

    test('a studio has one until it is removed, whatever else is put, and each change begins at its time', async () => {
      expect(await store.findStudio(STUDIO_ID)).toMatchObject({ retention: null });
      const retention = { days: 365, since: NOW };
      expect(await put({ retentionDays: 365 })).toMatchObject({ retention });
      expect(await put({ retentionDays: 365, status: 'suspended' }, plus(NOW, 1))).toMatchObject({ retention });
      expect(await put({ status: 'active', regionCode: 'DE' }, plus(NOW, 2))).toMatchObject({ retention });
      const key = anApiKey();
      await store.createApiKey(key, NOW);
      expect(await store.findCredential(key.secretSha256)).toMatchObject({ studio: { retention } });
      const later = { days: 30, since: plus(NOW, 3) };
      expect(await put({ retentionDays: 30 }, plus(NOW, 3))).toMatchObject({ retention: later });
      store = await opened().reopen();
      expect((await store.listStudios(null, 10)).records).toMatchObject([{ retention: later }]);
      for (const _ of [1, 2]) expect(await put({ retentionDays: null })).toMatchObject({ retention: null });
      expect(await store.findStudio(STUDIO_ID)).toMatchObject({ retention: null });
      const events = (await store.listAuditEvents(STUDIO_ID, null)).map(({ action, from, to }) => [action, from, to]);
      expect(events.filter(([action]) => action === 'studio-retention-changed').toReversed()).toEqual([
        ['studio-retention-changed', null, '365'],
        ['studio-retention-changed', '365', '30'],
        ['studio-retention-changed', '30', null],
      ]);
    });

    // @proves erasure-12
    test('its time is moved by one of concurrent calls, and only by who has seen it as it is', async () => {
      const all = [store, await opened().another()];
      const through = (index: number) => all[index % all.length] as Store;
      const atOnce = (version: number | null) =>
        Promise.all(times(8, (index) => through(index).putRetentionTime(version, plus(NOW, index))));
      expect(await store.findRetentionTime()).toBeNull();
      expect(await store.putRetentionTime(1, NOW)).toBe(false);
      for (const version of [null, 1, 2]) {
        const moved = await atOnce(version);
        expect(moved.filter(Boolean)).toEqual([true]);
        const found = { version: (version ?? 0) + 1, time: plus(NOW, moved.indexOf(true)) };
        for (const each of all) expect(await each.findRetentionTime()).toEqual(found);
      }
      expect(await atOnce(2)).not.toContain(true);
      store = await opened().reopen();
      expect(await store.findRetentionTime()).toMatchObject({ version: 3 });
    });

    // @proves erasure-10 erasure-14
    test('closed leads go that have not changed for its days and one more, and no others', async () => {
      for (const id of ['keeps', 'new-here', 'trial'])
        await store.putStudio(aStudio({ id, isTest: id === 'trial' }), BY);
      const since = plus(NOW, -7 * DAY_MS);
      await put({ retentionDays: 30, status: 'suspended' }, since);
      await put({ id: 'trial', retentionDays: 30 }, since);
      await put({ id: 'new-here', retentionDays: 30 }, plus(since, 1));
      await store.putRetentionTime(null, NOW);
      const [gone, kept] = [
        [
          ...times(25, (index) => closed(31, 1 + index)),
          closed(400, 0, { stage: 'won' }),
          closed(31, 1, { studioId: 'trial' }),
        ],
        [
          closed(31),
          closed(1),
          closed(400, 0, { stage: 'new' }),
          closed(400, 0, { studioId: 'keeps' }),
          closed(400, 0, { studioId: 'new-here' }),
        ],
      ] as const;
      const unreadable = closed(500);
      await opened().makeLeads(...gone, ...kept, unreadable);
      await opened().damage(emptyName(damages), unreadable);
      expect(await countExpiredLeads({ store, clock: () => NOW }, { studioId: STUDIO_ID, days: 30 })).toEqual({
        wouldErase: 27,
        isLowerBound: false,
        unchangedSince: plus(NOW, -31 * DAY_MS),
      });

      const isDone = async () =>
        (await Promise.all(gone.map(({ studioId, id }) => store.presenceOfLead(studioId, id)))).every(
          (presence) => presence === 'erased',
        );
      expect(await retain(isDone)).toEqual({ erased: 1, unreadable: 1 });

      expect(await readableIds()).toEqual(
        kept
          .filter(({ studioId }) => studioId === STUDIO_ID)
          .map(({ id }) => id)
          .toSorted(),
      );
      expect(await store.presenceOfLead(STUDIO_ID, unreadable.id)).toBe('present');
      for (const { studioId, id } of kept) expect(await store.presenceOfLead(studioId, id)).toBe('present');
      const [lead = expect.fail()] = gone;
      expect(await store.listAuditEvents(STUDIO_ID, lead.id)).toMatchObject([
        { action: 'lead-erased', memberId: null, caller: '(retention)' },
      ]);
      const changes = await store.listLeadChanges(1000);
      expect(changes.find((change) => change.lead.id === lead.id)).toMatchObject({ lead: { erasedAt: NOW } });
    });

    // @proves erasure-17 bounds-160
    test('what is left of the leads of studios that have ended goes after thirty days, and nothing of others', async () => {
      const ended = 'studio-ended';
      await store.putStudio(aStudio({ id: ended }), BY);
      await store.putRetentionTime(null, NOW);
      const erasedAgo = async (studioId: string, ms: number) => {
        const lead = aLead({ studioId, createdAt: plus(NOW, -100 * DAY_MS) });
        await store.createLead(lead, claimsOf(lead));
        const erasure = { studioId, leadId: lead.id, memberId: null, now: plus(NOW, -ms) };
        expect(await store.eraseLead(erasure)).toMatchObject({ kind: 'erased' });
        return lead;
      };
      const gone = [await erasedAgo(ended, 30 * DAY_MS), await erasedAgo(ended, 60 * DAY_MS)];
      const kept = [await erasedAgo(ended, 30 * DAY_MS - 1), await erasedAgo(STUDIO_ID, 60 * DAY_MS)];
      await store.endStudio(ended, BY);
      const isGone = async () =>
        (await Promise.all(gone.map(({ id }) => store.presenceOfLead(ended, id)))).every((presence) => !presence);

      expect(await retain(isGone)).toEqual({ deleted: 2 });

      for (const { studioId, id } of kept) expect(await store.presenceOfLead(studioId, id)).toBe('erased');
      expect(await store.findStudio(ended)).toMatchObject({ status: 'ended' });
      const [event] = await store.listAuditEvents(ended, null);
      expect(event).toMatchObject({ action: 'studio-status-changed', to: 'ended' });
    });

    // @proves erasure-17
    test('the time begins with the first erasure of a studio that has ended, and no hold is passed over', async () => {
      const lead = aLead({ createdAt: plus(NOW, -100 * DAY_MS) });
      await store.createLead(lead, claimsOf(lead));
      const erasedAt = plus(NOW, -60 * DAY_MS);
      await store.eraseLead({ studioId: STUDIO_ID, leadId: lead.id, memberId: null, now: erasedAt });
      await store.endStudio(STUDIO_ID, BY);
      await retain(async () => (await store.findRetentionTime()) !== null);
      expect((await store.findRetentionTime())?.time?.getTime()).toBeGreaterThanOrEqual(erasedAt.getTime());
      expect((await store.findRetentionTime())?.time?.getTime()).toBeLessThan(plus(erasedAt, DAY_MS).getTime());
      expect(await store.presenceOfLead(STUDIO_ID, lead.id)).toBe('erased');
      await store.putHold({ studioId: STUDIO_ID, leadId: null, reason: 'ANY', ...BY });
      expect(await store.deleteErasedLeads(STUDIO_ID, [lead.id], NOW)).toBe(0);
      await store.putHold({ studioId: STUDIO_ID, leadId: null, reason: null, ...BY });
      expect(await store.deleteErasedLeads(STUDIO_ID, [lead.id], NOW)).toBe(1);
    });

    // @proves bounds-117
    test('a turn takes some leads of each studio, and in all as many as it may', async () => {
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      for (const id of [STUDIO_ID, 'studio-2']) await put({ id, retentionDays: 30 }, plus(NOW, -7 * DAY_MS));
      await store.putRetentionTime(null, NOW);
      await opened().makeLeads(
        ...times(50, (index) => closed(40, index, { studioId: index % 2 ? STUDIO_ID : 'studio-2' })),
      );
      const [turn, ending]: [Record<string, number>, AbortController] = [{}, new AbortController()];
      const observer: RetentionObserver = {
        time() {},
        passed() {},
        erased(studioId, leads) {
          turn[studioId] = leads;
          ending.abort();
        },
        failed(error) {
          throw error;
        },
      };
      await retainLeads({ store, clock: () => NOW }, observer, ending.signal, { ...FAST, leadsPerTurn: 40 });
      expect(turn).toEqual({ [STUDIO_ID]: 20, 'studio-2': 20 });
    });

    // @proves erasure-10
    test('a lead that is moved or corrected since it was read is not erased, and holds up nothing behind it', async () => {
      await put({ retentionDays: 30 }, plus(NOW, -7 * DAY_MS));
      await store.putRetentionTime(null, NOW);
      const leads = times(4, (index) => closed(40 - index));
      await opened().makeLeads(...leads);
      const [moved, corrected, ...others] = leads as [Lead, Lead, ...Lead[]];
      const changed = new Set<string>();
      const rival: Store = {
        ...store,
        async eraseLead(erasure) {
          if (erasure.leadId === moved.id && !changed.has(moved.id)) await moveLead(store, moved, 'contacted');
          if (erasure.leadId === corrected.id && !changed.has(corrected.id))
            await correctLead(store, corrected, { note: 'x' });
          changed.add(erasure.leadId);
          return store.eraseLead(erasure);
        },
      };
      const areGone = async () => (await readableIds()).length <= leads.length - others.length;
      expect(await retain(areGone, rival)).toEqual({ erased: 1, stale: 1, unreadable: 0 });
      expect(await readableIds()).toEqual([moved.id, corrected.id].toSorted());
    });
  });
}
