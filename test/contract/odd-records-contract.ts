import { describe, expect, test } from 'vitest';
import { MAX_LIVE_KEYS } from '../../src/domain/api-key.ts';
import { type AuditEvent, MAX_AUDIT_EVENTS } from '../../src/domain/audit.ts';
import { DEFAULT_CONSUMER } from '../../src/domain/consumer.ts';
import type { Lead } from '../../src/domain/lead.ts';
import type { LeadChange } from '../../src/domain/lead-change.ts';
import type { Store } from '../../src/store/store.ts';
import {
  aConsumer,
  aLead,
  aLeadSource,
  aLoggedRequest,
  anApiKey,
  aStudio,
  BY,
  keysFor,
  NOW,
  plus,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import { patiently } from '../support/patience.ts';
import type { Damage, OpenedStore } from './opened-store.ts';
import { changesIn, toAcknowledgement } from './store-actions.ts';

/** More odd records than a call with LIMIT reads; and enough for several reads, where other tests prove paging. */
const ODD = 1100;
const SOME_ODD = 150;

/** The maximum number of calls until the records after the odd ones are found. */
const MAX_CALLS = 20;
const LIMIT = 100;

const contact = { type: 'email', value: 'one@example.org' } as const;

/** Whether a result has a list of records, in itself or in a field. */
type HasList<Result> = Result extends readonly object[]
  ? true
  : Result extends object
    ? { [Field in keyof Result]: Result[Field] extends readonly object[] ? true : never }[keyof Result]
    : never;

/** The methods that return lists of records. */
type ListMethod = {
  [Name in keyof Store]: true extends HasList<Awaited<ReturnType<Store[Name]>>> ? Name : never;
}[keyof Store];

/** Two readable leads of one contact, with many unreadable ones before, between and after them. */
interface Leads {
  readonly store: Store;
  readonly good: readonly [Lead, Lead];
  readonly odd: readonly Lead[];
}

/** The records a call found, and the position for the next call; null ends the list. */
type Found = readonly [found: readonly string[], next: string | null];

interface OddCase {
  /** Makes a call until `next` is null. */
  readonly call: (leads: Leads, position: string | null) => Promise<Found>;
  /** The names that must be found; default: the ids of the good leads. */
  readonly finds?: (leads: Leads) => readonly string[];
  /** Stores records other than leads first. */
  readonly arrange?: (opened: OpenedStore) => Promise<unknown>;
}

const toId = ({ id }: { readonly id: string }) => id;
const listIds = (records: readonly { readonly id: string }[]) => records.map(toId);
const changedIds = async ({ store }: Leads) => {
  // On a slow machine a list would distribute only some.
  while (!(await store.distributeLeadChanges()));
  return listIds((await changesIn(store, LIMIT)).map(({ lead }) => lead));
};

type Read<Item> = (
  store: Store,
  position: string | null,
  limit: number,
  leads: Leads,
) => Promise<{ readonly records: readonly Item[]; readonly next: string | null }>;

/** A paged case; every page has a limit. */
const paged = <Item>(
  read: Read<Item>,
  findName: (item: Item) => string,
  more: Omit<OddCase, 'call'> & { readonly limit?: number } = {},
): OddCase => ({
  ...more,
  async call(leads, position) {
    const { limit = 1 } = more;
    const { records, next } = await read(leads.store, position, limit, leads);
    expect(records.length).toBeLessThanOrEqual(limit);
    return [records.map(findName), next];
  },
});

/** How list methods, and some others, get past odd records. All other methods concern single records. */
const ODD_CASES: { readonly [Name in ListMethod]: OddCase } & { readonly [Name in keyof Store]?: OddCase } = {
  listLeads: paged((store, before, limit) => store.listLeads(STUDIO_ID, before, limit), toId),
  listPublicLeads: paged(
    (store, before, limit) => store.listPublicLeads(STUDIO_ID, before, limit),
    (lead) => JSON.parse(lead).id,
  ),
  walkLeads: paged((store, after, limit) => store.walkLeads(STUDIO_ID, after, limit), toId),
  listLeadsToCount: paged((store, before, limit) => store.listLeadsToCount(STUDIO_ID, before, limit), toId, {
    limit: LIMIT,
  }),
  findLeadsOfContact: {
    call: async ({ store, good: [lead] }) => [
      listIds((await store.findLeadsOfContact(STUDIO_ID, keysFor(lead).contactKeys)).leads),
      null,
    ],
  },
  measureDeliveries: {
    async call({ store }) {
      while (!(await store.distributeLeadChanges()));
      const { waiting } = await store.measureDeliveries(DEFAULT_CONSUMER.number, 10_000);
      return [[`${waiting.leads}`], null];
    },
    finds: ({ odd }) => [`${odd.length + 2}`],
  },
  acknowledgeDeliveries: {
    async call(leads) {
      const { store, odd } = leads;
      await changedIds(leads);
      const unknown = odd.slice(0, 400).map((each) => ({ lead: { ...each, studioId: 'studio-9' }, revision: 5 }));
      const named = [...unknown, ...(await changesIn(store, LIMIT))].map((each) =>
        toAcknowledgement(each as LeadChange),
      );
      const { applied: count } = await store.acknowledgeDeliveries(DEFAULT_CONSUMER.number, named);
      return [[`${count}`, ...(await changedIds(leads))], null];
    },
    finds: () => ['2'],
  },
  resendLeads: {
    async call(leads, after) {
      const { next } = await leads.store.resendLeads({ studioId: STUDIO_ID, after, limit: LIMIT }, plus(NOW, 1e9));
      return [next === null ? await changedIds(leads) : [], next];
    },
  },
  listConsumers: {
    arrange: ({ store }) => store.createConsumer(aConsumer(), BY),
    call: async ({ store }) => [(await store.listConsumers()).map(({ name }) => name), null],
    finds: () => ['relay'],
  },
  listDeliveries: { call: async (leads) => [await changedIds(leads), null] },
  listDeliveriesSetAside: {
    // The list contains no data of leads.
    async call({ store, odd, good }) {
      const { number } = DEFAULT_CONSUMER;
      while (!(await store.distributeLeadChanges()));
      const seen = [...odd.slice(0, 50), ...good].map(({ studioId, id: leadId }) => ({ studioId, leadId }));
      const revision = Number.MAX_SAFE_INTEGER;
      const aside = seen.map((each) => ({ ...each, revision, reason: 'ODD', retryAt: null }));
      await store.setAsideDeliveries(number, aside, NOW);
      const found = (await store.listDeliveriesSetAside(number, null, LIMIT)).map(({ leadId }) => leadId);
      return [good.map(({ id }) => id).filter((id) => found.includes(id)), null];
    },
  },
  walkUnerasedLeads: paged(
    async (store, after, limit) => {
      const { leads: records, next } = await store.walkUnerasedLeads(STUDIO_ID, after, limit);
      return { records, next };
    },
    toId,
    // Unreadable leads can also be erased.
    { limit: LIMIT, finds: ({ good, odd }) => listIds([...good, ...odd]) },
  ),
  walkErasedLeads: paged(
    async (store, after, limit, { good }) => {
      for (const { studioId, id: leadId } of good)
        await store.eraseLead({ studioId, leadId, memberId: null, now: NOW });
      const { leads: records, next } = await store.walkErasedLeads(STUDIO_ID, after, limit);
      return { records, next };
    },
    toId,
    { limit: LIMIT },
  ),
  listLiveApiKeys: {
    async arrange({ store, damage }) {
      const keys = times(MAX_LIVE_KEYS, (index) => anApiKey({ memberId: index === 0 ? 'good' : 'odd' }));
      for (const key of keys) await store.createApiKey(key, NOW);
      await damage({ kind: 'key', field: 'name', value: '' }, ...keys.slice(1));
    },
    call: async ({ store }) => [listMembers(await store.listLiveApiKeys(STUDIO_ID)), null],
    finds: () => ['good', ...times(MAX_LIVE_KEYS - 1, () => 'odd')],
  },
  listFormerApiKeys: paged(
    (store, before, limit) => store.listFormerApiKeys(STUDIO_ID, before, limit),
    ({ memberId }) => memberId,
    {
      arrange: ({ fill }) =>
        fill({ keys: [anApiKey({ memberId: 'good' }), ...times(ODD, () => anApiKey({ name: '', memberId: 'odd' }))] }),
      limit: LIMIT,
      // An unreadable key is listed with its readable fields.
      finds: () => ['good', ...times(ODD, () => 'odd')],
    },
  ),
  listStudios: paged((store, after, limit) => store.listStudios(after, limit), toId, {
    arrange: ({ makeStudios }) => makeStudios('z-good', ...times(ODD, (index) => `an invalid id ${index}`)),
    finds: () => [STUDIO_ID, 'z-good'],
  }),
  listLeadSources: paged(
    (store, after, limit) => store.listLeadSources(STUDIO_ID, after, limit),
    ({ name }) => name,
    {
      arrange: ({ fill }) =>
        fill({
          sources: [...times(ODD, () => aLeadSource({ name: '' })), ...times(2, () => aLeadSource({ name: 'good' }))],
        }),
      finds: () => ['good', 'good'],
    },
  ),
  walkAuditEvents: {
    arrange: ({ fill }) =>
      fill({
        events: [...times(ODD, () => anEvent({ action: 'studio-sold' as never })), anEvent({ memberId: 'good' })],
      }),
    async call({ store }, after) {
      const { events, next } = await store.walkAuditEvents(ALWAYS, after);
      return [listMembers(events).filter((member) => member === 'good'), next];
    },
    finds: () => ['good'],
  },
  listAuditEvents: {
    arrange: ({ fill }) =>
      fill({
        events: [anEvent({ memberId: 'good' }), ...times(ODD, () => anEvent({ action: 'studio-sold' as never }))],
      }),
    async call({ store }) {
      const members = listMembers(await store.listAuditEvents(STUDIO_ID, null));
      return [members.filter((member) => member === 'good'), null];
    },
    finds: () => ['good'],
  },
  listRequests: paged(
    (store, before, limit) => store.listRequests(STUDIO_ID, before, limit),
    ({ requestId }) => requestId,
    {
      arrange: ({ store }) =>
        store.recordRequests([
          ...times(2, () => aLoggedRequest({ requestId: 'good' })),
          ...times(ODD, () => aLoggedRequest({ operation: 'sell' as never })),
        ]),
      finds: () => ['good', 'good'],
    },
  ),
};

const ALWAYS = { start: new Date(0), end: new Date(8.64e15) };

const listMembers = (records: readonly { readonly memberId: string | null }[]) =>
  records.map(({ memberId }) => memberId ?? '');

function anEvent(overrides: Partial<AuditEvent> = {}): AuditEvent {
  const nothing = { memberId: null, caller: null, callId: null, apiKeyId: null, leadId: null, from: null, to: null };
  return { studioId: STUDIO_ID, action: 'studio-status-changed', time: NOW, ...nothing, ...overrides };
}

/** Keys with more events than are listed; the oldest key has the newest event. */
function manyEvents(ofEach = 10) {
  const keys = times(120, () => anApiKey());
  const events = keys.flatMap(({ id: apiKeyId }, key) =>
    times(ofEach, (index) => anEvent({ action: 'api-key-replaced', apiKeyId, time: plus(NOW, index * 1000 - key) })),
  );
  return { keys, events: events.toSorted((a, b) => a.time.getTime() - b.time.getTime()) };
}

/** The promises about many odd records: they hide no others, and every page is bounded. */
export function oddRecordsContract(damages: readonly Damage[], opened: () => OpenedStore, isWhole: boolean): void {
  const cases = Object.entries<OddCase>(ODD_CASES).map(([name, each]) => ({ name, ...each }));

  /** Calls a method until it has no more, and checks the result. */
  async function expectFound(
    { name, call, finds = ({ good }) => listIds(good) }: (typeof cases)[number],
    leads: Leads,
  ) {
    const found: string[] = [];
    let position: string | null = null;
    for (let calls = 1; ; calls += 1) {
      const [more, next]: Found = await patiently(() => call(leads, position));
      found.push(...more);
      if (next === null) break;
      expect(next, `${name} goes on`).not.toBe(position);
      expect(calls, `calls of ${name}`).toBeLessThan(MAX_CALLS);
      position = next;
    }
    expect(found.toSorted(), name).toEqual(finds(leads).toSorted());
  }

  // @proves limits-2 hostile-2
  describe('many records', () => {
    test('many unreadable leads before, between and after others hide none of them', async () => {
      const { store } = opened();
      await store.putStudio(aStudio(), BY);
      // The odd leads and the last are created at one moment, so that only their ids tell their order.
      const closedLead = (createdAt: Date) => aLead({ contact, stage: 'lost', createdAt });
      const first = closedLead(plus(NOW, -1));
      const odd = times(isWhole ? ODD : SOME_ODD, () => closedLead(NOW));
      const last = closedLead(NOW);
      await opened().makeLeads(first, ...odd, last);
      const unknownStage = damages.find(({ field }) => field === 'stage') as Damage;
      await opened().damage(unknownStage, ...odd);

      for (const each of cases.filter(({ arrange }) => !arrange)) {
        await expectFound(each, { store, good: [first, last], odd });
      }
    });

    test.each(cases.filter(({ arrange }) => arrange))('$name finds the records behind odd ones', async (each) => {
      const { store } = opened();
      await store.putStudio(aStudio(), BY);
      await each.arrange?.(opened());

      await expectFound(each, { store, good: [aLead(), aLead()], odd: [] });
    });

    // @proves bounds-58
    test('lists the newest audit events, newest first, whatever keys they belong to', async () => {
      const { store, fill } = opened();
      await store.putStudio(aStudio(), BY);
      const content = manyEvents();
      await fill(content);

      const listed = await store.listAuditEvents(STUDIO_ID, null);

      const newest = content.events.toReversed().slice(0, MAX_AUDIT_EVENTS);
      expect(listed.map(({ apiKeyId, time }) => [apiKeyId, time])).toEqual(
        newest.map(({ apiKeyId, time }) => [apiKeyId, time]),
      );
    });
  });
}
