import type { Page } from '../store/port/page.ts';
import type { RecordStore } from '../store/store.ts';
import { eachStoredPage } from './requests.ts';

const PAGE = 100;

/** The number of leads that a search for erased ones examines at a time. */
const MAX_EXAMINED = 1000;

const ALL_TIMES = { start: new Date(0), end: new Date(8.64e15) };

/** Reads every record of the studios and of the deployment. Yields the number of readable ones since the last yield. */
export async function* everyRecord(store: RecordStore): AsyncGenerator<number> {
  for await (const { records } of eachStoredPage((after) => store.listStudios(after, PAGE))) {
    yield records.length;
    for (const { id } of records) yield* recordsOfStudio(store, id);
  }
  yield (await store.listConsumers()).length;
  for await (const { events } of eachStoredPage((after) => store.walkAuditEvents(ALL_TIMES, after))) {
    yield events.length;
  }
}

async function* recordsOfStudio(store: RecordStore, id: string): AsyncGenerator<number> {
  const keys = await store.listLiveApiKeys(id);
  yield keys.length;
  // The store cannot list members, and relies only on the issuers of live keys.
  const issuers = keys.flatMap(({ memberId }) => memberId || []);
  for (const memberId of new Set(issuers)) {
    yield (await store.findMember(id, memberId)) ? 1 : 0;
  }
  yield* counted((before) => store.listFormerApiKeys(id, before, PAGE));
  yield* counted((after) => store.listLeadSources(id, after, PAGE));
  yield* counted((after) => store.walkLeads(id, after, PAGE));
  for await (const { leads } of eachStoredPage((after) => store.walkErasedLeads(id, after, MAX_EXAMINED))) {
    yield leads.length;
  }
  yield* counted((before) => store.listRequests(id, before, PAGE));
}

async function* counted(read: (position: string | null) => Promise<Page<unknown>>): AsyncGenerator<number> {
  for await (const { records } of eachStoredPage(read)) yield records.length;
}
