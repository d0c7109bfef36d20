import { beforeEach, describe, expect, test } from 'vitest';
import { LEAD_STAGES, type Lead } from '../../src/domain/lead.ts';
import { isByUpdate, type LeadFilter, type TimeRange } from '../../src/domain/lead-filter.ts';
import { newId, newIdAt } from '../../src/domain/new-id.ts';
import type { Store } from '../../src/store/store.ts';
import { countLeads } from '../../src/usecases/count-leads.ts';
import { aLead, aStudio, BY, DAY_MS, NOW, plus, STUDIO_ID, times } from '../support/builders.ts';
import { patiently } from '../support/patience.ts';
import type { OpenedStore } from './opened-store.ts';
import { correctLead, created, moveLead } from './store-actions.ts';

const ANY: TimeRange = { start: null, end: null };
const NONE: LeadFilter = { stages: [], sourceIds: [], created: ANY, updated: ANY };
const SOURCES = [newId(), newId(), newId()];
const KEYS = [newId(), newId()];
const SPAN_MS = 10 * DAY_MS;

/** Numbers that repeat themselves, so that a failure does. */
function randomFrom(seed: number) {
  let state = seed;
  const below = (bound: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
  const oneOf = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item;
  return { below, oneOf };
}
type Random = ReturnType<typeof randomFrom>;

function randomLead({ below, oneOf }: Random, studioId: string): Lead {
  // Some hours have most leads, and several leads one time.
  const createdAt = plus(NOW, -below(3) * below(SPAN_MS / 1000) * 500);
  const id = newIdAt(createdAt);
  const updatedAt = plus(createdAt, below(2) * below(SPAN_MS / 1000) * 100);
  const sourceId = oneOf([null, ...SOURCES]);
  const apiKeyId = oneOf([undefined, ...KEYS]);
  const lead = aLead({ studioId, id, createdAt, updatedAt, sourceId, stage: oneOf(LEAD_STAGES) });
  return apiKeyId ? { ...lead, apiKeyId } : lead;
}

function randomFilter({ below, oneOf }: Random): LeadFilter {
  const range = (): TimeRange => {
    const [from, to] = [below(SPAN_MS), below(SPAN_MS)].sort((a, b) => b - a) as [number, number];
    return oneOf([ANY, ANY, { start: plus(NOW, -from), end: plus(NOW, -to) }, { start: plus(NOW, -from), end: null }]);
  };
  const some = <Item>(items: readonly Item[]): Item[] => items.filter(() => below(3) === 0);
  const filter = {
    stages: below(2) === 0 ? [] : some(LEAD_STAGES),
    sourceIds: below(2) === 0 ? [] : some(SOURCES),
    created: range(),
    updated: range(),
  };
  return below(4) === 0 ? { ...filter, apiKeyIds: [oneOf(KEYS)] } : filter;
}

/** The rule of a filter, in other words than the product's. */
function fits({ stages, sourceIds, created, updated, apiKeyIds = [] }: LeadFilter, lead: Lead): boolean {
  const isWithin = (time: Date, { start, end }: TimeRange) =>
    time.getTime() >= (start?.getTime() ?? Number.NEGATIVE_INFINITY) &&
    time.getTime() < (end?.getTime() ?? Number.POSITIVE_INFINITY);
  if (stages.length > 0 && !stages.some((stage) => stage === lead.stage)) return false;
  if (sourceIds.length > 0 && !sourceIds.some((id) => id === lead.sourceId)) return false;
  if (apiKeyIds.length > 0 && !apiKeyIds.some((id) => id === lead.apiKeyId)) return false;
  return isWithin(lead.createdAt, created) && isWithin(lead.updatedAt, updated);
}

type Listing = 'listLeads' | 'walkLeads';
const FIRST = { listLeads: 'newest', walkLeads: 'oldest' } as const;

/** Reads all pages; `between` runs before each but the first one. */
async function all(
  store: Store,
  method: Listing,
  filter: LeadFilter,
  {
    limit = 3,
    studioId = STUDIO_ID,
    between = async () => {},
  }: { limit?: number; studioId?: string; between?: () => Promise<unknown> } = {},
): Promise<Lead[]> {
  const found: Lead[] = [];
  for (let position: string | null = null; ; ) {
    const page: Awaited<ReturnType<Store['listLeads']>> = await store[method](studioId, position, limit, filter);
    expect(page.records.length).toBeLessThanOrEqual(limit);
    found.push(...page.records);
    if (page.next === null) return found;
    expect(page.next).not.toBe(position);
    position = page.next;
    await between();
  }
}

/** The order of a list. */
function inOrder(leads: readonly Lead[], method: Listing, filter: LeadFilter): Lead[] {
  const keyOf = ({ id, updatedAt }: Lead) =>
    isByUpdate(filter, FIRST[method]) ? `${updatedAt.getTime().toString().padStart(16, '0')} ${id}` : id;
  const sorted = leads.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  return method === 'listLeads' ? sorted.toReversed() : sorted;
}

/** The promises of `listLeads` and `walkLeads` with a filter. */
export function filterContract(opened: () => OpenedStore, isWhole: boolean): void {
  let store: Store;
  beforeEach(() => {
    store = opened().store;
  });

  // @proves leads-34
  describe('listing leads by a filter', () => {
    test('lists what a filter over everything finds, once and in order, at random ranges', async () => {
      const random = randomFrom(7);
      const leads = times(120, (index) => randomLead(random, index % 4 === 0 ? 'studio-2' : STUDIO_ID));
      await opened().makeLeads(...leads);
      const erased = leads.filter((_, index) => index % 10 === 1);
      for (const { studioId, id: leadId } of erased)
        await store.eraseLead({ studioId, leadId, memberId: null, now: NOW });

      let sizes = 0;
      for (let run = 0; run < 10; run += 1) {
        const filter = randomFilter(random);
        const studioId = random.oneOf([STUDIO_ID, 'studio-2', 'studio-3']);
        const left = leads.filter((lead) => lead.studioId === studioId && !erased.includes(lead));
        const expected = left.filter((lead) => fits(filter, lead));
        sizes += expected.length;
        for (const method of ['listLeads', 'walkLeads'] as const) {
          const found = await all(store, method, filter, { limit: 1 + random.below(9), studioId });
          expect({ filter, method, found }).toEqual({ filter, method, found: inOrder(expected, method, filter) });
        }
      }
      expect(sizes).toBeGreaterThan(50);
    });

    // @proves leads-35
    test('counts what a filter over everything finds, at random ranges', async () => {
      const random = randomFrom(5);
      const leads = times(100, (index) => randomLead(random, index % 4 === 0 ? 'studio-2' : STUDIO_ID));
      await opened().makeLeads(...leads);
      await store.putStudio(aStudio(), BY);
      const [erased, ...left] = leads.filter(({ studioId }) => studioId === STUDIO_ID) as [Lead, ...Lead[]];
      await store.eraseLead({ studioId: STUDIO_ID, leadId: erased.id, memberId: null, now: NOW });

      for (let run = 0; run < 8; run += 1) {
        const filter = randomFilter(random);
        const expected = left.filter((lead) => fits(filter, lead));
        const { byStage, bySource, completeSince } = await countLeads({ store }, { studioId: STUDIO_ID, filter });
        const asked = LEAD_STAGES.filter((stage) => filter.stages.length === 0 || filter.stages.includes(stage));
        const of = <Key extends 'stage' | 'sourceId'>(key: Key, value: Lead[Key]) => ({
          of: value,
          count: expected.filter((lead) => lead[key] === value).length,
          isLowerBound: false,
        });
        expect({ filter, byStage, completeSince }).toEqual({
          filter,
          byStage: asked.map((stage) => of('stage', stage)),
          completeSince: null,
        });
        const counts = [null, ...SOURCES].map((id) => of('sourceId', id)).filter(({ count }) => count > 0);
        expect(bySource.toSorted((a, b) => (`${a.of}` < `${b.of}` ? -1 : 1))).toEqual(
          counts.toSorted((a, b) => (`${a.of}` < `${b.of}` ? -1 : 1)),
        );
        // Beyond the leads that a count examines, a stage is counted alone.
        const [stage, bound] = [random.oneOf(LEAD_STAGES), 1 + random.below(9)];
        const inStage = left.filter((lead) => fits({ ...NONE, stages: [stage], updated: filter.updated }, lead)).length;
        expect(await store.measureStage(STUDIO_ID, stage, filter, bound)).toBe(Math.min(inStage, bound));
      }
    });

    test('a walk misses no lead that matches all the time, and lists none that does not, while leads change', async () => {
      const random = randomFrom(11);
      const rival = await opened().another();
      for (let run = 0; run < 5; run += 1) {
        const studioId = `studio-${run}`;
        const leads = times(25, () => randomLead(random, studioId));
        await opened().makeLeads(...leads);
        const states = new Map<string, Lead[]>(leads.map((lead) => [lead.id, [lead]]));
        const change = async () => {
          const lead = states.get(random.oneOf([...states.keys()]))?.at(-1) as Lead;
          const now = plus(NOW, -random.below(SPAN_MS));
          const outcome =
            random.below(2) === 0
              ? await moveLead(rival, lead, random.oneOf(LEAD_STAGES), { now })
              : await correctLead(rival, lead, { sourceId: random.oneOf(SOURCES) }, { now });
          if ('lead' in outcome) states.get(lead.id)?.push(outcome.lead);
          const another = randomLead(random, studioId);
          await created(rival, { ...another, updatedAt: another.createdAt });
        };

        const filter = randomFilter(random);
        const found = await all(store, 'walkLeads', filter, { limit: 2, studioId, between: change });

        expect(found.filter((lead) => !fits(filter, lead))).toEqual([]);
        const ids = found.map(({ id }) => id);
        const always = [...states].filter(([, each]) => each.every((state) => fits(filter, state))).map(([id]) => id);
        expect({ filter, missed: always.filter((id) => !ids.includes(id)) }).toEqual({ filter, missed: [] });
        if (!isByUpdate(filter, 'oldest')) expect(ids).toEqual([...new Set(ids)].sort());
      }
    });

    test('a lead that changes while programs read by changes comes again, behind the others', async () => {
      const leads = times(4, (index) => aLead({ stage: 'won', updatedAt: plus(NOW, index) }));
      const [first] = leads as [Lead];
      await opened().makeLeads(...leads);
      const filter = { ...NONE, updated: { start: NOW, end: null } };
      let isMoved = false;

      const found = await all(store, 'walkLeads', filter, {
        limit: 2,
        async between() {
          if (!isMoved) await moveLead(store, first, 'lost', { now: plus(NOW, DAY_MS) });
          isMoved = true;
        },
      });

      const again = { ...first, stage: 'lost', updatedAt: plus(NOW, DAY_MS) };
      expect(found).toEqual([...leads, again]);
    });

    test('an empty range has no lead, and the first and the last time bound nothing', async () => {
      const leads = times(3, () => aLead());
      await opened().makeLeads(...leads);
      const widest = { start: new Date('0001-01-01T00:00:00Z'), end: new Date('9999-12-31T23:59:59.999Z') };
      const at = (time: Date): TimeRange => ({ start: time, end: time });

      for (const method of ['listLeads', 'walkLeads'] as const) {
        const found = (filter: Partial<LeadFilter>) => all(store, method, { ...NONE, ...filter });
        for (const field of ['created', 'updated']) {
          expect(await found({ [field]: widest })).toHaveLength(3);
          for (const empty of [at(NOW), at(widest.start), at(widest.end), at(leads[1]?.createdAt as Date)])
            expect(await found({ [field]: empty })).toEqual([]);
        }
        expect(await found({ sourceIds: [newId()] })).toEqual([]);
      }
    });

    if (!isWhole) return;

    // @proves bounds-94
    test('a page ends after some thousand leads that do not match, and the next one goes on there', async () => {
      const createdAt = plus(NOW, -SPAN_MS);
      const wanted = aLead({ id: newIdAt(createdAt), createdAt, sourceId: SOURCES[0] as string });
      const others = times(4700, () => aLead());
      await opened().makeLeads(wanted, ...others);

      const filter = { ...NONE, sourceIds: [SOURCES[0] as string] };
      for (const by of [{}, { updated: { start: plus(createdAt, -1), end: null } }]) {
        const page = (after: string | null) =>
          patiently(() => store.listLeads(STUDIO_ID, after, 25, { ...filter, ...by }));
        const first = await page(null);
        expect(first).toMatchObject({ records: [], next: expect.any(String) });
        expect(await page(first.next)).toEqual({ records: [wanted], next: null, skipped: 0 });
      }
    });
  });
}
