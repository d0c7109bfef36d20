import { setTimeout as sleep } from 'node:timers/promises';
import { Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type LeadChange,
  LeadChangeKind,
  LeadIntakeService,
  LeadStage,
} from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { newId } from '../../src/domain/new-id.ts';
import { times } from '../support/builders.ts';
import {
  aCreateLeadRequest,
  CORE_TOKEN,
  grpcCaller,
  refusalOf,
  startTestCore,
  type TestCore,
} from '../support/grpc.ts';

/** Longer than any test waits for changes. */
const LONG = { seconds: 20n, nanos: 0 };

let core: TestCore;
let studioId: string;

beforeEach(async () => {
  core = await startTestCore();
  studioId = await aStudio();
});
afterEach(() => core.stop());

function clientOf(transport: typeof createGrpcTransport = createGrpcTransport) {
  const options = {
    baseUrl: core.url,
    httpVersion: '2',
    interceptors: [
      (next) => (request) => {
        request.header.set('authorization', `Bearer ${CORE_TOKEN}`);
        return next(request);
      },
    ] satisfies Interceptor[],
  };
  return createClient(LeadIntakeService, transport(options));
}

async function aStudio(): Promise<string> {
  const caller = grpcCaller(`127.0.0.1:${core.port}`);
  const id = `studio-${newId()}`;
  await caller.call('DirectoryService/PutStudio', { studio: { id, status: 'STUDIO_STATUS_ACTIVE' } });
  caller.close();
  return id;
}

async function created(client = clientOf()): Promise<string> {
  const { contact, ...request } = aCreateLeadRequest(studioId) as { contact: { email: string } };
  const { lead } = await client.createLead({
    ...request,
    contact: { value: { case: 'email', value: contact.email } },
  });
  return lead?.id ?? '';
}

const idsOf = (changes: readonly LeadChange[]) => changes.map(({ lead }) => lead?.id);

const seen = (changes: readonly LeadChange[]) =>
  changes.map(({ lead, revision }) => ({ studioId: lead?.studioId ?? '', leadId: lead?.id ?? '', revision }));

describe('pulling changes', () => {
  test('returns whole leads, oldest first, until they are acknowledged', async () => {
    const client = clientOf();
    const ids = [await created(), await created(), await created()];

    const { changes } = await client.pullLeadChanges({ max: 2 });
    expect(idsOf(changes)).toEqual(ids.slice(0, 2));
    expect(changes[0]).toMatchObject({
      lead: { studioId, stage: LeadStage.NEW, contact: { value: { case: 'email' } } },
      firstChangeTime: changes[0]?.lead?.createTime,
      kinds: [{ kind: LeadChangeKind.CREATED, time: changes[0]?.lead?.createTime }],
    });

    expect(await client.acknowledgeLeadChanges({ acknowledgements: seen(changes) })).toMatchObject({
      acknowledgedCount: 2,
    });
    expect(await client.acknowledgeLeadChanges({ acknowledgements: seen(changes) })).toMatchObject({
      acknowledgedCount: 0,
    });
    expect(idsOf((await client.pullLeadChanges({})).changes)).toEqual(ids.slice(2));
  });

  test('waits for changes, including those of an older lead by another caller', async () => {
    const client = clientOf();
    const id = await created();
    await client.acknowledgeLeadChanges({ acknowledgements: seen((await client.pullLeadChanges({})).changes) });

    const [first, second] = [client.pullLeadChanges({ wait: LONG }), client.pullLeadChanges({ wait: LONG })];
    await client.changeLeadStage({ studioId, leadId: id, stage: LeadStage.WON });

    for (const { changes } of [await first, await second]) {
      expect(changes).toMatchObject([
        { lead: { id, stage: LeadStage.WON }, kinds: [{ kind: LeadChangeKind.STAGE_CHANGED }] },
      ]);
    }
  });

  test('returns none when there are none in the given time, and immediately without a time', async () => {
    const client = clientOf();
    expect((await client.pullLeadChanges({})).changes).toEqual([]);
    expect((await client.pullLeadChanges({ wait: { seconds: 0n, nanos: 1_500_000 } })).changes).toEqual([]);
    await expect(client.pullLeadChanges({ wait: { seconds: 0n, nanos: -1 } })).rejects.toMatchObject({
      code: Code.InvalidArgument,
    });
  });

  test('is refused for invalid numbers and times', async () => {
    const caller = grpcCaller(`127.0.0.1:${core.port}`);
    const refusal = await refusalOf(
      caller.call('LeadIntakeService/PullLeadChanges', { max: -1, wait: { seconds: -1, nanos: 0 } }),
    );
    expect(refusal).toMatchObject({ reason: 'INVALID_REQUEST', fields: ['max', 'wait'] });
    const acknowledgements = [{ studioId: 'a b', leadId: 'x', revision: -1 }];
    expect(
      await refusalOf(caller.call('LeadIntakeService/AcknowledgeLeadChanges', { acknowledgements })),
    ).toMatchObject({
      reason: 'INVALID_REQUEST',
      fields: ['acknowledgements[0].studioId', 'acknowledgements[0].leadId', 'acknowledgements[0].revision'],
    });
    const tooMany = times(501, () => ({ studioId, leadId: newId(), revision: 0 }));
    expect(
      await refusalOf(caller.call('LeadIntakeService/AcknowledgeLeadChanges', { acknowledgements: tooMany })),
    ).toMatchObject({ reason: 'INVALID_REQUEST', fields: ['acknowledgements'] });
    caller.close();
  });

  test('accepts the maximum number of acknowledgements, in JSON too', async () => {
    const client = clientOf(createConnectTransport as typeof createGrpcTransport);
    const acknowledgements = times(500, () => ({ studioId: 's'.repeat(64), leadId: newId(), revision: 2n ** 40n }));
    expect(await client.acknowledgeLeadChanges({ acknowledgements })).toMatchObject({ acknowledgedCount: 0 });
  });

  test('returns no changes, and no error, when the core stops', async () => {
    const pull = clientOf().pullLeadChanges({ wait: LONG });
    await sleep(200);
    await core.stop();

    expect(
      await pull.then(
        ({ changes }) => changes,
        (error) => error,
      ),
    ).toEqual([]);
    core = await startTestCore();
  });
});

describe('watching changes', () => {
  test.each([
    ['gRPC', createGrpcTransport],
    ['gRPC-Web', createGrpcWebTransport],
    ['Connect', createConnectTransport],
  ])('over %s, returns existing and new changes, each state once', async (_, transport) => {
    const client = clientOf(transport as typeof createGrpcTransport);
    const before = await created();
    const brought: LeadChange[] = [];
    const enough = new AbortController();
    const watching = (async () => {
      for await (const { changes } of client.watchLeadChanges({}, { signal: enough.signal })) brought.push(...changes);
    })().catch((error) => ConnectError.from(error).code);

    await expect.poll(() => idsOf(brought)).toEqual([before]);
    const after = await created();
    await expect.poll(() => idsOf(brought)).toEqual([before, after]);
    await client.changeLeadStage({ studioId, leadId: before, stage: LeadStage.CONTACTED });
    await expect.poll(() => idsOf(brought)).toEqual([before, after, before]);
    await client.acknowledgeLeadChanges({ acknowledgements: seen(brought) });
    const last = await created();

    await expect.poll(() => idsOf(brought)).toEqual([before, after, before, last]);
    expect(brought[2]?.kinds.map(({ kind }) => kind)).toEqual([LeadChangeKind.CREATED, LeadChangeKind.STAGE_CHANGED]);
    enough.abort();
    expect(await watching).toBe(Code.Canceled);
  });

  test('repeats unacknowledged changes on another call; two concurrent calls get the same', async () => {
    const id = await created();
    const [first, second] = times(2, () => clientOf().watchLeadChanges({})[Symbol.asyncIterator]());

    expect(idsOf((await first?.next())?.value.changes)).toEqual([id]);
    expect(idsOf((await second?.next())?.value.changes)).toEqual([id]);
    await first?.return?.();
    const third = clientOf().watchLeadChanges({})[Symbol.asyncIterator]();
    expect(idsOf((await third.next()).value.changes)).toEqual([id]);
  });

  test('returns at most 200 unacknowledged leads, and the others once these are acknowledged', async () => {
    const client = clientOf();
    for (const _ of times(25, () => 0)) await Promise.all(times(10, () => created(client)));
    const brought = new Map<string, LeadChange>();
    void (async () => {
      for await (const { changes } of client.watchLeadChanges({})) {
        expect(changes.length).toBeLessThanOrEqual(100);
        for (const change of changes) brought.set(change.lead?.id ?? '', change);
      }
    })().catch(() => {});

    await expect.poll(() => brought.size).toBe(200);
    const late = await created();
    await sleep(300);
    expect(brought.size).toBe(200);
    await client.acknowledgeLeadChanges({ acknowledgements: seen([...brought.values()]) });

    await expect.poll(() => brought.size).toBe(251);
    expect([...brought.keys()].at(-1)).toBe(late);
  }, 30_000);

  test('ends without an error when the core stops', async () => {
    const id = await created();
    const brought: LeadChange[] = [];
    const watching = (async () => {
      for await (const { changes } of clientOf().watchLeadChanges({})) brought.push(...changes);
      return 'ended';
    })();
    await expect.poll(() => idsOf(brought)).toEqual([id]);

    await core.stop();

    expect(await watching).toBe('ended');
    core = await startTestCore();
  });
});

describe('resending leads', () => {
  test('returns all leads of a studio, in pages, and no others', async () => {
    const client = clientOf();
    const ids = [await created(), await created()];
    await client.acknowledgeLeadChanges({ acknowledgements: seen((await client.pullLeadChanges({})).changes) });
    const other = await aStudio();

    expect(await client.resendLeads({ studioId: other })).toMatchObject({ leadCount: 0, nextPageToken: '' });
    expect(await client.resendLeads({ studioId })).toMatchObject({ leadCount: 2, nextPageToken: '' });

    const { changes } = await client.pullLeadChanges({});
    expect(new Set(idsOf(changes))).toEqual(new Set(ids));
    expect(changes.flatMap(({ kinds }) => kinds.map(({ kind }) => kind))).toEqual([
      LeadChangeKind.RESENT,
      LeadChangeKind.RESENT,
    ]);
  });

  test('is refused with a foreign page token', async () => {
    const caller = grpcCaller(`127.0.0.1:${core.port}`);
    const pageToken = 'A'.repeat(44);
    expect(await refusalOf(caller.call('LeadIntakeService/ResendLeads', { studioId: '', pageToken }))).toMatchObject({
      reason: 'INVALID_REQUEST',
      fields: ['studioId', 'pageToken'],
    });
    caller.close();
  });
});
