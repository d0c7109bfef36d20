import { setTimeout as sleep } from 'node:timers/promises';
import { Code, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  type LeadChange,
  LeadChangeKind,
  LeadIntakeService,
  LeadStage,
} from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { times } from '../support/builders.ts';
import { aCreateLeadRequest, type GrpcCaller, grpcCaller, startTestCore, type TestCore } from '../support/grpc.ts';
import { putStudio } from '../support/grpc-studios.ts';
import { scrape } from '../support/metrics.ts';
import { withToken } from './transports.ts';

/** The maximum number of changes in a message of a watch. */
const MAX_CHANGES_IN_A_MESSAGE = 100;

/** Longer than any test waits for changes. */
const LONG = { seconds: 20n, nanos: 0 };

let core: TestCore;
let caller: GrpcCaller;
let studioId: string;

beforeEach(async () => {
  core = await startTestCore({ CORE_METRICS_ADDRESS: '127.0.0.1:0' });
  caller = grpcCaller(`127.0.0.1:${core.port}`);
  studioId = await putStudio(caller);
  return async () => {
    caller.close();
    await core.stop();
  };
});

const clientOf = () =>
  createClient(LeadIntakeService, createGrpcTransport({ baseUrl: core.url, interceptors: [withToken] }));

async function created(client = clientOf()): Promise<string> {
  const { contact, ...request } = aCreateLeadRequest(studioId) as { contact: { email: string } };
  const { lead } = await client.createLead({
    ...request,
    contact: { value: { case: 'email', value: contact.email } },
  });
  return lead?.id ?? '';
}

const idsOf = (changes: readonly LeadChange[]) => changes.map(({ lead }) => lead?.id);

const acknowledge = (changes: readonly LeadChange[], client = clientOf()) =>
  client.acknowledgeLeadChanges({
    acknowledgements: changes.map(({ lead, revision }) => ({
      studioId: lead?.studioId ?? '',
      leadId: lead?.id ?? '',
      revision,
    })),
  });

/** Watches changes; returns those received so far, and `ended`, which resolves when the call ends without an error. */
function watch(client = clientOf(), signal?: AbortSignal) {
  const received: LeadChange[] = [];
  const ended = (async () => {
    for await (const { changes } of client.watchLeadChanges({}, signal && { signal })) {
      expect(changes.length).toBeLessThanOrEqual(MAX_CHANGES_IN_A_MESSAGE);
      received.push(...changes);
    }
  })();
  // Not every test awaits the end.
  ended.catch(() => {});
  return { received, ended };
}

// @proves feed-5
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

    expect(await acknowledge(changes)).toMatchObject({ acknowledgedCount: 2 });
    expect(await acknowledge(changes)).toMatchObject({ acknowledgedCount: 0 });
    expect(idsOf((await client.pullLeadChanges({})).changes)).toEqual(ids.slice(2));
  });

  test('waits for changes, including those of an older lead by another caller', async () => {
    const client = clientOf();
    const id = await created();
    await acknowledge((await client.pullLeadChanges({})).changes);

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

  // @proves bounds-53
  test('returns no changes, and no error, when the core stops', async () => {
    const pull = expect(clientOf().pullLeadChanges({ wait: LONG })).resolves.toMatchObject({ changes: [] });
    const underWay = async () => (await scrape(core.metricsUrl)).get('lead_intake_core_calls_under_way');
    await expect.poll(underWay).toBe(1);
    await core.stop();

    await pull;
  });
});

// @proves feed-5
describe('watching changes', () => {
  test('returns existing and new changes, each state once', async () => {
    const client = clientOf();
    const before = await created();
    const cancellation = new AbortController();
    const { received, ended } = watch(client, cancellation.signal);

    await expect.poll(() => idsOf(received)).toEqual([before]);
    const after = await created();
    await expect.poll(() => idsOf(received)).toEqual([before, after]);
    await client.changeLeadStage({ studioId, leadId: before, stage: LeadStage.CONTACTED });
    await expect.poll(() => idsOf(received)).toEqual([before, after, before]);
    await acknowledge(received, client);
    const last = await created();

    await expect.poll(() => idsOf(received)).toEqual([before, after, before, last]);
    expect(received[2]?.kinds.map(({ kind }) => kind)).toEqual([LeadChangeKind.CREATED, LeadChangeKind.STAGE_CHANGED]);
    cancellation.abort();
    await expect(ended).rejects.toMatchObject({ code: Code.Canceled });
  });

  // @proves bounds-51
  test('returns at most 200 unacknowledged leads, and the others once these are acknowledged', async () => {
    const client = clientOf();
    for (const _ of times(25, () => 0)) await Promise.all(times(10, () => created(client)));
    const { received } = watch(client);

    await expect.poll(() => received.length).toBe(200);
    const late = await created();
    await sleep(300);
    expect(received.length).toBe(200);
    await acknowledge(received);

    await expect.poll(() => received.length).toBe(251);
    expect(new Set(idsOf(received)).size).toBe(251);
    expect(received.at(-1)?.lead?.id).toBe(late);
  });

  test('ends without an error when the core stops', async () => {
    const id = await created();
    const { received, ended } = watch();
    await expect.poll(() => idsOf(received)).toEqual([id]);

    await core.stop();

    await expect(ended).resolves.toBeUndefined();
  });
});
