import { randomUUID } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { MAX_APPLIED_REQUESTS } from '../../src/domain/audit.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead, aMember, aStudio, BY, claimsOf, STUDIO_ID, times } from '../support/builders.ts';
import type { OpenedStore } from './opened-store.ts';
import { EVERY_RIVALRY } from './rival-changes.ts';
import { correctLead, describeThroughStores, moveLead } from './store-actions.ts';

/** The promises about changes that their callers repeat. */
export function repeatedChangesContract(opened: () => OpenedStore): void {
  // @proves crashes-20
  describeThroughStores('a change that its caller repeats, ', opened, (through) => {
    let first: Store;
    let second: Store;
    beforeEach(async () => {
      [first, second] = [through(0), through(1)];
      await first.putStudio(aStudio(), BY);
    });

    test.each(EVERY_RIVALRY.filter(({ isRepeatable }) => isRepeatable))(
      'takes effect once: $method, $title',
      async ({ arrange, change, rival, state }) => {
        const requestId = randomUUID();
        await arrange?.(first);
        await change(first, requestId);
        await rival(second);
        const [after, events] = [await state(second), await second.listAuditEvents(STUDIO_ID, null)];

        await change(second, requestId);
        await change(first, requestId);

        expect(await state(first)).toEqual(after);
        expect(await first.listAuditEvents(STUDIO_ID, null)).toEqual(events);
        await change(first, randomUUID());
        expect(await state(second)).not.toEqual(after);
      },
    );

    test('returns the present state', async () => {
      const [lead, requestId] = [aLead(), randomUUID()];
      await first.createLead(lead, claimsOf(lead));
      await moveLead(first, lead, 'contacted', { requestId });
      const won = await moveLead(second, lead, 'won');
      expect(await moveLead(second, lead, 'contacted', { requestId })).toEqual(won);

      await first.putStudio(aStudio({ quotaLimit: 5 }), { ...BY, requestId: randomUUID() });
      const put = () => first.putStudio(aStudio({ status: 'suspended' }), { ...BY, requestId });
      await put();
      const active = await second.putStudio(aStudio({ quotaLimit: 7 }), BY);
      expect(await put()).toEqual(active);
    });

    test('that was rejected takes effect when it is possible', async () => {
      const [lead, requestId] = [aLead(), randomUUID()];
      await first.createLead(lead, claimsOf(lead));
      const correct = (store: Store) =>
        correctLead(store, lead, { note: 'one' }, { requestId, expectedUpdatedAt: lead.updatedAt });
      await moveLead(second, lead, 'won');
      expect(await correct(first)).toEqual({ kind: 'stale' });
      expect(await first.isLeadChangeApplied(STUDIO_ID, lead.id, requestId)).toBe(false);
      const change = { requestId, expectedUpdatedAt: null };
      expect(await correctLead(second, lead, { note: 'one' }, change)).toMatchObject({ kind: 'updated' });
      expect(await first.isLeadChangeApplied(STUDIO_ID, lead.id, requestId)).toBe(true);
    });

    test('concurrently takes effect once', async () => {
      const requestId = randomUUID();
      await Promise.all(
        times(20, (index) => through(index).putStudio(aStudio({ status: 'suspended' }), { ...BY, requestId })),
      );
      const events = await first.listAuditEvents(STUDIO_ID, null);
      expect(events.filter(({ to }) => to === 'suspended')).toHaveLength(1);
    });

    test('is recognised after as many other changes of its record as the bound allows', async () => {
      const requestId = randomUUID();
      await first.putMember(aMember(), { ...BY, requestId });
      for (let left = MAX_APPLIED_REQUESTS - 1; left > 0; left -= 20) {
        const others = times(Math.min(left, 20), (index) => through(index).putMember(aMember({ role: 'staff' }), BY));
        await Promise.all(others);
      }

      await second.putMember(aMember(), { ...BY, requestId });

      expect(await first.findMember(STUDIO_ID, 'member-1')).toEqual(aMember({ role: 'staff' }));
    });
  });
}
