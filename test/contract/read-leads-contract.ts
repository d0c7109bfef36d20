import { beforeEach, describe, expect, test } from 'vitest';
import { type Contact, toContactKeys } from '../../src/domain/contact.ts';
import { LEAD_STAGES, type Lead, MAX_LEADS_PER_CONTACT } from '../../src/domain/lead.ts';
import { readTexts } from '../../src/domain/lead-data.ts';
import { isByUpdate, type LeadFilter, type TimeRange } from '../../src/domain/lead-filter.ts';
import { newId, newIdAt } from '../../src/domain/new-id.ts';
import type { Page } from '../../src/store/port/page.ts';
import type { Store } from '../../src/store/store.ts';
import { countLeads } from '../../src/usecases/count-leads.ts';
import { aContactKey, aLead, aStudio, BY, DAY_MS, keysFor, NOW, plus, STUDIO_ID, times } from '../support/builders.ts';
import { patiently } from '../support/patience.ts';
import type { OpenedStore } from './opened-store.ts';
import { actionsOn, correctLead, created, leadsIn, moveLead } from './store-actions.ts';

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

    test('a page has at most its limit, and all pages together have every lead once', async () => {
      const leads = times(10, () => aLead());
      for (const lead of leads) await created(lead);
      const newestFirst = leads.toReversed();

      const first = await leadsIn(store, STUDIO_ID, null, 4);
      const second = await leadsIn(store, STUDIO_ID, first.at(-1)?.id as string, 4);
      const third = await leadsIn(store, STUDIO_ID, second.at(-1)?.id as string, 4);

      expect([first, second, third]).toEqual([newestFirst.slice(0, 4), newestFirst.slice(4, 8), newestFirst.slice(8)]);
      expect((await store.listLeadsToCount(STUDIO_ID, null, 4)).records).toHaveLength(4);
    });

    test("another studio's leads are never visible", async () => {
      const mine = await created(aLead());
      const keys = keysFor(mine);
      const theirs = await created(aLead({ studioId: 'studio-2' }), keys);
      const latest = await created(aLead());

      expect(await everyLead()).toEqual([latest, mine]);
      expect(await leadsIn(store, STUDIO_ID, theirs.id, 10)).toEqual([mine]);
      expect(await everyLead('studio-2')).toEqual([theirs]);
      expect(await everyLead('studio-3')).toEqual([]);
      expect(await store.findLead(STUDIO_ID, theirs.id)).toBeNull();
      expect(await store.findLead('studio-2', mine.id)).toBeNull();
      expect(await store.findLeadByIdempotencyKey(STUDIO_ID, keys.idempotencyKey)).toBeNull();
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

    test('a walk returns every lead once across all pages, sorted by id', async () => {
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

/** The promises of `findLeadsOfContact`. */
export function findLeadsContract(opened: () => OpenedStore): void {
  // @proves leads-9
  describe('the leads of a contact', () => {
    let store: Store;
    beforeEach(() => {
      store = opened().store;
    });
    const { created, moved, corrected } = actionsOn(() => store);

    const anEmail = (): Contact => ({ type: 'email', value: `${newId()}@example.org` });

    const byId = (leads: readonly Lead[]) => leads.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const foundBy = async (contactKeys: readonly string[], studioId = STUDIO_ID) =>
      byId((await store.findLeadsOfContact(studioId, contactKeys)).leads);
    const found = (contact: Contact, studio = aStudio()) => foundBy(toContactKeys(contact, studio).contactKeys);

    test('all leads of a contact are found, open and closed, and no others', async () => {
      const contact = anEmail();
      const leads = [
        await moved(await created(aLead({ contact })), 'won'),
        await moved(await created(aLead({ contact })), 'lost'),
        await created(aLead({ contact })),
      ];
      const other = await created();
      await moved(await created(), 'won');
      const theirs = await created(aLead({ contact, studioId: 'studio-2' }));

      expect(await found(contact)).toEqual(byId(leads));
      expect(await found(other.contact)).toEqual([other]);
      expect(await found(anEmail())).toEqual([]);
      expect(await foundBy(keysFor(theirs).contactKeys, 'studio-2')).toEqual([theirs]);
      expect(await foundBy(keysFor(theirs).contactKeys, 'studio-3')).toEqual([]);
    });

    test('leads are found once by any of their keys, even after a restart', async () => {
      const [open, closed] = [aLead(), aLead()];
      const keys = (...names: string[]) => ({ contactKeys: names.map(aContactKey) });
      await created(open, keysFor(open, keys('a', 'b')));
      await created(closed, keysFor(closed, keys('x')));
      const lost = await moved(closed, 'lost', { keys: keysFor(closed, keys('b', 'c')) });

      store = await opened().reopen();
      expect(await foundBy([aContactKey('a')])).toEqual([open]);
      expect(await foundBy([aContactKey('c')])).toEqual([lost]);
      expect(await foundBy([aContactKey('b')])).toEqual(byId([open, lost]));
      expect(await foundBy(['a', 'b', 'c'].map(aContactKey))).toEqual(byId([open, lost]));
      // A closed lead is also found by its former keys.
      expect(await foundBy([aContactKey('x')])).toEqual([lost]);
    });

    // @proves studios-3
    test('a lead record has its enquiries, its idempotency key and its original data', async () => {
      const lead = aLead({ note: 'first', sourceId: newId() });
      const { idempotencyKey } = keysFor(lead);
      await created(lead, keysFor(lead, { idempotencyKey }));
      const record = () => store.findLeadRecord(STUDIO_ID, lead.id);
      expect(await record()).toEqual({ lead, idempotencyKey, original: null });
      const original = readTexts(lead);
      const now = await corrected(lead, { displayName: 'Ada King', sourceId: null, note: null });
      expect(await record()).toEqual({ lead: now, idempotencyKey, original });
      const again = aLead({ contact: lead.contact, note: 'again' });
      await store.createLead(again, keysFor(again), { keepsEnquiry: true });
      const enquiry = { id: expect.any(String), time: again.createdAt, ...readTexts(again) };
      store = await opened().reopen();
      expect(await record()).toEqual({ lead: { ...now, enquiries: [enquiry] }, idempotencyKey, original });

      expect(await store.findLeadRecord('studio-2', lead.id)).toBeNull();
      expect(await store.findLeadRecord(STUDIO_ID, newId())).toBeNull();
      await store.eraseLead({ studioId: STUDIO_ID, leadId: lead.id, memberId: null, now: now.updatedAt });
      expect(await record()).toBeNull();
    });

    test.each(['new', 'lost'] as const)(
      'a %s lead is found by its corrected contact and not by the former one',
      async (stage) => {
        const lead = await created();
        if (stage !== 'new') await moved(lead, stage);
        const contact = anEmail();
        const now = await corrected(lead, { contact });

        expect(await found(contact)).toEqual([now]);
        expect(await found(lead.contact)).toEqual([]);
        const to = stage === 'new' ? 'won' : 'contacted';
        expect(await moveLead(store, lead, to)).toEqual({ kind: 'other-contact' });
        const last = await moved(now, to);
        expect(await found(contact)).toEqual([last]);
        expect(await found(lead.contact)).toEqual([]);
      },
    );

    // @proves bounds-37
    test('finds at most the maximum of leads of a contact, but always every open one', async () => {
      const [first, second, third] = [aLead(), aLead(), aLead()];
      const { contact } = first;
      const [a, b, c] = [keysFor(first).contactKeys, [aContactKey('b')], [aContactKey('c')]];
      await opened().makeLeads(...times(MAX_LEADS_PER_CONTACT + 3, () => aLead({ contact, stage: 'lost' })));
      const both = await created();
      await moved(both, 'lost', { keys: keysFor(both, { contactKeys: [...a, ...b] }) });
      await created(first);
      await created(second, keysFor(second, { contactKeys: b }));
      await created(third, keysFor(third, { contactKeys: c }));

      for (const keys of [a, [...a, ...b, ...c], [...c, ...b, ...a]]) {
        const all = await foundBy(keys);
        expect(all).toHaveLength(MAX_LEADS_PER_CONTACT);
        expect(all).toEqual(expect.arrayContaining(keys === a ? [first] : [first, second, third]));
      }
    });
  });
}

const ANY: TimeRange = { start: null, end: null };
const NONE: LeadFilter = { stages: [], sourceIds: [], created: ANY, updated: ANY };
const SOURCES = [newId(), newId(), newId()];
const KEYS = [newId(), newId()];
const SPAN_MS = 10 * DAY_MS;

/** Returns pseudo-random choices that a seed determines, so that failures are repeatable. */
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
  // Most leads fall into some hours, and several leads share a time.
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

/** Tells whether a filter includes a lead, without any code of the product. */
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

/** Reads all pages; `between` runs before each except the first. */
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

/** Sorts leads as the list does. */
function inOrder(leads: readonly Lead[], method: Listing, filter: LeadFilter): Lead[] {
  const toKey = ({ id, updatedAt }: Lead) =>
    isByUpdate(filter, FIRST[method]) ? `${updatedAt.getTime().toString().padStart(16, '0')} ${id}` : id;
  const sorted = leads.toSorted((a, b) => (toKey(a) < toKey(b) ? -1 : 1));
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
    // @proves leads-35
    test('random filters list each matching lead once, in order, and count them', async () => {
      const random = randomFrom(7);
      await store.putStudio(aStudio(), BY);
      /** Checks the counts by stage and source against some leads. */
      async function expectCounts(filter: LeadFilter, left: readonly Lead[], expected: readonly Lead[]) {
        const { byStage, bySource, completeSince } = await countLeads({ store }, { studioId: STUDIO_ID, filter });
        const asked = LEAD_STAGES.filter((stage) => filter.stages.length === 0 || filter.stages.includes(stage));
        const of = <Key extends 'stage' | 'sourceId'>(key: Key, value: Lead[Key]) => ({
          of: value,
          count: expected.filter((lead) => lead[key] === value).length,
          isLowerBound: false,
        });
        const counted = { filter, byStage: asked.map((stage) => of('stage', stage)), completeSince: null };
        expect({ filter, byStage, completeSince }).toEqual(counted);
        const counts = [null, ...SOURCES].map((id) => of('sourceId', id)).filter(({ count }) => count > 0);
        expect(new Set(bySource)).toEqual(new Set(counts));
        // Beyond the leads that a count examines, each stage is counted separately.
        const [stage, bound] = [random.oneOf(LEAD_STAGES), 1 + random.below(9)];
        const inStage = left.filter((lead) => fits({ ...NONE, stages: [stage], updated: filter.updated }, lead)).length;
        expect(await store.measureStage(STUDIO_ID, stage, filter, bound)).toBe(Math.min(inStage, bound));
      }
      const leads = times(120, (index) => randomLead(random, index % 4 === 0 ? 'studio-2' : STUDIO_ID));
      await opened().makeLeads(...leads);
      const erased = leads.filter((_, index) => index % 10 === 1);
      for (const { studioId, id: leadId } of erased)
        await store.eraseLead({ studioId, leadId, memberId: null, now: NOW });

      let sizes = 0;
      for (let run = 0; run < 15; run += 1) {
        const filter = randomFilter(random);
        const studioId = random.oneOf([STUDIO_ID, 'studio-2', 'studio-3']);
        const left = leads.filter((lead) => lead.studioId === studioId && !erased.includes(lead));
        const expected = left.filter((lead) => fits(filter, lead));
        sizes += expected.length;
        for (const method of ['listLeads', 'walkLeads'] as const) {
          const found = await all(store, method, filter, { limit: 1 + random.below(9), studioId });
          expect({ filter, method, found }).toEqual({ filter, method, found: inOrder(expected, method, filter) });
        }
        if (studioId === STUDIO_ID) await expectCounts(filter, left, expected);
      }
      expect(sizes).toBeGreaterThan(50);
    });

    test('a walk lists every lead that matches throughout, and only in matching states', async () => {
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

    test('a lead that changes during a walk by changes comes again after the others', async () => {
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

    test('an empty range has no leads, and the first and last possible times exclude none', async () => {
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
    test('a page ends after some thousand leads without a match, and the next resumes there', async () => {
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
