import { beforeEach, describe, expect, test } from 'vitest';
import { type Consumer, DEFAULT_CONSUMER, type NewConsumer } from '../../src/domain/consumer.ts';
import type { Store } from '../../src/store/store.ts';
import { aConsumer, aLead, aStudio, BY, keysFor, plus, STUDIO_ID, times } from '../support/builders.ts';
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

/** More leads than any test creates. */
const ALL = 1000;

const TEST = 'studio-test';

/** The promises about test studios, and about the consumers that get their leads. */
export function testStudioContract(opened: () => OpenedStore): void {
  // @proves studios-1
  describe('a test studio', () => {
    let store: Store;
    beforeEach(async () => {
      store = opened().store;
      await store.putStudio(aStudio(), BY);
    });
    const { created } = actionsOn(() => store);
    const aTest = aStudio({ id: TEST, isTest: true });
    const inTest = () => created(aLead({ studioId: TEST }));

    const consumer = (overrides: Partial<NewConsumer>) => createdConsumer(store, overrides);
    const listChanges = async (of: Consumer, from = store) =>
      (await from.listDeliveries(of.number, ALL))?.changes ?? [];
    const listIds = async (of: Consumer, from = store) =>
      (await listChanges(of, from)).map(({ lead }) => lead.id).toSorted();

    test('no put makes a studio a test studio, or a test studio an ordinary one', async () => {
      expect(await store.putStudio(aTest, BY)).toEqual({ kind: 'put', studio: aTest });
      const unchanged = { id: TEST, status: undefined, regionCode: undefined };
      const suspension = { ...unchanged, status: 'suspended' } as const;
      expect(await store.putStudio(suspension, BY)).toMatchObject({ studio: { isTest: true } });
      for (const isTest of [false, true]) {
        const id = isTest ? STUDIO_ID : TEST;
        const put = { ...unchanged, id, isTest, status: 'active' as const, keepEnquiries: false };
        const before = await store.listAuditEvents(id, null);
        expect(await store.putStudio(put, BY)).toEqual({ kind: 'test-differs' });
        expect(await store.findStudio(id)).toMatchObject({ isTest: !isTest, keepEnquiries: true });
        expect(await store.listAuditEvents(id, null)).toEqual(before);
      }
      const found = (await store.listStudios(null, 10)).records.map(({ id, isTest }) => [id, isTest]);
      expect(found).toEqual([
        [STUDIO_ID, false],
        [TEST, true],
      ]);
      expect(await (await opened().reopen()).findStudio(TEST)).toMatchObject({ isTest: true, status: 'suspended' });
    });

    test('the first of concurrent puts decides whether a studio is a test studio', async () => {
      const another = await opened().another();
      const outcomes = await Promise.all(
        times(12, (index) => (index % 3 ? store : another).putStudio({ ...aTest, isTest: index % 2 === 0 }, BY)),
      );
      const studio = await store.findStudio(TEST);
      for (const [index, outcome] of outcomes.entries())
        expect(outcome).toEqual(
          studio?.isTest === (index % 2 === 0) ? { kind: 'put', studio } : { kind: 'test-differs' },
        );
    });

    test('leads of a test studio reach only consumers that asked for them', async () => {
      const before = await created();
      const another = await opened().another();
      await store.putStudio(aTest, BY);
      const lead = await inTest();
      const beside = await created();
      for (const from of [store, another])
        expect(await listIds(DEFAULT_CONSUMER, from)).toEqual([before.id, beside.id].toSorted());
      const { waiting } = await store.measureDeliveries(DEFAULT_CONSUMER.number, ALL);
      expect(waiting).toEqual({ leads: 2, since: before.createdAt });

      const all = await consumer({});
      const withTests = await consumer({ name: 'with-tests', includesTests: true });
      const named = await consumer({ name: 'named', studioIds: [TEST] });
      const ordinary = await consumer({ name: 'ordinary', studioIds: [STUDIO_ID] });
      await moveLead(store, lead, 'contacted');
      await moveLead(store, beside, 'contacted');
      expect(await listIds(all)).toEqual([beside.id]);
      expect(await listIds(ordinary)).toEqual([beside.id]);
      expect(await listIds(withTests)).toEqual([beside.id, lead.id].toSorted());
      expect(await listIds(named)).toEqual([lead.id]);
      expect(await listIds(DEFAULT_CONSUMER)).toEqual([before.id, beside.id].toSorted());
      expect(await store.measureDeliveries(all.number, ALL)).toMatchObject({ waiting: { leads: 1 } });
      expect(await store.measureDeliveries(named.number, ALL)).toMatchObject({ waiting: { leads: 1 } });

      expect(await acknowledgeIn(store, await changesIn(store))).toMatchObject({ applied: 2 });
      await correctLead(store, lead, { note: 'again' });
      await store.resendLeads({ studioId: TEST, after: null, limit: ALL }, plus(lead.createdAt, 60_000));
      expect(await listIds(DEFAULT_CONSUMER)).toEqual([]);
      expect(await listIds(all)).toEqual([beside.id]);
      expect(await listChanges(named)).toMatchObject([{ lead: { note: 'again' } }]);
    });

    test('a consumer with test studios differs from one without them', async () => {
      await consumer({});
      expect(await store.createConsumer(aConsumer(), BY)).toMatchObject({ kind: 'created' });
      expect(await store.createConsumer(aConsumer({ includesTests: true }), BY)).toEqual({ kind: 'exists' });
    });

    // @proves studios-2
    test('deleting leads of a test studio removes all their data in batches, and nothing else', async () => {
      await store.putStudio(aTest, BY);
      const asked = await consumer({ includesTests: true });
      const kept = await created();
      const leads = await Promise.all(times(4, () => inTest()));
      const [first = expect.fail(), second = expect.fail()] = leads;
      const keys = keysFor(first);
      const contact = { type: 'email', value: `former-${first.id}@example.org` } as const;
      await correctLead(store, first, { contact });
      await moveLead(store, second, 'won');
      expect(await listIds(asked)).toHaveLength(5);

      expect(await store.deleteLeads(TEST, 3, BY)).toBe(3);
      expect((await store.walkLeads(TEST, null, ALL)).records).toHaveLength(1);
      expect(await store.deleteLeads(TEST, 3, BY)).toBe(1);
      expect(await store.deleteLeads(TEST, 3, BY)).toBe(0);
      expect(await store.deleteLeads('studio-none', 3, BY)).toBe(0);

      for (const { id, contact: each } of [...leads, { id: first.id, contact }]) {
        expect(await store.presenceOfLead(TEST, id)).toBeNull();
        expect(await store.listAuditEvents(TEST, id)).toEqual([]);
        const { contactKeys } = keysFor(aLead({ contact: each }));
        for (const former of [undefined, 'former'] as const) {
          const found = await store.findLeadsOfContact(TEST, contactKeys, former);
          expect(found).toEqual({ leads: [], unreadable: [] });
        }
      }
      expect((await store.walkErasedLeads(TEST, null, ALL)).leads).toEqual([]);
      expect(await listIds(asked)).toEqual([kept.id]);
      expect(await store.measureDeliveries(asked.number, ALL)).toMatchObject({ waiting: { leads: 1 } });
      expect(await store.findLead(STUDIO_ID, kept.id)).toEqual(kept);
      const again = aLead({ studioId: TEST, contact: first.contact });
      const { idempotencyKey } = keys;
      expect(await store.createLead(again, keysFor(again, { idempotencyKey }))).toMatchObject({ kind: 'created' });
      expect(await listIds(asked)).toEqual([kept.id, again.id].toSorted());
    });

    // @proves studios-2
    test('deleting leads of a test studio also deletes deliveries that wait or are set aside', async () => {
      await store.putStudio(aTest, BY);
      const asked = await consumer({ includesTests: true });
      const kept = await created();
      const [parked, deferred, waiting] = await Promise.all(times(3, () => inTest()));
      const states = (await listChanges(asked)).map((change) => ({ ...toAcknowledgement(change), reason: 'FAULT' }));
      const aside = (lead: typeof parked, retryAt: Date | null) =>
        states.filter(({ leadId }) => leadId === lead?.id).map((state) => ({ ...state, retryAt }));
      const now = new Date();
      const both = [...aside(parked, null), ...aside(deferred, plus(now, 60_000))];
      expect(await store.setAsideDeliveries(asked.number, both, now)).toMatchObject({ applied: 2 });

      expect(await store.deleteLeads(TEST, ALL, BY)).toBe(3);
      expect(await store.listDeliveriesSetAside(asked.number, null, ALL)).toEqual([]);
      expect(await store.measureDeliveries(asked.number, ALL)).toMatchObject({
        waiting: { leads: 1, since: kept.createdAt },
        setAside: { leads: 0, since: null },
      });
      const late = aside(waiting, null);
      expect(await store.acknowledgeDeliveries(asked.number, late)).toEqual({ applied: 0, superseded: 0, unknown: 1 });
    });

    test('test leads deleted while they are distributed leave no deliveries', async () => {
      const another = await opened().another();
      await store.putStudio(aTest, BY);
      const asked = await consumer({ includesTests: true });
      for (let round = 0; round < 5; round += 1) {
        await Promise.all(times(3, () => inTest()));
        await Promise.all([store.deleteLeads(TEST, ALL, BY), another.listDeliveries(asked.number, ALL)]);
      }
      await store.deleteLeads(TEST, ALL, BY);
      expect(await listIds(asked, another)).toEqual([]);
      expect(await another.measureDeliveries(asked.number, ALL)).toMatchObject({ waiting: { leads: 0, since: null } });
    });
  });
}
