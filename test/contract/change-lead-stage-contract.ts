import { beforeEach, describe, expect, test } from 'vitest';
import { newId } from '../../src/domain/new-id.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead, claimsOf, DAY_MS, plus, times } from '../support/builders.ts';
import type { OpenedStore } from './opened-store.ts';
import { actionsOn, CLOSED_STAGES, moveLead, OPEN_STAGES } from './store-actions.ts';

/** The promises of `changeLeadStage`. */
export function changeLeadStageContract(opened: () => OpenedStore): void {
  let store: Store;
  beforeEach(() => {
    store = opened().store;
  });
  const { created, moved, revisionOf, everyLead } = actionsOn(() => store);

  describe('changing stages', () => {
    test.each([...OPEN_STAGES, ...CLOSED_STAGES])(
      'a lead moves from %s to any other stage: nothing else of it changes, and it has its contact while it is open',
      async (from) => {
        for (const to of [...OPEN_STAGES, ...CLOSED_STAGES].filter((stage) => stage !== from)) {
          const lead = await created(aLead({ sourceId: newId(), note: 'stays' }));
          const before = from === 'new' ? lead : await moved(lead, from);

          const outcome = await moveLead(store, lead, to, { now: plus(before.updatedAt, 5) });

          const expected = { ...lead, stage: to, updatedAt: plus(before.updatedAt, 5) };
          expect(outcome).toEqual({ kind: 'changed', lead: expected, revision: await revisionOf(lead) });
          expect(await store.findLead(lead.studioId, lead.id)).toEqual(expected);
          const rival = aLead({ contact: lead.contact });
          expect(await store.createLead(rival, claimsOf(rival))).toEqual(
            OPEN_STAGES.includes(to) ? { kind: 'already-open', leadId: lead.id } : { kind: 'created', lead: rival },
          );
        }
      },
    );

    test('moving a lead to its own stage writes nothing', async () => {
      for (const stage of [...OPEN_STAGES, ...CLOSED_STAGES]) {
        const lead = await created();
        const before = stage === 'new' ? lead : await moved(lead, stage);

        const outcome = await moveLead(store, lead, stage, { now: plus(before.updatedAt, DAY_MS) });

        expect(outcome).toEqual({ kind: 'unchanged', lead: before, revision: await revisionOf(lead) });
        expect(await store.findLead(lead.studioId, lead.id)).toEqual(before);
      }
    });

    test.each([
      { clock: 'went on', ahead: 1000, grows: 1000 },
      { clock: 'stood still', ahead: 0, grows: 1 },
      { clock: 'went back', ahead: -DAY_MS, grows: 1 },
    ])('updatedAt grows when the clock $clock', async ({ ahead, grows }) => {
      const lead = await created();

      const contacted = await moved(lead, 'contacted', { now: plus(lead.updatedAt, ahead) });

      expect(contacted.updatedAt).toEqual(plus(lead.updatedAt, grows));
      expect((await store.findLead(lead.studioId, lead.id))?.updatedAt).toEqual(contacted.updatedAt);
    });

    test('a move between closed stages does not take the contact from another lead', async () => {
      const first = await created();
      await moved(first, 'won');
      const second = await created(aLead({ contact: first.contact }));

      await moved(first, 'lost');

      const third = aLead({ contact: first.contact });
      expect(await store.createLead(third, claimsOf(third))).toEqual({ kind: 'already-open', leadId: second.id });
    });

    // @proves mongodb-18
    test.each(OPEN_STAGES)('reopening to %s into a taken contact is refused, and nothing is written', async (stage) => {
      const first = await created();
      const closed = await moved(first, 'lost');
      const second = await created(aLead({ contact: first.contact }));

      const outcome = await moveLead(store, first, stage, { now: plus(closed.updatedAt, DAY_MS) });

      expect(outcome).toEqual({ kind: 'already-open', leadId: second.id });
      expect(await everyLead()).toEqual([second, closed]);
      // The second lead still has the contact: closing it frees the contact for the first.
      await moved(second, 'won');
      await moved(first, stage);
    });

    // @proves leads-33
    test('a move of a lead that has changed since the expected time is stale and writes nothing', async () => {
      const lead = await created();
      const now = await moved(lead, 'contacted', { expectedUpdatedAt: lead.updatedAt });

      for (const stage of ['won', 'contacted', 'new'] as const) {
        expect(await moveLead(store, lead, stage, { expectedUpdatedAt: lead.updatedAt })).toEqual({ kind: 'stale' });
      }

      expect(await store.findLead(lead.studioId, lead.id)).toEqual(now);
      expect(await store.listAuditEvents(lead.studioId, lead.id)).toHaveLength(1);
      await moved(now, 'won', { expectedUpdatedAt: now.updatedAt });
    });

    // @proves leads-33
    test('of 20 moves through two stores that expect the same time, one is made', async () => {
      const lead = await created();
      const stores = [store, await opened().another()];

      const outcomes = await Promise.all(
        times(20, (index) =>
          moveLead(stores[index % 2] as Store, lead, index < 10 ? 'won' : 'lost', {
            expectedUpdatedAt: lead.updatedAt,
          }),
        ),
      );

      expect(outcomes.filter(({ kind }) => kind === 'stale')).toHaveLength(19);
      expect(outcomes).toContainEqual({
        kind: 'changed',
        lead: await store.findLead(lead.studioId, lead.id),
        revision: await revisionOf(lead),
      });
    });

    test("an unknown lead and another studio's lead are not found, and nothing is written", async () => {
      const lead = await created();

      expect(await moveLead(store, { ...lead, id: newId() }, 'won')).toEqual({ kind: 'not-found' });
      expect(await moveLead(store, { ...lead, studioId: 'studio-2' }, 'won')).toEqual({ kind: 'not-found' });
      expect(await store.findLead(lead.studioId, lead.id)).toEqual(lead);
    });
  });
}
