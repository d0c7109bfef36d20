import { describe, expect, test } from 'vitest';
import { MAX_CONSUMERS } from '../../common/rules/field-rules.ts';
import { MAX_LIVE_KEYS } from '../../src/domain/api-key.ts';
import { type AuditEvent, MAX_AUDIT_EVENTS } from '../../src/domain/audit.ts';
import { DEFAULT_CONSUMER } from '../../src/domain/consumer.ts';
import { type Lead, MAX_LEADS_PER_CONTACT } from '../../src/domain/lead.ts';
import type { LeadChange } from '../../src/domain/lead-change.ts';
import type { AuditPart } from '../../src/store/port/audit.ts';
import type { Store } from '../../src/store/store.ts';
import {
  aConsumer,
  aLead,
  aLeadSource,
  aLoggedRequest,
  anApiKey,
  aStudio,
  BY,
  claimsOf,
  NOW,
  plus,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import { patiently } from '../support/patience.ts';
import type { Damage, OpenedStore } from './opened-store.ts';
import { acknowledgementOf, changesIn } from './store-actions.ts';

/** More odd records than a page of LIMIT reads; and some that take several reads, where the pages are proven. */
const ODD = 1100;
const SOME_ODD = 150;

/** The maximum number of calls with LIMIT until the records behind them are found. */
const MAX_CALLS = 20;
const LIMIT = 100;

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

/** Two readable leads, before and after many unreadable ones; all of one contact. */
interface Leads {
  readonly store: Store;
  readonly good: readonly [Lead, Lead];
  readonly odd: readonly Lead[];
}

/** What a call finds, and the position of the next; null: there is no more. */
type Found = readonly [found: readonly string[], next: string | null];

interface OddCase {
  /** Makes a call until `next` is null. */
  readonly call: (leads: Leads, position: string | null) => Promise<Found>;
  /** What must be found; default: the ids of the good leads. */
  readonly finds?: (leads: Leads) => readonly string[];
  /** Stores other records than leads before. */
  readonly arrange?: (opened: OpenedStore) => Promise<unknown>;
}

const idsOf = (records: readonly { readonly id: string }[]) => records.map(({ id }) => id);
const changedIds = async ({ store }: Leads) => {
  // On a slow machine a list would distribute only some.
  while (!(await store.distributeLeadChanges()));
  return idsOf((await changesIn(store, LIMIT)).map(({ lead }) => lead));
};

/** How methods get past odd records: each that returns a list, and others. The rest concern single records. */
const ODD_CASES: { readonly [Name in ListMethod]: OddCase } & { readonly [Name in keyof Store]?: OddCase } = {
  listLeads: {
    async call({ store }, before) {
      const { records, next } = await store.listLeads(STUDIO_ID, before, LIMIT);
      return [idsOf(records), next];
    },
  },
  listPublicLeads: {
    async call({ store }, before) {
      const { records, next } = await store.listPublicLeads(STUDIO_ID, before, LIMIT);
      return [idsOf(records.map((lead) => JSON.parse(lead))), next];
    },
  },
  walkLeads: {
    async call({ store }, after) {
      const { records, next } = await store.walkLeads(STUDIO_ID, after, LIMIT);
      return [idsOf(records), next];
    },
  },
  listLeadsToCount: {
    async call({ store }, before) {
      const { records, next } = await store.listLeadsToCount(STUDIO_ID, before, LIMIT);
      return [idsOf(records), next];
    },
  },
  findLeadsOfContact: {
    call: async ({ store, good: [lead] }) => [
      idsOf((await store.findLeadsOfContact(STUDIO_ID, claimsOf(lead).contactKeys)).leads),
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
        acknowledgementOf(each as LeadChange),
      );
      const { settled: count } = await store.acknowledgeDeliveries(DEFAULT_CONSUMER.number, named);
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
    // It has no data of leads.
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
  walkUnerasedLeads: {
    async call({ store }, after) {
      const { leads, next } = await store.walkUnerasedLeads(STUDIO_ID, after, LIMIT);
      return [idsOf(leads), next];
    },
    // An unreadable lead can be erased, too.
    finds: ({ good, odd }) => idsOf([...good, ...odd]),
  },
  walkErasedLeads: {
    async call({ store, good }, after) {
      for (const { studioId, id: leadId } of good)
        await store.eraseLead({ studioId, leadId, memberId: null, now: NOW });
      const { leads, next } = await store.walkErasedLeads(STUDIO_ID, after, LIMIT);
      return [idsOf(leads), next];
    },
  },
  listLiveApiKeys: {
    async arrange({ store, damage }) {
      const keys = times(MAX_LIVE_KEYS, (index) => anApiKey({ memberId: index === 0 ? 'good' : 'odd' }));
      for (const key of keys) await store.createApiKey(key, NOW);
      await damage({ kind: 'key', field: 'name', value: '' }, ...keys.slice(1));
    },
    call: async ({ store }) => [membersOf(await store.listLiveApiKeys(STUDIO_ID)), null],
    finds: () => ['good', ...times(MAX_LIVE_KEYS - 1, () => 'odd')],
  },
  listFormerApiKeys: {
    arrange: ({ fill }) =>
      fill({ keys: [anApiKey({ memberId: 'good' }), ...times(ODD, () => anApiKey({ name: '', memberId: 'odd' }))] }),
    async call({ store }, before) {
      const { records, next } = await store.listFormerApiKeys(STUDIO_ID, before, LIMIT);
      return [membersOf(records), next];
    },
    // An unreadable key is in the list, with what can be read of it.
    finds: () => ['good', ...times(ODD, () => 'odd')],
  },
  listStudios: {
    arrange: ({ makeStudios }) => makeStudios('z-good', ...times(ODD, (index) => `an invalid id ${index}`)),
    async call({ store }, after) {
      const { records, next } = await store.listStudios(after, LIMIT);
      return [idsOf(records), next];
    },
    finds: () => [STUDIO_ID, 'z-good'],
  },
  listLeadSources: {
    arrange: ({ fill }) =>
      fill({ sources: [...times(ODD, () => aLeadSource({ name: '' })), aLeadSource({ name: 'good' })] }),
    async call({ store }, after) {
      const { records, next } = await store.listLeadSources(STUDIO_ID, after, LIMIT);
      return [records.map(({ name }) => name), next];
    },
    finds: () => ['good'],
  },
  walkAuditEvents: {
    arrange: ({ fill }) =>
      fill({
        events: [...times(ODD, () => anEvent({ action: 'studio-sold' as never })), anEvent({ memberId: 'good' })],
      }),
    async call({ store }, after) {
      const { events, next } = await store.walkAuditEvents(ALWAYS, after);
      return [membersOf(events).filter((member) => member === 'good'), next];
    },
    finds: () => ['good'],
  },
  listAuditEvents: {
    arrange: ({ fill }) =>
      fill({
        events: [anEvent({ memberId: 'good' }), ...times(ODD, () => anEvent({ action: 'studio-sold' as never }))],
      }),
    async call({ store }) {
      const members = membersOf(await store.listAuditEvents(STUDIO_ID, null));
      return [members.filter((member) => member === 'good'), null];
    },
    finds: () => ['good'],
  },
  listRequests: {
    arrange: ({ store }) =>
      store.recordRequests([
        aLoggedRequest({ requestId: 'good' }),
        ...times(ODD, () => aLoggedRequest({ operation: 'sell' as never })),
      ]),
    async call({ store }, before) {
      const { records, next } = await store.listRequests(STUDIO_ID, before, LIMIT);
      return [records.map(({ requestId }) => requestId), next];
    },
    finds: () => ['good'],
  },
};

const ALWAYS = { start: new Date(0), end: new Date(8.64e15) };

const membersOf = (records: readonly { readonly memberId: string | null }[]) =>
  records.map(({ memberId }) => memberId ?? '');

function anEvent(overrides: Partial<AuditEvent> = {}): AuditEvent {
  const nothing = { memberId: null, caller: null, callId: null, apiKeyId: null, leadId: null, from: null, to: null };
  return { studioId: STUDIO_ID, action: 'studio-status-changed', time: NOW, ...nothing, ...overrides };
}

interface BoundCase {
  readonly bound: number;
  /** Stores more records than the bound. */
  readonly exceed: (opened: OpenedStore) => Promise<unknown>;
  readonly list: (store: Store) => Promise<readonly unknown[]>;
}

const MANY_LEADS = ({ makeLeads }: OpenedStore) => makeLeads(...times(15, () => aLead()));
const contact = { type: 'email', value: 'one@example.org' } as const;

/** The bound of every method that returns a list. */
const BOUNDS: { readonly [Name in ListMethod]: BoundCase } = {
  listLeads: {
    bound: 10,
    exceed: MANY_LEADS,
    list: async (store) => (await store.listLeads(STUDIO_ID, null, 10)).records,
  },
  walkLeads: {
    bound: 10,
    exceed: MANY_LEADS,
    list: async (store) => (await store.walkLeads(STUDIO_ID, null, 10)).records,
  },
  listLeadsToCount: {
    bound: 10,
    exceed: MANY_LEADS,
    list: async (store) => (await store.listLeadsToCount(STUDIO_ID, null, 10)).records,
  },
  findLeadsOfContact: {
    bound: MAX_LEADS_PER_CONTACT,
    exceed: ({ makeLeads }) => makeLeads(...times(MAX_LEADS_PER_CONTACT + 5, () => aLead({ contact, stage: 'lost' }))),
    list: async (store) => (await store.findLeadsOfContact(STUDIO_ID, claimsOf(aLead({ contact })).contactKeys)).leads,
  },
  listConsumers: {
    bound: MAX_CONSUMERS,
    async exceed({ store }) {
      for (const index of times(MAX_CONSUMERS + 5, (each) => each))
        await store.createConsumer(aConsumer({ name: `consumer-${index}` }), BY);
    },
    list: (store) => store.listConsumers(),
  },
  listDeliveriesSetAside: {
    bound: 10,
    async exceed(opened) {
      await opened.store.createConsumer(aConsumer(), BY);
      await MANY_LEADS(opened);
      const { changes = [] } = (await opened.store.listDeliveries(1, 100)) ?? {};
      const aside = changes.map((each) => ({ ...acknowledgementOf(each), reason: 'MANY', retryAt: null }));
      await opened.store.setAsideDeliveries(1, aside, NOW);
    },
    list: (store) => store.listDeliveriesSetAside(1, null, 10),
  },
  listDeliveries: { bound: 10, exceed: MANY_LEADS, list: (store) => changesIn(store, 10) },
  walkUnerasedLeads: {
    bound: 10,
    exceed: MANY_LEADS,
    list: async (store) => (await store.walkUnerasedLeads(STUDIO_ID, null, 10)).leads,
  },
  walkErasedLeads: {
    bound: 10,
    async exceed(opened) {
      await MANY_LEADS(opened);
      const { store } = opened;
      for (const { studioId, id: leadId } of (await store.listLeads(STUDIO_ID, null, 100)).records)
        await store.eraseLead({ studioId, leadId, memberId: null, now: NOW });
    },
    list: async (store) => (await store.walkErasedLeads(STUDIO_ID, null, 10)).leads,
  },
  listLiveApiKeys: {
    bound: MAX_LIVE_KEYS,
    async exceed({ store, fill }) {
      await fill({ keys: times(30, () => anApiKey()) });
      for (const key of times(MAX_LIVE_KEYS + 1, () => anApiKey())) await store.createApiKey(key, NOW);
    },
    list: (store) => store.listLiveApiKeys(STUDIO_ID),
  },
  listFormerApiKeys: {
    bound: 10,
    exceed: ({ fill }) => fill({ keys: times(30, () => anApiKey()) }),
    list: async (store) => (await store.listFormerApiKeys(STUDIO_ID, null, 10)).records,
  },
  listStudios: {
    bound: 10,
    exceed: ({ makeStudios }) => makeStudios(...times(30, (index) => `studio-of-${index}`)),
    list: async (store) => (await store.listStudios(null, 10)).records,
  },
  listLeadSources: {
    bound: 10,
    exceed: ({ fill }) => fill({ sources: times(30, () => aLeadSource()) }),
    list: async (store) => (await store.listLeadSources(STUDIO_ID, null, 10)).records,
  },
  walkAuditEvents: {
    bound: 1000,
    exceed: ({ fill }) => fill(manyEvents(20)),
    async list(store) {
      let longest: readonly unknown[] = [];
      for (let after: string | null = null; ; ) {
        const part: AuditPart = await store.walkAuditEvents(ALWAYS, after);
        if (part.events.length > longest.length) longest = part.events;
        if (part.next === null) return longest;
        after = part.next;
      }
    },
  },
  listAuditEvents: {
    bound: MAX_AUDIT_EVENTS,
    exceed: ({ fill }) => fill(manyEvents()),
    list: (store) => store.listAuditEvents(STUDIO_ID, null),
  },
  listRequests: {
    bound: 10,
    exceed: ({ store }) => store.recordRequests(times(15, () => aLoggedRequest())),
    list: async (store) => (await store.listRequests(STUDIO_ID, null, 10)).records,
  },
};

/** Keys with more events than are listed; the newest event is that of the oldest key. */
function manyEvents(ofEach = 10) {
  const keys = times(120, () => anApiKey());
  const events = keys.flatMap(({ id: apiKeyId }, key) =>
    times(ofEach, (index) => anEvent({ action: 'api-key-replaced', apiKeyId, time: plus(NOW, index * 1000 - key) })),
  );
  return { keys, events: events.toSorted((a, b) => a.time.getTime() - b.time.getTime()) };
}

/** The promises about many records: odd ones hide no others, and every list has a bound. */
export function oddRecordsContract(damages: readonly Damage[], opened: () => OpenedStore, isWhole: boolean): void {
  const cases = Object.entries<OddCase>(ODD_CASES).map(([name, each]) => ({ name, ...each }));

  /** Calls a method until it has no more, and expects what it must find. */
  async function expectFound({ name, call, finds = ({ good }) => idsOf(good) }: (typeof cases)[number], leads: Leads) {
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

  // @proves limits-2
  describe('many records', () => {
    test('many unreadable leads before, between and after others hide none of them', async () => {
      const { store } = opened();
      await store.putStudio(aStudio(), BY);
      // Of one moment, so that only their ids tell them apart.
      const ofContact = (createdAt: Date) => aLead({ contact, stage: 'lost', createdAt });
      const first = ofContact(plus(NOW, -1));
      const odd = times(isWhole ? ODD : SOME_ODD, () => ofContact(NOW));
      const last = ofContact(NOW);
      await opened().makeLeads(first, ...odd, last);
      const unknownStage = damages.find(({ field }) => field === 'stage') as Damage;
      await opened().damage(unknownStage, ...odd);

      for (const each of cases.filter(({ arrange }) => !arrange)) {
        await expectFound(each, { store, good: [first, last], odd });
      }
    });

    test.each(cases.filter(({ arrange }) => arrange))('$name finds what is behind odd records', async (each) => {
      const { store } = opened();
      await store.putStudio(aStudio(), BY);
      await each.arrange?.(opened());

      await expectFound(each, { store, good: [aLead(), aLead()], odd: [] });
    });

    // @proves limits-4 bounds-145
    test.each(Object.entries(BOUNDS))('has a bound: %s', async (_, { bound, exceed, list }) => {
      const { store } = opened();
      await store.putStudio(aStudio(), BY);
      await exceed(opened());

      expect(await list(store)).toHaveLength(bound);
    });

    // @proves bounds-58
    test('of more events than are listed, those listed are the newest, newest first, whatever keys they are of', async () => {
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
