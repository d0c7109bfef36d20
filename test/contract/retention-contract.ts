import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { isOpen, LEAD_STAGES, type Lead } from '../../src/domain/lead.ts';
import { newIdAt } from '../../src/domain/new-id.ts';
import type { StudioPut } from '../../src/store/port/directory.ts';
import { StoreUnavailable } from '../../src/store/port/faults.ts';
import type { Store } from '../../src/store/store.ts';
import { countExpiredLeads, type RetentionObserver, retainLeads } from '../../src/usecases/retain-leads.ts';
import { putStudio } from '../../src/usecases/studios.ts';
import { aLead, anApiKey, aStudio, BY, DAY_MS, keysFor, NOW, plus, STUDIO_ID, times } from '../support/builders.ts';
import { type Damage, emptyName, type OpenedStore } from './opened-store.ts';
import { changesIn, correctLead, moveLead } from './store-actions.ts';

const FAST = { lookMs: 0, idleMs: 0, leaseMs: 60_000, leadsPerLease: 500, restMs: 0, listMs: 0 };

/** The promises of `RetentionStore`, of the retention of studios, and of the erasures by both. */
export function retentionContract(damages: readonly Damage[], opened: () => OpenedStore, isWhole: boolean): void {
  describe('retention', () => {
    let store: Store;
    beforeEach(async () => {
      store = opened().store;
      await store.putStudio(aStudio(), BY);
    });
    const put = (change: Partial<StudioPut>, now = NOW) =>
      store.putStudio({ id: STUDIO_ID, status: undefined, regionCode: undefined, ...change }, { ...BY, now });
    /** Returns a closed lead that last changed so many days, plus `ms`, before NOW. */
    const closed = (days: number, ms = 0, overrides: Partial<Lead> = {}) => {
      const updatedAt = plus(NOW, -days * DAY_MS - ms);
      const createdAt = plus(updatedAt, -DAY_MS);
      return aLead({ id: newIdAt(createdAt), createdAt, updatedAt, stage: 'lost', ...overrides });
    };
    const readableIds = async (studioId = STUDIO_ID) =>
      (await store.listLeads(studioId, null, 1000)).records.map(({ id }) => id).toSorted();

    /** Creates a lead that was erased `ms` before NOW. */
    async function erasedAgo(studioId: string, ms: number): Promise<Lead> {
      const lead = aLead({ studioId, createdAt: plus(NOW, -ms - DAY_MS) });
      await store.createLead(lead, keysFor(lead));
      const erasure = { studioId, leadId: lead.id, memberId: null, now: plus(NOW, -ms) };
      expect(await store.eraseLead(erasure)).toMatchObject({ kind: 'erased' });
      return lead;
    }

    /** Runs retention by a stopped clock, for some more rounds after `isDone`. Returns the most leads of each outcome. */
    async function retain(
      isDone: () => Promise<boolean>,
      {
        through = store,
        now = NOW,
        failed = (error: unknown): void => {
          throw error;
        },
      } = {},
    ): Promise<Record<string, number>> {
      const [outcomes, ending]: [Record<string, number>, AbortController] = [{}, new AbortController()];
      let roundsLeft = 5;
      onTestFinished(() => ending.abort());
      const observer: RetentionObserver = {
        async time() {
          if (await isDone()) roundsLeft -= 1;
          if (roundsLeft === 0) ending.abort();
        },
        processed(outcome, leads) {
          outcomes[outcome] = Math.max(outcomes[outcome] ?? 0, leads) || 0;
        },
        erased() {},
        failed,
      };
      await retainLeads({ store: through, clock: () => now }, observer, ending.signal, FAST);
      return outcomes;
    }

    test('a studio has its retention until it is removed, and each change begins at its own time', async () => {
      expect(await store.findStudio(STUDIO_ID)).toMatchObject({ retention: null });
      const retention = { days: 365, since: NOW };
      expect(await put({ retentionDays: 365 })).toMatchObject({ studio: { retention } });
      expect(await put({ retentionDays: 365, status: 'suspended' }, plus(NOW, 1))).toMatchObject({
        studio: { retention },
      });
      expect(await put({ status: 'active', regionCode: 'DE' }, plus(NOW, 2))).toMatchObject({ studio: { retention } });
      const key = anApiKey();
      await store.createApiKey(key, NOW);
      expect(await store.findCredential(key.secretSha256)).toMatchObject({ studio: { retention } });
      const later = { days: 30, since: plus(NOW, 3) };
      expect(await put({ retentionDays: 30 }, plus(NOW, 3))).toMatchObject({ studio: { retention: later } });
      store = await opened().reopen();
      expect((await store.listStudios(null, 10)).records).toMatchObject([{ retention: later }]);
      for (const _ of [1, 2]) expect(await put({ retentionDays: null })).toMatchObject({ studio: { retention: null } });
      expect(await store.findStudio(STUDIO_ID)).toMatchObject({ retention: null });
    });

    // @proves erasure-11
    test('one of several concurrent calls moves the retention time, if it saw the current version', async () => {
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

    // @proves erasure-10 limits-1
    test('retention erases closed leads unchanged for its days and one more, and no others', async () => {
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
          ...LEAD_STAGES.filter(isOpen).map((stage) => closed(400, 0, { stage })),
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
      const changes = await changesIn(store);
      expect(changes.find((change) => change.lead.id === lead.id)).toMatchObject({ lead: { erasedAt: NOW } });
    });

    // @proves erasure-17 bounds-160
    test('erased leads of ended studios are deleted after thirty days, and no others', async () => {
      const ended = 'studio-ended';
      await store.putStudio(aStudio({ id: ended }), BY);
      await store.putRetentionTime(null, NOW);
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

    const endedAgo = (id: string, days: number) => store.endStudio(id, { ...BY, now: plus(NOW, -days * DAY_MS) });
    const putAgo = (id: string, days: number) => put({ id, retentionDays: 30 }, plus(NOW, -days * DAY_MS));

    // @proves limits-1 erasure-17
    test('an unreadable lead prevents no other from being deleted after their studio ended', async () => {
      const leads = [await erasedAgo(STUDIO_ID, 400 * DAY_MS), await erasedAgo(STUDIO_ID, 390 * DAY_MS)];
      const [lowest = expect.fail(), other = expect.fail()] = leads.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      const stageDamage = damages.find(({ kind, field }) => kind === 'lead' && field === 'stage') ?? expect.fail();
      await opened().damage(stageDamage, lowest);
      await endedAgo(STUDIO_ID, 40);
      expect(await retain(async () => true)).toEqual({ deleted: 1 });
      expect(await store.presenceOfLead(STUDIO_ID, other.id)).toBeNull();
      expect(await store.presenceOfLead(STUDIO_ID, lowest.id)).not.toBeNull();
    });

    // @proves erasure-10
    test('a lead that changes after it was read is not erased, and blocks none behind it', async () => {
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
      expect(await retain(areGone, { through: rival })).toEqual({ erased: 1, stale: 1, unreadable: 0 });
      expect(await readableIds()).toEqual([moved.id, corrected.id].toSorted());
    });

    if (!isWhole) return;

    // @proves erasure-10 erasure-17
    test.each<[string, () => Promise<unknown>, number | null]>([
      ['a studio ended now', () => endedAgo('ended', 0), null],
      ['a studio ended by a clock a minute ahead', () => endedAgo('ended', -1 / 1440), null],
      ['an ended studio', () => endedAgo('ended', 40), 40],
      ['a studio with a retention', () => putAgo('other', 3), 3],
      ['a retention put now', () => putAgo('other', 0), null],
      ['a studio ended before another got a retention', () => endedAgo('ended', 5).then(() => putAgo('other', 2)), 2],
      ['a studio ended after another got a retention', () => putAgo('other', 5).then(() => endedAgo('ended', 2)), 2],
    ])('retention time starts at the latest end or retention once that is a day old: %s', async (_, happen, days) => {
      for (const id of ['ended', 'other']) await put({ id, status: 'active' }, plus(NOW, -450 * DAY_MS));
      const [first, second] = [await erasedAgo('ended', 400 * DAY_MS), await erasedAgo('ended', 390 * DAY_MS)];
      await happen();
      await retain(async () => true);
      const begun = (await store.findRetentionTime())?.time;
      expect(begun).toEqual(days === null ? undefined : plus(NOW, -days * DAY_MS));
      const isEnded = begun && (await store.findStudio('ended'))?.status === 'ended';
      for (const { id } of [first, second])
        expect(await store.presenceOfLead('ended', id)).toBe(isEnded ? null : 'erased');
    });

    // @proves erasure-10 erasure-11 erasure-17
    test('a clock that is ahead for some hours when retention time starts erases nothing', async () => {
      const [hour, ahead] = [DAY_MS / 24, 365 * DAY_MS];
      for (const id of ['ended', 'ended-ahead', 'put-ahead']) await put({ id, status: 'active' }, plus(NOW, -hour));
      const [lead, erased] = [closed(100), await erasedAgo('ended', hour)];
      await opened().makeLeads(lead);
      await erasedAgo('ended-ahead', -ahead);
      await put({ retentionDays: 30 }, plus(NOW, -hour));
      await endedAgo('ended', hour / DAY_MS);
      await endedAgo('ended-ahead', -ahead / DAY_MS);
      await putAgo('put-ahead', -ahead / DAY_MS);
      await retain(async () => true, { now: plus(NOW, ahead + hour) });
      expect(await store.presenceOfLead(STUDIO_ID, lead.id)).toBe('present');
      expect(await store.presenceOfLead('ended', erased.id)).toBe('erased');
    });

    // @proves erasure-10
    test('a clock that is behind when a retention is put does not shorten its days of grace', async () => {
      const lead = closed(100);
      await opened().makeLeads(lead);
      await store.putRetentionTime(null, NOW);
      const clock = () => plus(NOW, -8 * DAY_MS);
      const command = { id: STUDIO_ID, status: 'unchanged', regionCode: undefined, retentionDays: 30 } as const;
      const { retention } = await putStudio({ store, clock }, command);
      expect(retention).toEqual({ days: 30, since: NOW });
      await retain(async () => true);
      expect(await store.presenceOfLead(STUDIO_ID, lead.id)).toBe('present');
      expect(await store.findStudio(STUDIO_ID)).toMatchObject({ retention });
    });

    // @proves bounds-117
    test('a retention run takes leads of each studio in turn, up to its maximum', async () => {
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      for (const id of [STUDIO_ID, 'studio-2']) await put({ id, retentionDays: 30 }, plus(NOW, -7 * DAY_MS));
      await store.putRetentionTime(null, NOW);
      await opened().makeLeads(
        ...times(50, (index) => closed(40, index, { studioId: index % 2 ? STUDIO_ID : 'studio-2' })),
      );
      const [turn, ending]: [Record<string, number>, AbortController] = [{}, new AbortController()];
      const observer: RetentionObserver = {
        time() {},
        processed() {},
        erased(studioId, leads) {
          turn[studioId] = leads;
          ending.abort();
        },
        failed(error) {
          throw error;
        },
      };
      await retainLeads({ store, clock: () => NOW }, observer, ending.signal, { ...FAST, leadsPerLease: 40 });
      expect(turn).toEqual({ [STUDIO_ID]: 20, 'studio-2': 20 });
    });

    test('retention searches at most 1,000 leads at a time, even if more changed within an hour', async () => {
      await put({ retentionDays: 30 }, plus(NOW, -7 * DAY_MS));
      await store.putRetentionTime(null, NOW);
      await opened().makeLeads(...times(1200, (index) => closed(40, index * 10)));
      const ending = new AbortController();
      const found: number[] = [];
      const through = new Proxy(store, {
        get: (target, method: keyof Store) =>
          method === 'walkLeads'
            ? async (...args: Required<Parameters<Store['walkLeads']>>) => {
                found.push(await store.measureStage(STUDIO_ID, 'lost', args[3], 1200));
                if (found.at(-1)) ending.abort();
                return target.walkLeads(...args);
              }
            : target[method],
      });
      const observer = { time() {}, processed() {}, erased() {}, failed: expect.fail };
      await retainLeads({ store: through, clock: () => NOW }, observer, ending.signal, FAST);
      expect(found.at(-1)).toBeGreaterThan(0);
      expect(found.at(-1)).toBeLessThan(1001);
    });

    /** The calls about one studio. */
    const STUDIO_CALLS = [
      ...['removeRequests', 'walkErasedLeads', 'listAuditEvents', 'findStudio', 'measureStage', 'walkLeads'],
      ...['eraseLead', 'deleteErasedLeads'],
    ] as const;

    /** Returns the store with a function that is called before each of its methods. */
    const withCalls = (at: (method: string, studioId: unknown) => unknown) =>
      new Proxy(store, {
        get:
          (target, method: keyof Store) =>
          async (first: { studioId?: unknown } | undefined, ...rest: unknown[]) => {
            await at(method, first?.studioId ?? first);
            return (target[method] as (...all: unknown[]) => unknown)(first, ...rest);
          },
      });

    /** Creates an ended studio and one with a retention, each with leads to remove. */
    async function twoStudios(name: string): Promise<() => Promise<boolean>> {
      const [ended, active] = [`${name}-ended`, `${name}-active`];
      for (const id of [ended, active]) await store.putStudio(aStudio({ id }), BY);
      await put({ id: active, retentionDays: 30 }, plus(NOW, -7 * DAY_MS));
      const leads = times(3, (index) => closed(40, index, { studioId: active }));
      await opened().makeLeads(...leads);
      const { id } = await erasedAgo(ended, 60 * DAY_MS);
      await store.endStudio(ended, { ...BY, now: plus(NOW, -40 * DAY_MS) });
      return async () => (await store.presenceOfLead(ended, id)) === null && (await readableIds(active)).length === 0;
    }

    // @proves crashes-7
    test.each(['listStudios', 'findRetentionTime', 'putRetentionTime', ...STUDIO_CALLS])(
      'retention stops within a few calls when told to, however many studios there are: at %s',
      async (at) => {
        await twoStudios('studio');
        await store.putRetentionTime(null, NOW);
        await opened().makeStudios(...times(20, (index) => `many-${index}`));
        const [ending, after]: [AbortController, string[]] = [new AbortController(), []];
        const through = withCalls((method) => {
          if (ending.signal.aborted) after.push(method);
          else if (method === at) ending.abort();
        });
        const observer = {
          time() {},
          processed() {},
          erased() {},
          failed: (error: unknown) => expect.fail(`${error}`),
        };
        await retainLeads({ store: through, clock: () => NOW }, observer, ending.signal, FAST);
        expect(after.length, after.join(' ')).toBeLessThan(6);
      },
    );

    // @proves erasure-10 erasure-17
    test.each(STUDIO_CALLS)('a studio for which a call always fails does not stop others: %s', async (failing) => {
      // These studios come first, by id and in each round.
      await twoStudios('bad');
      const isDone = await twoStudios('good');
      await store.putRetentionTime(null, NOW);
      const fault = new StoreUnavailable('of one studio');
      const through = withCalls((method, studioId) => {
        if (method === failing && `${studioId}`.startsWith('bad')) throw fault;
      });
      const failures = new Set<unknown>();
      await retain(isDone, { through, failed: (error) => void failures.add(error) });
      expect([...failures]).toEqual([fault]);
    });

    // @proves erasure-10
    test.each([
      ['once', 1, 2],
      ['each time', Number.POSITIVE_INFINITY, 40],
    ])('retention time waits only once for a studio whose events cannot be read: %s', async (_, count, days) => {
      await erasedAgo(STUDIO_ID, 400 * DAY_MS);
      await put({ id: 'other', status: 'active' });
      await putAgo('other', 40);
      await endedAgo(STUDIO_ID, 2);
      let left = count;
      const through = withCalls((method, studioId) => {
        if (method !== 'listAuditEvents' || studioId !== STUDIO_ID || left === 0) return;
        left -= 1;
        throw new StoreUnavailable('for once');
      });
      await retain(async () => true, { through, failed() {} });
      expect((await store.findRetentionTime())?.time).toEqual(plus(NOW, -days * DAY_MS));
    });
  });
}
