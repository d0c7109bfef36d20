import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { MAX_RECORDED_REQUESTS, RECORDED_FIELDS } from '../../common/rules/request-log.ts';
import { newId, newIdAt, timeOfId } from '../../src/domain/new-id.ts';
import { type LoggedRequest, MAX_LOGGED_REQUESTS } from '../../src/domain/request-log.ts';
import type { Store } from '../../src/store/store.ts';
import {
  listRequests,
  type ReportedRequest,
  type RequestQuery,
  requestRecorder,
} from '../../src/usecases/request-log.ts';
import { retainLeads } from '../../src/usecases/retain-leads.ts';
import { emptyStudio } from '../../src/usecases/studios.ts';
import {
  aLead,
  aLoggedRequest,
  aStudio,
  BY,
  DAY_MS,
  keysFor,
  NOW,
  plus,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import { type Damage, type OpenedStore, tryEach } from './opened-store.ts';

/** A request as a gateway reports it. */
function reported(overrides: Partial<ReportedRequest> = {}): ReportedRequest {
  const { id: _, ...request } = aLoggedRequest();
  return { ...request, time: plus(NOW, -1000), ...overrides };
}

/** The promises of `RequestLogStore`, and of the use cases that record, list and remove by it. */
export function requestLogContract(damages: readonly Damage[], opened: () => OpenedStore): void {
  describe('the log of requests', () => {
    let store: Store;
    beforeEach(async () => {
      store = opened().store;
      await store.putStudio(aStudio(), BY);
    });
    const clock = () => NOW;
    const all = async (studioId = STUDIO_ID, from = store) => (await from.listRequests(studioId, null, 5000)).records;
    const recorder = () => requestRecorder({ store, clock });
    const batch = (...requests: ReportedRequest[]) => ({ batchId: randomUUID(), requests });
    const listed = async (query: Partial<RequestQuery> = {}) => {
      const whole = { studioId: STUDIO_ID, failed: false, pageSize: 0, pageToken: '', ...query };
      return (await listRequests({ store, clock }, whole)).requests;
    };
    const listIds = (requests: readonly LoggedRequest[]) => requests.map(({ requestId }) => requestId);

    // @proves requests-3 requests-1
    test('the request log has each request once, newest first, in its own studio', async () => {
      const requests = [
        ...times(5, () => aLoggedRequest()),
        aLoggedRequest({ faultyFields: RECORDED_FIELDS, leadId: newId(), omitted: 7 }),
        aLoggedRequest({ status: null, code: null }),
        aLoggedRequest({ status: 201, code: null, replayed: true, faultyFields: [] }),
      ];
      const [first = expect.fail()] = requests;
      const theirs = aLoggedRequest({ studioId: 'studio-2', id: newId() });
      await store.recordRequests([...requests.slice(0, 4), theirs]);
      await store.recordRequests([...requests.map((each) => ({ ...each, durationMs: 99 })), theirs]);
      const now = requests.map((each, index) => (index < 4 ? each : { ...each, durationMs: 99 })).toReversed();
      for (const open of [() => store, () => opened().another(), () => opened().reopen()]) {
        const from = await open();
        expect(await all(STUDIO_ID, from)).toEqual(now);
        expect(await all('studio-2', from)).toEqual([theirs]);
        expect(await all('studio', from)).toEqual([]);
        const page = await from.listRequests(STUDIO_ID, null, 3);
        expect(page).toEqual({ records: now.slice(0, 3), next: now[2]?.id, skipped: 0 });
        expect((await from.listRequests(STUDIO_ID, page.next, 100)).records).toEqual(now.slice(3));
        expect(await from.listRequests(STUDIO_ID, first.id, 100)).toEqual({ records: [], next: null, skipped: 0 });
      }
    });

    // @proves requests-9
    test('removing requests keeps the newest ones since a time, and those of other studios', async () => {
      const everyRequest = times(2, (index) => times(10, () => aLoggedRequest({ studioId: `studio-${index + 1}` })));
      const [own, others] = everyRequest.map((each) => each.toReversed()) as [LoggedRequest[], LoggedRequest[]];
      await store.recordRequests(everyRequest.flat());
      const lowest = newIdAt(new Date(0));
      for (const [newest, since, left] of [
        [10, lowest, 10],
        [8, lowest, 8],
        [8, own[5]?.id as string, 6],
        [3, own[5]?.id as string, 3],
      ] as const) {
        await store.removeRequests(STUDIO_ID, { newest, since });
        expect(await all()).toEqual(own.slice(0, left));
      }
      await store.removeRequests('studio', { newest: 1, since: newId() });
      await store.removeRequests(STUDIO_ID);
      expect(await all()).toEqual([]);
      expect(await all('studio-2')).toEqual(others);
    });

    // @proves limits-1
    test('unreadable requests are skipped, reported, and removed like the rest', () =>
      tryEach(opened(), damages, ['request'], async (damage, studioId) => {
        const requests = times(3, () => aLoggedRequest({ studioId }));
        const [oldest, bad, newest] = requests as [LoggedRequest, LoggedRequest, LoggedRequest];
        await store.recordRequests(requests);
        await opened().damage(damage, bad);
        expect(await store.listRequests(studioId, null, 10)).toMatchObject({ records: [newest, oldest], skipped: 1 });
        expect(opened().reported.filter(({ id }) => id === bad.id)).toMatchObject([{ kind: 'request', studioId }]);
        await store.removeRequests(studioId);
        expect(await store.listRequests(studioId, null, 10)).toEqual({ records: [], next: null, skipped: 0 });
      }));

    // @proves requests-3 requests-1
    test('records each reported request once, and skips entries that are invalid', async () => {
      const good = [
        reported({ requestId: 'oldest', time: plus(NOW, -DAY_MS) }),
        reported({ requestId: 'one' }),
        reported({ requestId: 'two', status: null, code: null }),
        reported({ requestId: 'ahead', time: plus(NOW, 3_600_000) }),
      ];
      const bad: Partial<ReportedRequest>[] = [
        { studioId: 'unknown' },
        { studioId: 'a b' },
        { time: undefined },
        { time: plus(NOW, -DAY_MS - 1) },
        { time: plus(NOW, 3_600_001) },
        { operation: 'toString' },
        { apiKeyId: '+49 30 1234567' },
        { secretHint: 'lik_secret' },
        { status: 42 },
        { code: 'Ada Lovelace' },
        { code: 'x'.repeat(65) },
        { faultyFields: ['ada@example.org'] },
        { requestId: 'Ada Lovelace' },
        { requestId: 'x'.repeat(129) },
        { leadId: 'ada@example.org' },
        { durationMs: -1 },
        { omitted: 1.5 },
      ];
      const record = recorder();
      const mixed = batch(...bad.map(reported), ...good);
      for (const _ of [1, 2]) expect(await record(mixed, undefined)).toBe(bad.length);
      expect(listIds(await listed())).toEqual(['ahead', 'two', 'one', 'oldest']);
      expect(timeOfId((await listed({ xRequestId: 'one' }))[0]?.id as string)).toEqual(plus(NOW, -1000));
      // This gateway serves only some studios.
      expect(await record(batch(reported()), new Set(['studio-2']))).toBe(1);
      for (const refused of [{ ...mixed, batchId: 'x' }, batch(...times(MAX_RECORDED_REQUESTS + 1, () => reported()))])
        await expect(record(refused, undefined)).rejects.toMatchObject({ reason: 'INVALID_REQUEST' });
      expect(await all()).toHaveLength(good.length);
    });

    // @proves requests-9 bounds-156 bounds-157
    test('keeps the newest thousand requests of a day and hardly more, whoever sent them', async () => {
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      const record = recorder();
      await record(batch(reported({ studioId: 'studio-2', requestId: 'theirs' })), undefined);
      for (const part of times(6, (index) => index)) {
        const requests = times(300, (index) =>
          reported({ requestId: `${part * 300 + index}`, time: plus(NOW, -10_000 + part * 300 + index) }),
        );
        await record(batch(...requests), undefined);
        const stored = await all();
        expect(stored.length).toBeLessThan(MAX_LOGGED_REQUESTS + 100);
        expect(listIds(stored)).toEqual(times(stored.length, (index) => `${part * 300 + 299 - index}`));
      }
      expect((await all()).length).toBeGreaterThanOrEqual(MAX_LOGGED_REQUESTS);
      expect(listIds(await all('studio-2'))).toEqual(['theirs']);
      // A day later.
      const later = () => plus(NOW, DAY_MS);
      expect((await listRequests({ store, clock: later }, aQuery('studio-2'))).requests).toEqual([]);
      const ending = new AbortController();
      const observer = { time() {}, processed() {}, erased() {}, failed: (error: unknown) => expect.fail(`${error}`) };
      const often = { lookMs: 0, idleMs: 0, leaseMs: 0, leadsPerLease: 0, restMs: 0, listMs: 0 };
      const retaining = retainLeads({ store, clock: later }, observer, ending.signal, often);
      await expect.poll(() => all('studio-2')).toEqual([]);
      ending.abort();
      await retaining;
    });

    // @proves requests-1 bounds-158
    test('lists requests in pages, by failure, request id and key', async () => {
      const [keyId, others] = [newId(), newId()];
      const requests = times(250, (index) =>
        aLoggedRequest({
          id: newIdAt(plus(NOW, -250_000 + index * 1000)),
          requestId: `r.${index % 50}`,
          apiKeyId: index % 2 ? keyId : others,
          ...(index % 5 === 1 && { status: 201, code: null }),
          ...(index % 5 === 2 && { status: null, code: null }),
        }),
      );
      await store.recordRequests(requests);
      const newestFirst = requests.toReversed();
      const pages: LoggedRequest[][] = [];
      for (let pageToken = ''; ; ) {
        const page = await listRequests({ store, clock }, aQuery(STUDIO_ID, { pageToken, pageSize: 1000 }));
        pages.push([...page.requests]);
        pageToken = page.nextPageToken;
        if (pageToken === '') break;
      }
      expect(pages.map(({ length }) => length)).toEqual([100, 100, 50]);
      expect(pages.flat()).toEqual(newestFirst);
      const failed = newestFirst.filter(({ status }) => status !== 201);
      expect(await listed({ failed: true })).toEqual(failed.slice(0, 100));
      const [some] = [await listRequests({ store, clock }, aQuery(STUDIO_ID, { failed: true, pageSize: 7 }))];
      const { nextPageToken: pageToken } = some;
      expect(await listed({ failed: true, pageToken })).toEqual(failed.slice(7, 107));
      expect(await listed({ xRequestId: 'r.3' })).toEqual(newestFirst.filter(({ requestId }) => requestId === 'r.3'));
      expect(await listed({ xRequestId: 'none' })).toEqual([]);
      const byKey = { apiKeyId: keyId.toUpperCase(), failed: true, xRequestId: 'r.7' };
      expect(await listed(byKey)).toEqual(newestFirst.filter(({ requestId }) => requestId === 'r.7'));
      for (const invalid of [{ studioId: 'a b' }, { xRequestId: 'a b' }, { apiKeyId: 'x' }, { pageSize: -1 }])
        await expect(listed(invalid)).rejects.toMatchObject({ reason: 'INVALID_REQUEST' });
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      await expect(listed({ studioId: 'studio-2', pageToken })).rejects.toMatchObject({ reason: 'INVALID_REQUEST' });
      await expect(listed({ studioId: 'none' })).rejects.toMatchObject({ reason: 'STUDIO_NOT_FOUND' });
    });

    // @proves requests-5
    test('names no erased or unknown lead, and logs nothing for emptied or ended studios', async () => {
      await store.putStudio(aStudio({ id: 'trial', isTest: true }), BY);
      const [kept, erased] = [aLead(), aLead()];
      for (const lead of [kept, erased]) await store.createLead(lead, keysFor(lead));
      const record = recorder();
      const of = (leadId: string, studioId = STUDIO_ID) =>
        batch(reported({ status: 201, code: null, leadId, studioId, requestId: leadId }));
      for (const leadId of [kept.id, erased.id, newId()]) await record(of(leadId), undefined);
      const leadIds = async () => (await listed()).map(({ leadId }) => leadId).filter((id) => id !== null);
      expect((await leadIds()).toSorted()).toEqual([kept.id, erased.id].toSorted());
      await store.eraseLead({ studioId: STUDIO_ID, leadId: erased.id, ...BY });
      // A gateway reports it late.
      await record(of(erased.id), undefined);
      expect(await leadIds()).toEqual([kept.id]);
      expect(await listed()).toHaveLength(4);

      await record(of(newId(), 'trial'), undefined);
      await emptyStudio({ store, clock }, { studioId: 'trial', caller: null, callId: null });
      expect(await all('trial')).toEqual([]);
      await store.endStudio(STUDIO_ID, BY);
      expect(await record(of(kept.id), undefined)).toBe(1);
      expect(await all()).toHaveLength(4);
    });
  });
}

const aQuery = (studioId: string, query: Partial<RequestQuery> = {}): RequestQuery => ({
  studioId,
  failed: false,
  pageSize: 0,
  pageToken: '',
  ...query,
});
