import { setTimeout as sleep } from 'node:timers/promises';
import { Code } from '@connectrpc/connect';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { newCoreToken } from '../../common/rules/key-secret.ts';
import { ConsumerStart } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { type LeadChange, LeadChangeKind, LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { CallerRole } from '../../src/domain/caller.ts';
import { MAX_CONSUMERS, MAX_STUDIOS_OF_CONSUMER } from '../../src/domain/consumer.ts';
import { times } from '../support/builders.ts';
import { type CoreClients, connectToCore } from '../support/core-clients.ts';
import {
  aCreateLeadRequest,
  CORE_TOKEN,
  type GrpcCaller,
  grpcCaller,
  startTestCore,
  type TestCore,
} from '../support/grpc.ts';
import { aFileOf, entry } from './a-callers-file.ts';

/** Longer than any test waits for changes. */
const LONG = { seconds: 20n, nanos: 0 };

const { NOW, ALL_LEADS } = ConsumerStart;

let core: TestCore;
let caller: GrpcCaller;
let crm: CoreClients;
const file = () => aFileOf({});
let callers: ReturnType<typeof file>;

beforeEach(async () => {
  callers = file();
  core = await startTestCore({ CORE_CALLERS_FILE: callers.path });
  caller = grpcCaller(`127.0.0.1:${core.port}`);
  crm = connectToCore(core.url, CORE_TOKEN);
  for (const id of ['one', 'two'])
    await caller.call('DirectoryService/PutStudio', { studio: { id, status: 'STUDIO_STATUS_ACTIVE' } });
  return async () => {
    crm.close();
    caller.close();
    await core.stop();
  };
});

/** Connects with a token of its own. */
async function connectAs(may: readonly CallerRole[], limits: { studios?: string[]; consumers?: string[] }) {
  const token = newCoreToken();
  callers.put({ it: { ...entry(token, may), ...limits } });
  const client = connectToCore(core.url, token);
  onTestFinished(() => client.close());
  await expect.poll(() => codeOf(client.leads.pullLeadChanges({ consumer: 'nobody' }))).not.toBe(Code.Unauthenticated);
  return client;
}

async function created(studioId = 'one'): Promise<string> {
  const { lead } = await caller.call<{ lead: { id: string } }>(
    'LeadIntakeService/CreateLead',
    aCreateLeadRequest(studioId),
  );
  return lead.id;
}

const create = (name: string, start: ConsumerStart = NOW, studioIds: string[] = []) =>
  crm.consumers.createConsumer({ consumer: { name, studioIds, allStudios: studioIds.length === 0 }, start });

const pulled = async (consumer: string, { leads } = crm) =>
  (await leads.pullLeadChanges({ max: 100, consumer })).changes;
const idsOf = (changes: readonly LeadChange[]) => changes.map(({ lead }) => lead?.id).toSorted();

const acknowledge = async (consumer: string, changes: readonly LeadChange[], { leads } = crm) => {
  const acknowledgements = changes.map(({ lead, revision }) => ({
    studioId: lead?.studioId ?? '',
    leadId: lead?.id ?? '',
    revision,
  }));
  return (await leads.acknowledgeLeadChanges({ acknowledgements, consumer })).acknowledgedCount;
};

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    ({ code }) => code as Code,
  );

// @proves feed-8
describe('a named consumer', () => {
  test('pulls, waits and acknowledges for itself', async () => {
    const before = await created();
    await create('relay');
    expect(await pulled('relay')).toEqual([]);
    const waiting = crm.leads.pullLeadChanges({ wait: LONG, consumer: 'relay' });
    const id = await created();

    const { changes } = await waiting;
    expect(idsOf(changes)).toEqual([id]);
    expect(await acknowledge('relay', changes)).toBe(1);
    expect(await pulled('relay')).toEqual([]);
    expect(idsOf(await pulled(''))).toEqual([before, id].toSorted());
  });

  test('watches, each state once, until it is removed', async () => {
    await create('relay');
    const received: LeadChange[] = [];
    const ended = (async () => {
      for await (const { changes } of crm.leads.watchLeadChanges({ consumer: 'relay' })) received.push(...changes);
    })();
    // It may end before it is awaited.
    ended.catch(() => {});
    const leadId = await created();
    await expect.poll(() => idsOf(received)).toEqual([leadId]);
    await crm.leads.changeLeadStage({ studioId: 'one', leadId, stage: LeadStage.WON });
    await expect.poll(() => received.length).toBe(2);
    expect(await crm.consumers.removeConsumer({ consumer: 'relay' })).toMatchObject({ removed: true });
    expect(await codeOf(ended)).toBe(Code.NotFound);
    expect(await crm.consumers.removeConsumer({ consumer: 'relay' })).toMatchObject({ removed: false });
  });

  test('that begins with all leads is sent those of all its studios, as it acknowledges others', async () => {
    const ids = await Promise.all([...times(210, () => created('one')), ...times(3, () => created('two'))]);
    await acknowledge('', await pulled(''));
    const { consumer } = await create('relay', ALL_LEADS);
    expect(consumer?.isBackfilling).toBe(true);
    await create('of-two', ALL_LEADS, ['two', 'two', 'none']);
    expect(idsOf(await pulled('of-two'))).toHaveLength(3);

    const found = new Set<string | undefined>();
    for (let changes = await pulled('relay'); changes.length > 0; changes = await pulled('relay')) {
      for (const { lead } of changes) found.add(lead?.id);
      await acknowledge('relay', changes);
    }
    expect([...found].toSorted()).toEqual(ids.toSorted());
    const { consumers } = await crm.consumers.listConsumers({});
    expect(consumers).toMatchObject([
      { name: 'relay', allStudios: true, studioIds: [], waiting: { leadCount: 0 }, isBackfilling: false },
      { name: 'of-two', allStudios: false, studioIds: ['none', 'two'], waiting: { leadCount: 3, isLowerBound: false } },
    ]);
    expect(consumers[1]?.waiting?.oldestTime).toBeDefined();
  });

  test('is sent leads again at their revisions, and no other consumer is', async () => {
    await create('relay');
    const ids = [await created(), await created('two')];
    const before = await pulled('relay');
    await acknowledge('relay', before);
    await acknowledge('', await pulled(''));
    expect(await crm.leads.resendLeads({ studioId: 'one', consumer: 'relay' })).toMatchObject({ nextPageToken: '' });

    const again = await pulled('relay');
    expect(idsOf(again)).toEqual(ids.slice(0, 1));
    expect(again[0]).toMatchObject({
      revision: before.find(({ lead }) => lead?.id === ids[0])?.revision,
      kinds: [{ kind: LeadChangeKind.RESENT }],
    });
    expect(await pulled('')).toEqual([]);
  });

  test('is not sent leads again of a studio that is not its own', async () => {
    await create('relay', NOW, ['one']);
    for (const studioId of ['two', 'none'])
      expect(await codeOf(crm.leads.resendLeads({ studioId, consumer: 'relay' }))).toBe(Code.InvalidArgument);
    expect((await crm.consumers.listConsumers({})).consumers[0]?.isBackfilling).toBe(false);
  });

  test('that does not exist is not found, whatever is asked for it', async () => {
    for (const call of [
      () => pulled('relay'),
      () => acknowledge('relay', []),
      () => crm.leads.resendLeads({ studioId: 'one', consumer: 'relay' }),
      async () => {
        for await (const _ of crm.leads.watchLeadChanges({ consumer: 'relay' }));
      },
    ])
      expect(await codeOf(call())).toBe(Code.NotFound);
  });

  // @proves bounds-66
  test('has a name of its own, a bounded number of studios, and few beside it', async () => {
    await create('relay', NOW, ['one']);
    expect((await create('relay', NOW, ['one'])).consumer?.name).toBe('relay');
    expect(await codeOf(create('relay', NOW))).toBe(Code.AlreadyExists);
    const many = times(MAX_STUDIOS_OF_CONSUMER + 1, (index) => `studio-${index}`);
    expect(await codeOf(create('many', NOW, many))).toBe(Code.InvalidArgument);
    await create('many', NOW, many.slice(1));
    for (const index of times(MAX_CONSUMERS - 2, (each) => each)) await create(`consumer-${index}`);
    expect(await codeOf(create('one-more'))).toBe(Code.FailedPrecondition);
    await crm.consumers.removeConsumer({ consumer: 'many' });
    await create('one-more');
  });
});

// @proves secrets-1
describe('a caller that may feed', () => {
  test('pulls and acknowledges for its own consumers, and does nothing else', async () => {
    await create('relay');
    await create('reporting');
    const id = await created();
    const relay = await connectAs(['feed'], { consumers: ['relay'] });

    expect(idsOf(await pulled('relay', relay))).toEqual([id]);
    expect(await acknowledge('relay', await pulled('relay', relay), relay)).toBe(1);
    expect((await relay.consumers.listConsumers({})).consumers.map(({ name }) => name)).toEqual(['relay']);
    for (const consumer of ['', 'reporting']) {
      expect(await codeOf(pulled(consumer, relay))).toBe(Code.PermissionDenied);
      expect(await codeOf(acknowledge(consumer, [], relay))).toBe(Code.PermissionDenied);
      expect(await codeOf(relay.leads.resendLeads({ studioId: 'one', consumer }))).toBe(Code.PermissionDenied);
    }
    expect(idsOf(await pulled('reporting'))).toEqual([id]);
  });

  test('of some studios has consumers of these only', async () => {
    await create('own', NOW, ['one']);
    await create('others', NOW, ['one', 'two']);
    await create('all');
    const id = await created();
    const branch = await connectAs(['feed'], { studios: ['one'], consumers: ['own', 'others', 'all'] });
    expect(idsOf(await pulled('own', branch))).toEqual([id]);
    for (const consumer of ['others', 'all', '']) {
      expect(await codeOf(pulled(consumer, branch))).toBe(Code.PermissionDenied);
      expect(await codeOf(acknowledge(consumer, [], branch))).toBe(Code.PermissionDenied);
    }
    expect(await codeOf(branch.leads.resendLeads({ studioId: 'two', consumer: 'own' }))).toBe(Code.PermissionDenied);
    expect((await branch.consumers.listConsumers({})).consumers.map(({ name }) => name)).toEqual(['own']);
  });

  test('and is of the CRM of some studios, manages consumers of these only', async () => {
    await create('others', NOW, ['two']);
    const branch = await connectAs(['crm'], { studios: ['one'] });
    const own = { name: 'own', studioIds: ['one'] };
    await branch.consumers.createConsumer({ consumer: own, start: NOW });
    for (const consumer of [
      { ...own, name: 'more', studioIds: ['one', 'two'] },
      { name: 'all', allStudios: true },
    ])
      expect(await codeOf(branch.consumers.createConsumer({ consumer, start: NOW }))).toBe(Code.PermissionDenied);
    expect(await codeOf(branch.consumers.removeConsumer({ consumer: 'others' }))).toBe(Code.PermissionDenied);
    expect(await branch.consumers.removeConsumer({ consumer: 'own' })).toMatchObject({ removed: true });
  });

  test('loses a watch with its consumer', async () => {
    await create('relay');
    const relay = await connectAs(['feed'], { consumers: ['relay'] });
    const ended = (async () => {
      for await (const _ of relay.leads.watchLeadChanges({ consumer: 'relay' }));
    })();
    await sleep(100);
    callers.put({});
    await ended;
    expect(await codeOf(pulled('relay', relay))).toBe(Code.Unauthenticated);
  });
});
