import { beforeEach, describe, expect, test } from 'vitest';
import type { Lead } from '../../src/domain/lead.ts';
import type { Page } from '../../src/store/port/page.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead, claimsOf, NOW, STUDIO_ID, times } from '../support/builders.ts';
import type { OpenedStore } from './opened-store.ts';
import { actionsOn, leadsIn } from './store-actions.ts';

/** The highest id, ids of several versions, and the lowest. */
const IDS = [
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  'fedcba98-7654-4321-8fed-cba987654321',
  '9a000000-0000-1000-8000-000000000000',
  '0a000000-0000-8000-b000-000000000000',
  '00000000-0000-0000-0000-000000000000',
];

/** The promises of `listLeads` and `walkLeads`. */
export function listLeadsContract(opened: () => OpenedStore): void {
  let store: Store;
  beforeEach(() => {
    store = opened().store;
  });
  const { created, moved, everyLead } = actionsOn(() => store);

  describe('listing leads', () => {
    test('ids of every UUID version sort by value, including the lowest and the highest', async () => {
      for (const id of IDS.toReversed()) await created(aLead({ id, createdAt: NOW }));

      expect((await everyLead()).map(({ id }) => id)).toEqual(IDS);
      expect((await leadsIn(store, STUDIO_ID, IDS[0] as string, 10)).map(({ id }) => id)).toEqual(IDS.slice(1));
      expect(await leadsIn(store, STUDIO_ID, IDS[4] as string, 10)).toEqual([]);
    });

    test('a page has at most the limit, and the pages together have every lead once', async () => {
      const leads = times(10, () => aLead());
      for (const lead of leads) await created(lead);
      const newestFirst = leads.toReversed();

      const first = await leadsIn(store, STUDIO_ID, null, 4);
      const second = await leadsIn(store, STUDIO_ID, first.at(-1)?.id as string, 4);
      const third = await leadsIn(store, STUDIO_ID, second.at(-1)?.id as string, 4);

      expect([first, second, third]).toEqual([newestFirst.slice(0, 4), newestFirst.slice(4, 8), newestFirst.slice(8)]);
      expect((await store.listLeadsToCount(STUDIO_ID, null, 4)).records).toHaveLength(4);
    });

    test("another studio's leads are never seen", async () => {
      const mine = await created(aLead());
      const claims = claimsOf(mine);
      const theirs = await created(aLead({ studioId: 'studio-2' }), claims);
      const latest = await created(aLead());

      expect(await everyLead()).toEqual([latest, mine]);
      expect(await leadsIn(store, STUDIO_ID, theirs.id, 10)).toEqual([mine]);
      expect(await everyLead('studio-2')).toEqual([theirs]);
      expect(await everyLead('studio-3')).toEqual([]);
      expect(await store.findLead(STUDIO_ID, theirs.id)).toBeNull();
      expect(await store.findLead('studio-2', mine.id)).toBeNull();
      expect(await store.findLeadByIdempotencyKey(STUDIO_ID, claims.idempotencyKey)).toBeNull();
    });
  });

  // @proves leads-14
  describe('walking through leads', () => {
    /** Reads all leads of a studio, page by page. */
    async function walked(limit: number, studioId = STUDIO_ID): Promise<Lead[]> {
      const all: Lead[] = [];
      for (let after: string | null = null; ; ) {
        const { records, next }: Page<Lead> = await store.walkLeads(studioId, after, limit);
        expect(records.length).toBeLessThanOrEqual(limit);
        all.push(...records);
        if (next === null) return all;
        after = next;
      }
    }

    test('leads are sorted by id, lowest first, and the pages together have every lead once', async () => {
      const leads = times(10, () => aLead());
      for (const index of [4, 0, 8, 2, 6, 9, 1, 7, 3, 5]) await created(leads[index] as Lead);

      for (const limit of [1, 3, 5, 9, 10, 11]) expect(await walked(limit)).toEqual(leads);
    });

    test('leads created or moved during a walk neither shift nor duplicate others', async () => {
      const leads = times(6, () => aLead());
      for (const lead of leads) await created(lead);

      const page = await store.walkLeads(STUDIO_ID, null, 3);
      const [first, , , , fifth] = leads as [Lead, Lead, Lead, Lead, Lead];
      await moved(first, 'won');
      const won = await moved(fifth, 'won');
      const latest = await created();
      const rest = await store.walkLeads(STUDIO_ID, page.next, 10);

      expect(page.records).toEqual(leads.slice(0, 3));
      expect(rest).toEqual({ records: [leads[3], won, leads[5], latest], next: null, skipped: 0 });
    });
  });
}
