import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { Code, ConnectError } from '@connectrpc/connect';
import pino from 'pino';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { STUDIO_ENDS_MS } from '../../common/deadlines.ts';
import { hashKeySecret } from '../../common/rules/key-secret.ts';
import { BadRequestSchema, ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import type { RefusalReason } from '../../proto/gen/leadintake/v1/refusal_pb.ts';
import { createCoreMetrics } from '../../src/rpc/metrics.ts';
import { callRunner } from '../../src/rpc/run-call.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../src/store/store.ts';
import { EndedStudios, examineStudio } from '../../src/usecases/erase-studio.ts';
import {
  aLead,
  aLeadSource,
  aLoggedRequest,
  aMember,
  anApiKey,
  aStudio,
  BY,
  keysFor,
  plus,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import { type CoreClients, connectToCore } from '../support/core-clients.ts';
import { CORE_TOKEN } from '../support/grpc.ts';
import { temporaryFolder } from '../tools/processes.ts';
import { aCoreOn } from './a-core.ts';

const studioId = STUDIO_ID;
const NOTHING = { erasedLeadCount: 0n, revokedKeyCount: 0, removedMemberCount: 0, removedSourceCount: 0 };

let store: Store;
let crm: CoreClients;
/** The core's clock. */
let now: Date;
/** The time passed on the monotonic clock; milliseconds. */
let passedMs: number;
const monotonicMs = performance.now.bind(performance);

beforeEach(async () => {
  store = openSqliteStore(join(temporaryFolder(), 'leads.db'));
  now = new Date();
  passedMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => monotonicMs() + passedMs);
  const core = await aCoreOn(store, callRunner(pino({ level: 'silent' }), createCoreMetrics()), () => now);
  crm = connectToCore(core.url, CORE_TOKEN);
  for (const id of [studioId, 'two']) await store.putStudio(aStudio({ id }), BY);
  return async () => {
    crm.close();
    core.close();
    await core.stop();
    await store.close();
    vi.restoreAllMocks();
  };
});

const findRefusal = (call: Promise<unknown>) => call.then(() => expect.fail('it is not refused'), ConnectError.from);
const findReason = async (call: Promise<unknown>) => (await findRefusal(call)).findDetails(ErrorInfoSchema)[0]?.reason;
const ENDED = 'STUDIO_ENDED' satisfies keyof typeof RefusalReason;

const erase = (pageToken = '', id: string = studioId) =>
  crm.directory.eraseStudio({ studioId: id, confirmStudioId: id, pageToken, memberId: 'boss' });

/** Calls until everything is erased, and returns the sum of the reports. */
async function eraseAll(pageToken = '') {
  const sum = { leads: 0, skipped: 0, keys: 0, members: 0, sources: 0 };
  for (let token = pageToken; ; ) {
    const part = await erase(token);
    sum.leads += Number(part.erasedLeadCount);
    sum.skipped += part.skippedLeadCount;
    sum.keys += part.revokedKeyCount;
    sum.members += part.removedMemberCount;
    sum.sources += part.removedSourceCount;
    token = part.nextPageToken;
    if (token === '') return sum;
    passedMs += STUDIO_ENDS_MS;
  }
}

async function created(count: number, of: string = studioId) {
  const leads = times(count, () => aLead({ studioId: of }));
  await Promise.all(leads.map((lead) => store.createLead(lead, keysFor(lead))));
  return leads;
}

const findStatus = async () => (await crm.directory.getStudio({ studioId })).studio?.status;

// @proves erasure-6 requests-5
describe('EraseStudio', () => {
  // @proves bounds-111
  test("EraseStudio ends a studio and its keys at once, and erases all its data but no other's", async () => {
    const leads = await created(450);
    const [theirs] = await created(1, 'two');
    for (const id of ['owner', 'other']) await store.putMember(aMember({ id }), BY);
    await store.putLeadSource(aLeadSource(), BY);
    const secret = 'x';
    const key = anApiKey({ secretSha256: hashKeySecret(secret), memberId: 'owner', expiresAt: plus(now, 1e9) });
    await store.createApiKey(key, now);

    await store.recordRequests([aLoggedRequest(), aLoggedRequest({ studioId: 'two' })]);

    const first = await erase();
    expect(first).toMatchObject({ ...NOTHING, revokedKeyCount: 1, removedMemberCount: 2, removedSourceCount: 1 });
    expect(first.nextPageToken).not.toBe('');
    expect(await findStatus()).toBe(StudioStatus.ENDED);
    const secretSha256 = hashKeySecret(secret);
    expect(await findReason(crm.apiKeys.authenticateApiKey({ secretSha256 }))).toBe('KEY_INVALID');
    expect(await store.findMember(studioId, 'owner')).toBeNull();

    passedMs += STUDIO_ENDS_MS;
    expect(await erase(first.nextPageToken)).toMatchObject({ ...NOTHING, erasedLeadCount: 200n });
    expect(await eraseAll(first.nextPageToken)).toEqual({ leads: 250, skipped: 0, keys: 0, members: 0, sources: 0 });
    expect(await crm.leads.listLeads({ studioId })).toMatchObject({ leads: [] });
    expect((await store.walkErasedLeads(studioId, null, 1000)).leads).toHaveLength(450);
    const { changes } = await crm.leads.pullLeadChanges({ max: 100 });
    expect(changes.filter(({ lead }) => lead?.studioId === studioId).every(({ lead }) => lead?.eraseTime)).toBe(true);
    const { events } = await crm.audit.listAuditEvents({ studioId, leadId: leads[0]?.id ?? '' });
    expect(events).toMatchObject([{ memberId: 'boss' }]);
    expect((await crm.requestLog.listRequests({ studioId })).requests).toEqual([]);
    expect((await store.listRequests('two', null, 10)).records).toHaveLength(1);
    // Starting again finds nothing left.
    expect(await eraseAll()).toEqual({ leads: 0, skipped: 0, keys: 0, members: 0, sources: 0 });
    expect(await store.findLead('two', theirs?.id ?? '')).toEqual(theirs);
    expect(await store.findStudio('two')).toEqual(aStudio({ id: 'two' }));
  });

  // @proves bounds-110 erasure-6
  test('EraseStudio completes only after late writes can have ended, whatever clocks show', async () => {
    const { nextPageToken: token } = await erase();
    // A creation that read the studio before it ended.
    const [late] = await created(1);
    now = plus(now, 3_600_000);
    passedMs = STUDIO_ENDS_MS - 1500;
    const waiting = await erase(token);
    expect(waiting).toMatchObject({ ...NOTHING, nextPageToken: token });
    const [later] = await created(1);
    await store.createApiKey(anApiKey({ expiresAt: plus(now, 1e9) }), now);
    passedMs = STUDIO_ENDS_MS;
    now = plus(now, -7_200_000);
    expect(await erase(token)).toMatchObject({ erasedLeadCount: 2n, revokedKeyCount: 1, nextPageToken: '' });
    for (const lead of [late, later]) expect(await store.findLead(studioId, lead?.id ?? '')).toBeNull();
  });

  // @proves erasure-6
  test('EraseStudio waits at each core from the moment that core learns that the studio ended', async () => {
    const { nextPageToken: token } = await erase();
    passedMs += STUDIO_ENDS_MS;
    const run = callRunner(pino({ level: 'silent' }), createCoreMetrics());
    const other = await aCoreOn(store, run, () => plus(now, 3_600_000));
    const { directory, close } = connectToCore(other.url, CORE_TOKEN);
    onTestFinished(async () => {
      close();
      other.close();
      await other.stop();
    });
    const eraseThere = () => directory.eraseStudio({ studioId, confirmStudioId: studioId, pageToken: token });
    expect(await eraseThere()).toMatchObject({ ...NOTHING, nextPageToken: token });
    passedMs += STUDIO_ENDS_MS;
    expect(await eraseThere()).toMatchObject({ ...NOTHING, nextPageToken: '' });
  });

  // @proves bounds-140
  test('EraseStudio waits again for a studio whose end the core has forgotten', () => {
    const known = new EndedStudios();
    expect(known.knownMs('first')).toBe(0);
    passedMs += STUDIO_ENDS_MS;
    for (const index of times(99, (each) => each)) known.knownMs(`studio-${index}`);
    expect(known.knownMs('first')).toBeGreaterThanOrEqual(STUDIO_ENDS_MS);
    known.knownMs('one-more');
    expect(known.knownMs('first')).toBe(0);
  });

  test('an ended studio refuses every creation and change', async () => {
    await store.putMember(aMember({ id: 'owner' }), BY);
    await erase();
    const contact = { value: { case: 'email', value: 'ada@example.org' } } as const;
    const lead = { displayName: 'Ada', idempotencyKey: randomUUID(), contact };
    const expireTime = { seconds: BigInt(Math.trunc(now.getTime() / 1000) + 86_400) };
    const calls = [
      crm.leads.createLead({ studioId, ...lead }),
      crm.leads.importLeads({ studioId, leads: [lead] }),
      crm.directory.putStudio({ studio: { id: studioId, status: StudioStatus.ACTIVE } }),
      crm.directory.putStudio({ studio: { id: studioId, quotaLimit: 5 } }),
      crm.directory.putMember({ member: { studioId, id: 'owner', role: 1 } }),
      crm.directory.putLeadSource({ leadSource: { studioId, id: randomUUID(), name: 'Form', enabled: true } }),
      crm.apiKeys.createApiKey({ studioId, memberId: 'owner', name: 'Site', scopes: [1], expireTime }),
      crm.apiKeys.replaceApiKey({ studioId, memberId: 'owner', apiKeyId: randomUUID() }),
    ];
    expect(new Set(await Promise.all(calls.map(findReason)))).toEqual(new Set([ENDED]));
    expect(await findStatus()).toBe(StudioStatus.ENDED);
    for (const id of [studioId, 'two', 'new']) {
      const put = crm.directory.putStudio({ studio: { id, status: StudioStatus.ENDED } });
      expect(await findRefusal(put)).toMatchObject({ code: Code.InvalidArgument });
    }
  });

  test('EraseStudio refuses invalid requests and tokens of another studio', async () => {
    const findFaults = async (request: object) =>
      (await findRefusal(crm.directory.eraseStudio({ studioId, confirmStudioId: studioId, ...request })))
        .findDetails(BadRequestSchema)
        .flatMap(({ fieldViolations }) => fieldViolations.map(({ field }) => field));
    for (const confirmStudioId of ['', 'two', studioId.toUpperCase(), `${studioId} `])
      expect(await findFaults({ confirmStudioId })).toEqual(['studioId', 'confirmStudioId']);
    const { nextPageToken: theirs } = await erase('', 'two');
    for (const pageToken of ['x', theirs]) expect(await findFaults({ pageToken })).toEqual(['pageToken']);
    const examined = await examineStudio({ store }, 'a b').catch(({ faults }) => faults);
    expect(examined).toEqual([{ field: 'studioId', message: expect.any(String) }]);
    expect(await findReason(erase('', 'none'))).toBe('STUDIO_NOT_FOUND');
    expect(await findStatus()).toBe(StudioStatus.ACTIVE);
  });
});
