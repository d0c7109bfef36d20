import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { MAX_CONSUMERS } from '../../common/rules/field-rules.ts';
import { OF_DEPLOYMENT } from '../../src/domain/audit.ts';
import { type Consumer, DEFAULT_CONSUMER, type NewConsumer, withBackfill } from '../../src/domain/consumer.ts';
import type { Lead } from '../../src/domain/lead.ts';
import type { LeadChange, LeadSetAside } from '../../src/domain/lead-change.ts';
import { newId } from '../../src/domain/new-id.ts';
import { UnreadableRecord } from '../../src/store/port/faults.ts';
import type { Store } from '../../src/store/store.ts';
import { getConsumer, listDeliveries, measureConsumer, removeConsumer } from '../../src/usecases/consumers.ts';
import { aConsumer, aLead, aStudio, BY, keysFor, NOW, plus, STUDIO_ID, times } from '../support/builders.ts';
import { patiently } from '../support/patience.ts';
import { type Damage, emptyName, type OpenedStore, tryEach } from './opened-store.ts';
import {
  actionsOn,
  changesIn,
  correctLead,
  createdConsumer,
  distributeOnePartACall,
  moveLead,
  toAcknowledgement,
} from './store-actions.ts';

/** More leads than one call distributes. */
const MORE_THAN_A_ROUND = 600;

/** More leads than any other test creates. */
const ALL = 1000;

/** The promises of `LeadChangeStore` and `ConsumerStore`. The default consumer behaves like any other. */
export function consumerContract(damages: readonly Damage[], opened: () => OpenedStore): void {
  // @proves feed-1 feed-8 feed-9
  describe('the change feed, and its named consumers', () => {
    let store: Store;
    beforeEach(async () => {
      store = opened().store;
      await store.putStudio(aStudio(), BY);
    });
    const { created } = actionsOn(() => store);

    const consumer = (overrides: Partial<NewConsumer> = {}) => createdConsumer(store, overrides);

    const eraseIt = ({ id: leadId, updatedAt }: Lead) =>
      store.eraseLead({ studioId: STUDIO_ID, leadId, memberId: null, now: plus(updatedAt, 60_000) });

    const listChanges = async (of: Consumer): Promise<readonly LeadChange[]> =>
      ((await store.listDeliveries(of.number, ALL)) ?? expect.fail('it was removed')).changes;
    const listIds = async (of: Consumer) => (await listChanges(of)).map(({ lead }) => lead.id);
    const settle = (of: Consumer, changes: readonly LeadChange[]) =>
      store.acknowledgeDeliveries(of.number, changes.map(toAcknowledgement));
    const acknowledge = async (...given: Parameters<typeof settle>) => (await settle(...given)).applied;
    const setAside = (
      of: Consumer,
      changes: readonly LeadChange[],
      { retryAt, now }: { retryAt: Date | null; now: Date },
    ) =>
      store.setAsideDeliveries(
        of.number,
        changes.map((change) => ({ ...toAcknowledgement(change), reason: 'HTTP_500', retryAt })),
        now,
      );
    const listAside = (of: Consumer) => store.listDeliveriesSetAside(of.number, null, ALL);
    const countWaiting = async (of: Consumer, bound = ALL) => (await store.measureDeliveries(of.number, bound)).waiting;

    test('every consumer gets each change until it acknowledges it, whatever the others do', async () => {
      const [relay, reporting] = [await consumer(), await consumer({ name: 'reporting' })];
      const lead = await created();
      const change = {
        lead,
        revision: expect.any(Number),
        since: lead.createdAt,
        kinds: [{ kind: 'created', time: lead.createdAt }],
        attempts: 0,
      };

      for (const each of [relay, reporting, DEFAULT_CONSUMER]) expect(await listChanges(each)).toEqual([change]);
      expect(await acknowledge(relay, await listChanges(relay))).toBe(1);
      expect(await listIds(relay)).toEqual([]);
      for (const each of [reporting, DEFAULT_CONSUMER]) expect(await listChanges(each)).toEqual([change]);
      expect(await acknowledge(DEFAULT_CONSUMER, await listChanges(DEFAULT_CONSUMER))).toBe(1);
      // A refused creation and a change without effect do not enter the feed.
      const rival = aLead({ contact: lead.contact });
      expect(await store.createLead(rival, keysFor(rival))).toMatchObject({ kind: 'already-open' });
      expect(await moveLead(store, lead, 'new')).toMatchObject({ kind: 'unchanged' });
      expect(await correctLead(store, lead, { note: lead.note })).toMatchObject({ kind: 'unchanged' });
      expect(await listIds(DEFAULT_CONSUMER)).toEqual([]);
      expect(await listChanges(reporting)).toEqual([change]);

      const now = plus(lead.createdAt, 1000);
      await moveLead(store, lead, 'won', { now });
      const kinds = [{ kind: 'stage-changed', time: now }];
      expect(await listChanges(DEFAULT_CONSUMER)).toMatchObject([{ lead: { stage: 'won' }, since: now, kinds }]);
      expect(await listChanges(relay)).toMatchObject([{ lead: { stage: 'won' }, since: now, kinds }]);
      expect(await listChanges(reporting)).toMatchObject([
        { lead: { stage: 'won' }, since: lead.createdAt, kinds: [{ kind: 'created' }, ...kinds] },
      ]);
    });

    test('changes since the last acknowledgement are combined into one entry with the current state', async () => {
      const lead = await created();
      for (const [index, stage] of (['contacted', 'lost', 'new'] as const).entries())
        await moveLead(store, lead, stage, { now: plus(lead.createdAt, 1000 * (index + 1)) });
      const now = plus(lead.createdAt, 4000);
      await correctLead(store, lead, { displayName: 'Ada King' }, { now });

      expect(await listChanges(DEFAULT_CONSUMER)).toEqual([
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

    test('a revision is at least the time of the change, so it exceeds those a restore lost', async () => {
      const lead = await created();
      const { studioId, id: leadId } = lead;
      await moveLead(store, lead, 'won', { now: plus(lead.createdAt, 1000) });
      const [moving] = await listChanges(DEFAULT_CONSUMER);
      expect(moving?.revision).toBeGreaterThanOrEqual(moving?.lead.updatedAt.getTime() ?? Number.NaN);
      const now = plus(lead.createdAt, 86_400_000);
      for (const [act, revision] of [
        [() => store.resendLeads({ studioId, after: null, limit: 10 }, now), 0],
        [() => store.resendLeads({ studioId, after: null, limit: 10 }, plus(now, -1000)), 1],
        [() => store.eraseLead({ studioId, leadId, memberId: null, now: plus(now, 5000) }), 5000],
      ] as const) {
        await act();
        expect((await listChanges(DEFAULT_CONSUMER))[0]?.revision).toBe(now.getTime() + revision);
      }
    });

    test('a changed lead is never visible without its entry in the feed', async () => {
      const other = await opened().another();
      const lead = await created();
      await acknowledge(DEFAULT_CONSUMER, await listChanges(DEFAULT_CONSUMER));

      const reading = (async () => {
        while ((await other.findLead(lead.studioId, lead.id))?.stage !== 'won') await nextTurn();
        return changesIn(other, 1);
      })();
      await moveLead(store, lead, 'won');

      expect(await reading).toMatchObject([{ lead: { id: lead.id, stage: 'won' } }]);
    });

    test('entries are sorted by their first unacknowledged change and counted up to a bound', async () => {
      expect(await countWaiting(DEFAULT_CONSUMER)).toEqual({ leads: 0, since: null });
      const leads: Lead[] = [];
      for (const seconds of [3, 1, 2]) leads.push(await created(aLead({ createdAt: plus(NOW, 1000 * seconds) })));
      const [third, first, second] = leads as [Lead, Lead, Lead];

      expect(await listIds(DEFAULT_CONSUMER)).toEqual([first.id, second.id, third.id]);
      await moveLead(store, first, 'contacted', { now: plus(NOW, 60_000) });
      expect(await listIds(DEFAULT_CONSUMER)).toEqual([first.id, second.id, third.id]);
      expect((await changesIn(store, 2)).map(({ lead }) => lead.id)).toEqual([first.id, second.id]);
      for (const [bound, counted] of [
        [10, 3],
        [2, 2],
      ] as const)
        expect(await countWaiting(DEFAULT_CONSUMER, bound)).toEqual({ leads: counted, since: plus(NOW, 1000) });

      await acknowledge(DEFAULT_CONSUMER, await changesIn(store, 1));
      await moveLead(store, first, 'lost', { now: plus(NOW, 70_000) });
      expect(await listIds(DEFAULT_CONSUMER)).toEqual([second.id, third.id, first.id]);
    });

    test("a lead enters the feed whatever its writer's clock, even before entries already read", async () => {
      for (const createdAt of [NOW, plus(NOW, 10 * 365 * 86_400_000), new Date(1), plus(NOW, -86_400_000)]) {
        const lead = await created(aLead({ createdAt }));
        expect(await listIds(DEFAULT_CONSUMER)).toEqual([lead.id]);
        await acknowledge(DEFAULT_CONSUMER, await listChanges(DEFAULT_CONSUMER));
      }
    });

    test('acknowledging or setting aside an older state hides no newer one', async () => {
      const relay = await consumer();
      const lead = await created();
      const older = await listChanges(relay);
      await moveLead(store, lead, 'contacted');
      const changes = await listChanges(relay);
      expect(await acknowledge(relay, older)).toBe(0);
      const justBefore = changes.map((change) => ({ ...change, revision: change.revision - 1 }));

      expect(await acknowledge(relay, justBefore)).toBe(0);
      expect(await setAside(relay, justBefore, { retryAt: null, now: NOW })).toMatchObject({ applied: 0 });
      expect(await listChanges(relay)).toEqual(changes);
    });

    test('the default consumer loses no changes when others are created and removed', async () => {
      const before = await created(aLead({ createdAt: NOW }));
      const relay = await consumer();
      const during = await created(aLead({ createdAt: plus(NOW, 1000) }));
      expect(await listIds(DEFAULT_CONSUMER)).toEqual([before.id, during.id]);
      expect(await countWaiting(DEFAULT_CONSUMER)).toEqual({ leads: 2, since: NOW });

      for (const { number } of [relay, DEFAULT_CONSUMER]) await store.removeConsumer(number, BY);
      while (await store.removeOrphans());
      const after = await created(aLead({ createdAt: plus(NOW, 2000) }));
      expect((await listIds(DEFAULT_CONSUMER)).sort()).toEqual([before.id, during.id, after.id].sort());
      expect(await countWaiting(DEFAULT_CONSUMER)).toEqual({ leads: 3, since: NOW });
      expect(await acknowledge(DEFAULT_CONSUMER, await listChanges(DEFAULT_CONSUMER))).toBe(3);
      expect(await listChanges(DEFAULT_CONSUMER)).toEqual([]);
    });

    test('a new consumer does not get changes distributed before its creation', async () => {
      const before = await Promise.all(times(3, () => created()));
      expect(await store.distributeLeadChanges()).toBe(true);
      expect(await listIds(DEFAULT_CONSUMER)).toHaveLength(3);
      const relay = await consumer();
      expect(await listIds(relay)).toEqual([]);
      await moveLead(store, before[0] as Lead, 'won');
      expect(await listIds(relay)).toEqual([before[0]?.id]);
      expect(await listIds(DEFAULT_CONSUMER)).toHaveLength(3);
    });

    test('a consumer of some studios gets only their leads', async () => {
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      const relay = await consumer({ studioIds: ['studio-2'] });
      await created();
      const own = await created(aLead({ studioId: 'studio-2' }));

      expect(await listIds(relay)).toEqual([own.id]);
      expect(await countWaiting(relay)).toEqual({ leads: 1, since: own.createdAt });
      const elsewhere = [{ studioId: STUDIO_ID, leadId: own.id, revision: Number.MAX_SAFE_INTEGER }];
      expect(await store.acknowledgeDeliveries(relay.number, elsewhere)).toMatchObject({ applied: 0 });
      expect(await store.acknowledgeDeliveries(relay.number, [])).toMatchObject({ applied: 0 });
      expect(await listIds(DEFAULT_CONSUMER)).toHaveLength(2);
    });

    test('a change set aside blocks no other, is listed, and is sent again when taken back', async () => {
      const [relay, reporting] = [await consumer(), await consumer({ name: 'reporting' })];
      const [one, other] = [
        await created(aLead({ createdAt: NOW })),
        await created(aLead({ createdAt: plus(NOW, 1) })),
      ];
      const [change, otherChange] = (await listChanges(relay)) as [LeadChange, LeadChange];
      const now = plus(NOW, 60_000);
      const { revision } = change;

      expect(await setAside(relay, [change], { retryAt: null, now })).toEqual({
        applied: 1,
        superseded: 0,
        unknown: 0,
      });
      // Repeating the call has no effect.
      expect(await setAside(relay, [change], { retryAt: null, now })).toMatchObject({ applied: 0, superseded: 0 });
      expect(await listIds(relay)).toEqual([other.id]);
      for (const each of [reporting, DEFAULT_CONSUMER]) expect(await listIds(each)).toEqual([one.id, other.id]);
      const aside = { studioId: STUDIO_ID, leadId: one.id, revision, reason: 'HTTP_500', attempts: 1, retryAt: null };
      expect(await listAside(relay)).toEqual([{ ...aside, due: expect.any(Date) }]);
      expect(await listAside(reporting)).toEqual([]);
      const waiting = { leads: 1, since: other.createdAt };
      expect(await store.measureDeliveries(relay.number, ALL)).toEqual({
        waiting,
        setAside: { leads: 1, since: now },
        isComplete: true,
      });

      // It is not sent again by itself.
      await store.returnDeferredDeliveries(relay.number, plus(NOW, 1e12));
      expect(await listIds(relay)).toEqual([other.id]);
      const named = [change, otherChange].map(toAcknowledgement);
      expect(await store.takeBackDeliveries(reporting.number, named)).toBe(0);
      expect(await store.takeBackDeliveries(relay.number, named)).toBe(1);
      expect(await listChanges(relay)).toEqual([{ ...change, attempts: 1 }, otherChange]);
      expect(await listAside(relay)).toEqual([]);
      await setAside(relay, [change], { retryAt: null, now });
      expect(await listAside(relay)).toMatchObject([{ attempts: 2 }]);
      expect(await acknowledge(relay, [change])).toBe(1);
      expect(await listAside(relay)).toEqual([]);
      expect(await store.takeBackDeliveries(relay.number, named)).toBe(0);
    });

    // @proves bounds-225
    test('changes set aside until a time are sent again then, in batches, whatever the clock does', async () => {
      const relay = await consumer();
      const leads = await Promise.all(times(150, () => created()));
      const changes = await listChanges(relay);
      const retryAt = plus(NOW, 3_600_000);
      expect(await setAside(relay, changes, { retryAt, now: NOW })).toMatchObject({ applied: 150 });
      expect(await listAside(relay)).toMatchObject(changes.map(() => ({ retryAt, attempts: 1 })));
      const measured = await store.measureDeliveries(relay.number, ALL);
      expect(measured).toMatchObject({ waiting: { leads: 150, since: null }, setAside: { leads: 0, since: null } });

      for (const now of [plus(retryAt, -1), NOW, new Date(0)]) await store.returnDeferredDeliveries(relay.number, now);
      expect(await listIds(relay)).toEqual([]);
      await store.returnDeferredDeliveries(relay.number, retryAt);
      expect((await listIds(relay)).length).toBeLessThan(150);
      await store.returnDeferredDeliveries(relay.number, retryAt);
      expect((await listIds(relay)).toSorted()).toEqual(leads.map(({ id }) => id).toSorted());
      expect(await countWaiting(relay)).toMatchObject({ leads: 150, since: expect.any(Date) });
    });

    test('a change set aside until a time can be set aside indefinitely, but not the other way round', async () => {
      const relay = await consumer();
      await created();
      const [change] = (await listChanges(relay)) as [LeadChange];
      const aside = async (retryAt: Date | null) =>
        (await setAside(relay, [change], { retryAt, now: plus(NOW, 1000) })).applied;
      expect(await aside(plus(NOW, 60_000))).toBe(1);
      expect(await aside(plus(NOW, 90_000))).toBe(0);
      expect(await listAside(relay)).toMatchObject([{ retryAt: plus(NOW, 60_000), attempts: 1 }]);
      expect(await aside(null)).toBe(1);
      for (const retryAt of [null, plus(NOW, 60_000)]) expect(await aside(retryAt)).toBe(0);
      expect(await listAside(relay)).toMatchObject([{ retryAt: null, attempts: 2 }]);
      await store.returnDeferredDeliveries(relay.number, plus(NOW, 1e9));
      expect(await listIds(relay)).toEqual([]);
    });

    test.each([['for a time', plus(NOW, 1e9)] as const, ['until it is taken back', null] as const])(
      'setting aside an older state %s hides no newer one, and the next change ends it',
      async (_, retryAt) => {
        const relay = await consumer();
        const lead = await created();
        const older = await listChanges(relay);
        await moveLead(store, lead, 'contacted');
        // With and without a poll in between.
        expect(await setAside(relay, older, { retryAt, now: NOW })).toMatchObject({ applied: 1 });
        const newer = await listChanges(relay);
        expect(newer).toMatchObject([{ lead: { stage: 'contacted' }, since: lead.createdAt, attempts: 0 }]);
        expect(await setAside(relay, older, { retryAt, now: NOW })).toEqual({ applied: 0, superseded: 1, unknown: 0 });
        expect(await listChanges(relay)).toEqual(newer);

        expect(await setAside(relay, newer, { retryAt, now: NOW })).toMatchObject({ applied: 1 });
        await eraseIt(lead);
        const kinds = [{ kind: 'created' }, { kind: 'stage-changed' }, { kind: 'erased' }];
        expect(await listChanges(relay)).toMatchObject([
          { lead: { id: lead.id }, since: lead.createdAt, kinds, attempts: 0 },
        ]);
        expect(await listAside(relay)).toEqual([]);
        expect(await countWaiting(relay)).toEqual({ leads: 1, since: lead.createdAt });
      },
    );

    test('a resend skips changes set aside, and removing a consumer deletes them', async () => {
      const relay = await consumer({ start: 'all-leads' });
      const lead = await created();
      await setAside(relay, await listChanges(relay), { retryAt: null, now: NOW });
      const some = { studioId: STUDIO_ID, after: null, limit: ALL };
      await store.resendLeads(some, plus(lead.createdAt, 1000), { consumer: relay.number });
      expect(await listIds(relay)).toEqual([]);
      expect(await listAside(relay)).toHaveLength(1);
      await store.removeConsumer(relay.number, BY);
      while (await store.removeOrphans());
      expect(await listAside(relay)).toEqual([]);
    });

    test('changes set aside are listed in pages, each once, those with a retry time first', async () => {
      const relay = await consumer();
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      await Promise.all(times(5, (index) => created(aLead(index < 3 ? {} : { studioId: 'studio-2' }))));
      const changes = await listChanges(relay);
      await setAside(relay, changes.slice(0, 3), { retryAt: null, now: NOW });
      await setAside(relay, changes.slice(3), { retryAt: plus(NOW, 1000), now: NOW });
      const found: LeadSetAside[] = [];
      for (let page = await store.listDeliveriesSetAside(relay.number, null, 2); page.length > 0; ) {
        expect(page.length).toBeLessThanOrEqual(2);
        found.push(...page);
        page = await store.listDeliveriesSetAside(relay.number, page.at(-1) ?? expect.fail(), 2);
      }
      expect(found.map(({ retryAt }) => retryAt !== null)).toEqual([true, true, false, false, false]);
      expect(new Set(found.map(({ studioId, leadId }) => `${studioId} ${leadId}`)).size).toBe(5);
    });

    test('an acknowledgement reports how many states were outdated or leads unknown', async () => {
      const relay = await consumer();
      const [lead, same] = [await created(), await created()];
      const seen = await listChanges(relay);
      await moveLead(store, lead, 'contacted');
      await listChanges(relay);
      const unknown = [
        { lead: { ...same, studioId: 'studio-9' }, revision: 1 },
        { lead: { ...same, id: newId() }, revision: 1 },
      ] as LeadChange[];
      expect(await settle(relay, [...seen, ...unknown])).toEqual({ applied: 1, superseded: 1, unknown: 2 });
      const again = seen.filter((each) => each.lead.id === same.id);
      expect(await settle(relay, again)).toEqual({ applied: 0, superseded: 0, unknown: 0 });
    });

    test('the name default means the default consumer, unless release 1.2 stored one by that name', async () => {
      const { name } = DEFAULT_CONSUMER;
      const events = await store.listAuditEvents(OF_DEPLOYMENT, null);
      expect(await store.createConsumer(aConsumer({ name }), BY)).toEqual({ kind: 'exists' });
      expect(await removeConsumer({ store, clock: () => NOW }, { name })).toBe(false);
      expect(await store.listConsumers()).toEqual([]);
      expect(await store.listAuditEvents(OF_DEPLOYMENT, null)).toEqual(events);
      expect(await getConsumer({ store }, name)).toBe(DEFAULT_CONSUMER);
      const stored = { ...(await consumer()), name };
      expect(stored.number).toBe(1);
      const earlier = { ...store, listConsumers: async () => [stored] };
      expect(await getConsumer({ store: earlier }, name)).toBe(stored);
    });

    test('concurrent creations make one consumer per name, and never more than the maximum', async () => {
      const another = await opened().another();
      const own = { studioIds: [STUDIO_ID] };
      const rivals = await Promise.all(
        times(4, (index) => (index % 2 ? another : store).createConsumer(aConsumer(index < 2 ? {} : own), BY)),
      );
      const kinds = rivals.map(({ kind }) => kind);
      expect(kinds.toSorted()).toEqual(['created', 'created', 'exists', 'exists']);
      expect(await store.listConsumers()).toHaveLength(1);

      const names = times(MAX_CONSUMERS + 4, (index) => `consumer-${index}`);
      const outcomes = await Promise.all(
        names.map((name, index) => (index % 2 ? another : store).createConsumer(aConsumer({ name }), BY)),
      );
      expect(outcomes.filter(({ kind }) => kind === 'created')).toHaveLength(MAX_CONSUMERS - 1);
      const numbers = (await another.listConsumers()).map(({ number }) => number);
      expect(new Set(numbers).size).toBe(MAX_CONSUMERS);
    });

    test('a removed consumer leaves nothing, and a new one of that name inherits nothing', async () => {
      const relay = await consumer();
      const before = await created();
      expect(await listIds(relay)).toEqual([before.id]);

      await store.removeConsumer(relay.number, BY);
      expect(await store.listDeliveries(relay.number, ALL)).toBeNull();
      while (await store.removeOrphans());
      expect(await countWaiting(relay)).toEqual({ leads: 0, since: null });
      const again = await consumer({ studioIds: [STUDIO_ID] });
      expect(again.number).not.toBe(relay.number);
      expect(await listIds(again)).toEqual([]);
      const after = await created();
      expect(await listIds(again)).toEqual([after.id]);
      // Repeating the removal does not affect the successor.
      await store.removeConsumer(relay.number, BY);
      expect(await store.removeOrphans()).toBe(false);
      expect(await listIds(again)).toEqual([after.id]);
      await (await opened().reopen()).removeConsumer(again.number, BY);
    });

    test('deliveries of removed consumers are deleted in batches, and no others are', async () => {
      const all: Consumer[] = [];
      for (const name of ['a', 'b', 'c', 'd']) all.push(await consumer({ name }));
      const [first, second, third, last] = all as [Consumer, Consumer, Consumer, Consumer];
      await opened().makeLeads(...times(MORE_THAN_A_ROUND, () => aLead()));
      while (!(await patiently(() => store.distributeLeadChanges())));
      await store.removeConsumer(second.number, BY);
      await store.removeConsumer(last.number, BY);
      // They are deleted in batches of a thousand.
      const another = await opened().another();
      let parts = 0;
      while (await another.removeOrphans()) parts += 1;
      expect(parts).toBeGreaterThanOrEqual(1);
      for (const [each, leads] of [
        [first, MORE_THAN_A_ROUND],
        [second, 0],
        [third, MORE_THAN_A_ROUND],
        [last, 0],
      ] as const)
        expect((await countWaiting(each, 5000)).leads).toBe(leads);
    });

    test('a consumer of all leads starts with a backfill, which no stale update replaces', async () => {
      const relay = await consumer({ start: 'all-leads' });
      expect(relay.backfills).toEqual([{ id: expect.any(String), studioId: '', after: null, andLater: true }]);
      const next = [{ id: newId(), studioId: STUDIO_ID, after: newId(), andLater: false }];
      expect(await store.putBackfills(relay, next)).toBe(true);
      expect(await store.putBackfills(relay, [])).toBe(false);
      const [stored = expect.fail('there is no consumer')] = await store.listConsumers();
      expect(stored.backfills).toEqual(next);
      expect(await store.putBackfills(stored, withBackfill(stored, null))).toBe(true);
    });

    test('leads of a studio are sent again by id, to one consumer or to all', async () => {
      const [relay, reporting] = [await consumer(), await consumer({ name: 'reporting' })];
      const leads = [await created(), await created(), await created()] as const;
      for (const each of [relay, reporting, DEFAULT_CONSUMER]) await acknowledge(each, await listChanges(each));
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      const elsewhere = await created(aLead({ studioId: 'studio-2' }));
      for (const each of [relay, reporting, DEFAULT_CONSUMER]) await acknowledge(each, await listChanges(each));
      const now = plus(NOW, 1e9);
      const some = { studioId: STUDIO_ID, leadIds: [leads[0].id, leads[2].id, elsewhere.id, newId()] };

      expect(await store.resendLeads(some, now, { consumer: relay.number })).toMatchObject({ leads: 2, next: null });
      expect((await listIds(relay)).toSorted()).toEqual([leads[0].id, leads[2].id].toSorted());
      for (const each of [reporting, DEFAULT_CONSUMER]) expect(await listIds(each)).toEqual([]);
      expect(await store.resendLeads(some, now)).toEqual({ leads: 2, skipped: 0, next: null });
      for (const each of [relay, reporting, DEFAULT_CONSUMER]) {
        expect((await listIds(each)).toSorted()).toEqual([leads[0].id, leads[2].id].toSorted());
        const resent = { since: now, kinds: [{ kind: 'resent', time: now }] };
        expect(await listChanges(each)).toMatchObject([resent, resent]);
      }
      for (const some of [{ leadIds: [leads[0].id] }, { after: null, limit: 3 }])
        expect(await store.resendLeads({ studioId: 'studio-9', ...some }, now)).toMatchObject({ leads: 0, next: null });
    });

    // @proves relay-1
    test('leads sent again keep the kinds of changes that were not yet distributed', async () => {
      const relay = await consumer();
      const erased = await created();
      await acknowledge(relay, await listChanges(relay));
      const lead = await created();
      await eraseIt(erased);
      const now = plus(lead.createdAt, 1e9);
      const some = { studioId: STUDIO_ID, leadIds: [lead.id, erased.id] };
      expect(await store.resendLeads(some, now, { consumer: relay.number })).toMatchObject({ leads: 2, next: null });
      const found = await listChanges(relay);
      const listKinds = ({ id }: Lead) =>
        found
          .find((each) => each.lead.id === id)
          ?.kinds.map(({ kind }) => kind)
          .toSorted();
      expect(listKinds(lead)).toEqual(['created', 'resent']);
      expect(listKinds(erased)).toEqual(['erased', 'resent']);
      await acknowledge(relay, found);
      expect(await listChanges(relay)).toEqual([]);
    });

    // @proves feed-7
    test('leads changed within a time range are sent again, even erased ones, to one consumer or all', async () => {
      const [relay, reporting] = [await consumer(), await consumer({ name: 'reporting' })];
      const leads = await Promise.all(times(5, () => created()));
      const ids = leads.map(({ id }) => id).toSorted();
      const at = (seconds: number) => plus((leads[0] as Lead).createdAt, 60_000 + 1000 * seconds);
      const byId = new Map(leads.map((lead) => [lead.id, lead]));
      for (const [index, id] of ids.entries()) {
        const lead = byId.get(id) as Lead;
        if (index === 3) await store.eraseLead({ studioId: STUDIO_ID, leadId: id, memberId: null, now: at(3) });
        else await moveLead(store, lead, 'contacted', { now: at(index) });
      }
      for (const each of [relay, reporting, DEFAULT_CONSUMER]) await acknowledge(each, await listChanges(each));
      const [now, updated] = [at(3600), { start: at(2), end: at(4) }];
      const wanted = ids.slice(2, 4);

      const page = { studioId: STUDIO_ID, limit: 3, updated };
      const [, , third = ''] = ids;
      expect(await store.resendLeads({ ...page, after: null }, now, { consumer: relay.number })).toMatchObject({
        leads: 1,
        next: third,
      });
      expect(await store.resendLeads({ ...page, after: third }, now, { consumer: relay.number })).toMatchObject({
        leads: 1,
        next: null,
      });
      expect((await listIds(relay)).toSorted()).toEqual(wanted);
      for (const each of [reporting, DEFAULT_CONSUMER]) expect(await listIds(each)).toEqual([]);
      expect(await store.resendLeads({ ...page, after: null, limit: 10 }, now)).toMatchObject({ leads: 2, next: null });
      for (const each of [relay, reporting, DEFAULT_CONSUMER]) expect((await listIds(each)).toSorted()).toEqual(wanted);
      const open = { ...page, after: null, limit: 10 };
      for (const [range, count] of [
        [{ start: at(4), end: null }, 1],
        [{ start: null, end: at(1) }, 1],
        [{ start: at(2), end: at(2) }, 0],
        [{ start: null, end: null }, 5],
      ] as const)
        expect(await store.resendLeads({ ...open, updated: range }, now)).toMatchObject({ leads: count, skipped: 0 });
    });

    // @proves feed-1
    test('a change that a poll does not reach behind a backlog still arrives with its kind', async () => {
      const relay = await consumer();
      const first = await created();
      await listChanges(relay);
      const backlog = times(MORE_THAN_A_ROUND, (index) => aLead({ createdAt: plus(first.createdAt, 1 + index) }));
      await opened().makeLeads(...backlog);
      const kind = { kind: 'stage-changed', time: plus(first.createdAt, 1e6) };
      await moveLead(store, first, 'contacted', { now: kind.time });
      const received: LeadChange[] = [];
      const receive = async () => {
        const changes = await patiently(() => listChanges(relay));
        received.push(...changes);
        await acknowledge(relay, changes);
        return changes.length > 0;
      };
      const isOver = distributeOnePartACall();
      await receive();
      isOver();
      while (!(await store.distributeLeadChanges()));
      while (await receive());
      // It comes once, because equal revisions have equal contents.
      const firstChanges = received.filter(({ lead }) => lead.id === first.id);
      expect(firstChanges).toMatchObject([{ kinds: [{ kind: 'created' }, kind] }]);
    });

    // @proves feed-1
    test('a lead sent again has a new revision, which no earlier acknowledgement covers', async () => {
      const [relay, reporting] = [await consumer(), await consumer({ name: 'reporting' })];
      const lead = await created();
      const [before, others] = [await listChanges(relay), await listChanges(reporting)];
      const some = { studioId: STUDIO_ID, leadIds: [lead.id] };
      await store.resendLeads(some, plus(lead.createdAt, 1000), { consumer: relay.number });

      await acknowledge(relay, before);
      const [sent = expect.fail('it was not sent')] = await listChanges(relay);
      expect(sent.revision).toBeGreaterThan(before[0]?.revision ?? Number.NaN);
      expect(sent.kinds.map(({ kind }) => kind)).toEqual(['resent']);
      expect(await settle(relay, before)).toMatchObject({ superseded: 1 });
      await acknowledge(relay, [sent]);
      expect(await listChanges(relay)).toEqual([]);
      // The resend does not concern the other consumer, so its acknowledgement still counts.
      const theirs = await listChanges(reporting);
      expect(theirs.map(({ kinds }) => kinds)).toEqual(others.map(({ kinds }) => kinds));
      await acknowledge(reporting, theirs);
      expect(await listChanges(reporting)).toEqual([]);
    });

    test('a backfill requested while the same leads are being sent starts over', async () => {
      const relay = await consumer({ start: 'all-leads', studioIds: [STUDIO_ID] });
      expect(await store.putBackfills(relay, withBackfill(relay, STUDIO_ID))).toBe(true);
      // The sender's update of its old position is rejected.
      expect(await store.putBackfills(relay, [])).toBe(false);
      expect((await store.listConsumers())[0]?.backfills).toMatchObject([{ studioId: STUDIO_ID, after: null }]);
    });

    test('a feed is not reported as empty while a distribution is under way, however long', async () => {
      const TEST = 'for-tests';
      await store.putStudio(aStudio({ id: TEST, isTest: true }), BY);
      const relay = await consumer({ studioIds: [STUDIO_ID] });
      const before = times(MORE_THAN_A_ROUND, (index) => aLead({ studioId: TEST, createdAt: plus(NOW, index) }));
      await opened().makeLeads(...before);
      const last = await created(aLead({ createdAt: plus(NOW, before.length) }));
      distributeOnePartACall();

      // Every retry on a busy server distributes one more batch.
      const measured = await patiently(() => store.measureDeliveries(relay.number, ALL));
      expect(measured.isComplete).toBe(measured.waiting.leads > 0);
      const part = await patiently(() => store.listDeliveries(relay.number, ALL));
      expect(part?.isComplete).toBe(part?.changes.length === 1);
      const found = await patiently(() => listDeliveries({ store, clock: () => NOW }, relay.number, ALL));
      expect(found?.map(({ lead }) => lead.id)).toEqual([last.id]);
    });

    test('a consumer that is never polled has waited since its backfill was requested', async () => {
      await created();
      await acknowledge(DEFAULT_CONSUMER, await listChanges(DEFAULT_CONSUMER));
      const before = Date.now();
      const copy = await consumer({ start: 'all-leads' });
      const now = await consumer({ name: 'now' });
      const { waiting, isComplete } = await measureConsumer({ store }, copy);
      expect([waiting.leads, isComplete]).toEqual([0, false]);
      expect(waiting.since?.getTime()).toBeGreaterThanOrEqual(before);
      expect(await measureConsumer({ store }, now)).toMatchObject({ waiting: { since: null }, isComplete: true });
    });

    test('walking the studios finds unreadable ones, too', async () => {
      const ids: string[] = [];
      await tryEach(opened(), damages, ['studio'], async (damage, studioId) => {
        ids.push(studioId);
        await opened().damage(damage, { studioId, id: studioId });
      });
      const found: string[] = [];
      for (let id = await store.findStudioAfter(''); id !== null; id = await store.findStudioAfter(id)) found.push(id);
      expect(found).toEqual([...ids, STUDIO_ID].toSorted());
    });

    test('a lead whose feed entry is partly unreadable gets a higher revision with its next change', async () => {
      const relay = await consumer();
      await tryEach(opened(), damages, ['part of a pending change'], async (damage, studioId) => {
        const lead = await created(aLead({ studioId }));
        await moveLead(store, lead, 'contacted', { now: plus(lead.createdAt, 1e9) });
        // On a slow machine a list would distribute only some.
        while (!(await store.distributeLeadChanges()));
        const [before] = (await listChanges(DEFAULT_CONSUMER)).filter((each) => each.lead.id === lead.id);
        await opened().damage(damage, lead);
        while (!(await store.distributeLeadChanges()));
        await moveLead(store, lead, 'won', { now: plus(lead.createdAt, 1000) });
        while (!(await store.distributeLeadChanges()));
        const [after] = (await listChanges(relay)).filter((each) => each.lead.id === lead.id);
        expect(after?.revision).toBeGreaterThan(before?.revision ?? Number.NaN);
        await store.eraseLead({ studioId, leadId: lead.id, memberId: null, now: NOW });
      });
    });

    test('a lead of release 1.0, which stored no change times, has waited since its creation', async () => {
      const [relay, lead] = [await consumer(), await created()];
      await opened().damage(
        damages.find(({ kind }) => kind === 'pending change of 1.0') ?? expect.fail('there is none'),
        lead,
      );
      for (const each of [relay, DEFAULT_CONSUMER])
        expect(await listChanges(each)).toMatchObject([{ lead: { id: lead.id }, since: lead.createdAt }]);
    });

    test('an unreadable consumer blocks no other, misses nothing, and can be removed', async () => {
      await tryEach(opened(), damages, ['consumer'], async (damage, studioId) => {
        const [bad, good] = [await consumer({ name: 'bad' }), await consumer({ studioIds: [studioId] })];
        await opened().damage(damage, { studioId: '', id: 'bad' });
        const lead = await created(aLead({ studioId }));

        for (const each of [good, DEFAULT_CONSUMER]) expect(await listIds(each)).toEqual([lead.id]);
        expect(opened().reported.at(-1)).toMatchObject({ kind: 'consumer', id: 'bad' });
        const [listed] = await store.listConsumers();
        expect(listed).toMatchObject({ number: bad.number, name: 'bad', fault: { name: 'UnreadableRecord' } });
        await expect(getConsumer({ store }, 'bad')).rejects.toThrow(UnreadableRecord);
        await expect(listDeliveries({ store, clock: () => NOW }, bad.number, ALL)).rejects.toThrow(UnreadableRecord);
        for (const start of ['now', 'all-leads'] as const) {
          const same = aConsumer({ name: 'bad', studioIds: null, includesTests: true, start });
          expect(await store.createConsumer(same, BY)).toEqual({ kind: 'exists' });
        }
        // A change to another consumer leaves the stored one as it is.
        expect(await store.putBackfills(good, withBackfill(good, null))).toBe(true);
        expect((await store.listConsumers())[0]).toMatchObject({ fault: { name: 'UnreadableRecord' } });
        expect(await listIds(bad)).toContain(lead.id);

        for (const each of [good, DEFAULT_CONSUMER]) await acknowledge(each, await listChanges(each));
        for (const name of ['bad', good.name])
          expect(await removeConsumer({ store, clock: () => NOW }, { name })).toBe(true);
        expect(await store.listConsumers()).toEqual([]);
      });
    });

    test('an unreadable delivery blocks no other, and the next change repairs it', async () => {
      const [relay, other] = [await consumer(), await consumer({ name: 'other' })];
      await tryEach(opened(), damages, ['delivery'], async (damage, studioId) => {
        const [bad, good] = [await created(aLead({ studioId })), await created(aLead({ studioId }))];
        await listChanges(relay);
        await opened().damage(damage, bad);

        expect(await listIds(relay)).toContain(good.id);
        await moveLead(store, bad, 'contacted');
        for (const each of [relay, other, DEFAULT_CONSUMER]) {
          expect(await listChanges(each)).toContainEqual(
            expect.objectContaining({ lead: expect.objectContaining({ id: bad.id, stage: 'contacted' }) }),
          );
          await acknowledge(each, await listChanges(each));
          expect(await listIds(each)).toEqual([]);
        }
      });
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
      expect(await listIds(DEFAULT_CONSUMER)).toHaveLength(6);
    });

    // @proves limits-1
    test('a lead with an unreadable feed entry blocks no other and is sent when resent or changed', async () => {
      const relay = await consumer();
      await tryEach(opened(), damages, ['pending change'], async (damage, studioId) => {
        const leads = [];
        for (const _ of times(3, () => 0)) leads.push(await created(aLead({ studioId })));
        const [first, bad, last] = leads as [Lead, Lead, Lead];
        await opened().damage(damage, bad);
        while (!(await store.distributeLeadChanges()));
        expect(await listIds(relay)).toEqual(expect.arrayContaining([first.id, last.id]));

        const now = plus(bad.createdAt, 60_000);
        const resent = await store.resendLeads({ studioId, after: null, limit: 10 }, now);
        expect(resent).toEqual({ leads: 3, skipped: 0, next: null });
        const all = [relay, DEFAULT_CONSUMER];
        for (const each of all) {
          expect((await listIds(each)).toSorted()).toEqual([first.id, bad.id, last.id]);
          await acknowledge(each, await listChanges(each));
        }
        await opened().damage(damage, bad);
        // The revision is lost with the entry: a change in the same millisecond would get the acknowledged one.
        const later = plus(now, 1);
        expect(await moveLead(store, bad, 'contacted', { now: later })).toMatchObject({ kind: 'changed' });
        for (const each of all) {
          const changes = await listChanges(each);
          expect(changes).toMatchObject([{ lead: { id: bad.id } }]);
          expect(changes[0]?.kinds).toContainEqual({ kind: 'stage-changed', time: later });
          await acknowledge(each, changes);
          expect(await listIds(each)).toEqual([]);
        }
      });
    });
  });
}
