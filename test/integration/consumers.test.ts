import { timestampFromDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { MAX_CONSUMERS } from '../../common/rules/field-rules.ts';
import { newCoreToken } from '../../common/rules/key-secret.ts';
import { ConsumerStart } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { type LeadChange, LeadChangeKind, LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { CallerRole } from '../../src/domain/caller.ts';
import { MAX_STUDIOS_OF_CONSUMER } from '../../src/domain/consumer.ts';
import { newId } from '../../src/domain/new-id.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { MAX_LEADS_PER_POLL } from '../../src/usecases/change-feed.ts';
import { aLead, BY, keysFor, times } from '../support/builders.ts';
import { type CoreClients, connectToCore } from '../support/core-clients.ts';
import {
  aCreateLeadRequest,
  CORE_TOKEN,
  type GrpcCaller,
  grpcCaller,
  startTestCore,
  type TestCore,
} from '../support/grpc.ts';
import { scrape } from '../support/metrics.ts';
import { entry, writeCallersFile } from './a-callers-file.ts';

const { NOW, ALL_LEADS } = ConsumerStart;

let core: TestCore;
let caller: GrpcCaller;
let crm: CoreClients;
const file = () => writeCallersFile({});
let callers: ReturnType<typeof file>;

beforeEach(async () => {
  callers = file();
  core = await startTestCore({ CORE_CALLERS_FILE: callers.path, CORE_METRICS_ADDRESS: '127.0.0.1:0' });
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

/** Connects with its own token. */
async function connectAs(may: readonly CallerRole[], limits: { studios?: string[]; consumers?: string[] }) {
  const token = newCoreToken();
  callers.put({ it: { ...entry(token, may), ...limits } });
  const client = connectToCore(core.url, token);
  onTestFinished(() => client.close());
  // Waits until the file is loaded. A call that takes too long has another code.
  const known = expect.poll(() => findCode(client.leads.pullLeadChanges({ consumer: 'nobody' })));
  await known.toBeOneOf([Code.PermissionDenied, Code.NotFound]);
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
const listIds = (changes: readonly LeadChange[]) => changes.map(({ lead }) => lead?.id).toSorted();

const acknowledge = async (consumer: string, changes: readonly LeadChange[], { leads } = crm) => {
  const acknowledgements = changes.map(({ lead, revision }) => ({
    studioId: lead?.studioId ?? '',
    leadId: lead?.id ?? '',
    revision,
  }));
  return (await leads.acknowledgeLeadChanges({ acknowledgements, consumer })).acknowledgedCount;
};

const findCode = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    ({ code }) => code as Code,
  );

/** Watches changes; returns those received so far, and a promise that settles when the call ends. */
function watch(consumer = '', signal = new AbortController().signal) {
  const received: LeadChange[] = [];
  const ended = (async () => {
    for await (const { changes } of crm.leads.watchLeadChanges({ consumer }, { signal })) received.push(...changes);
  })();
  // Not every test awaits the end.
  ended.catch(() => {});
  return { received, ended };
}

// @proves feed-5
describe('the consumer without a name', () => {
  /** Longer than any test waits for changes. */
  const wait = { seconds: 20n, nanos: 0 };

  test('the default consumer pulls whole leads, oldest first, until they are acknowledged', async () => {
    const ids = [await created(), await created(), await created()];

    const { changes } = await crm.leads.pullLeadChanges({ max: 2 });
    expect(changes.map(({ lead }) => lead?.id)).toEqual(ids.slice(0, 2));
    expect(changes[0]).toMatchObject({
      lead: { studioId: 'one', stage: LeadStage.NEW, contact: { value: { case: 'email' } } },
      firstChangeTime: changes[0]?.lead?.createTime,
      kinds: [{ kind: LeadChangeKind.CREATED, time: changes[0]?.lead?.createTime }],
    });

    expect(await acknowledge('', changes)).toBe(2);
    expect(await acknowledge('', changes)).toBe(0);
    expect(listIds(await pulled(''))).toEqual(ids.slice(2));
  });

  test('a pull waits for changes, and returns none if there are none in the given time', async () => {
    const id = await created();
    await acknowledge('', await pulled(''));
    expect((await crm.leads.pullLeadChanges({ wait: { seconds: 0n, nanos: 1_500_000 } })).changes).toEqual([]);

    const pulls = [crm.leads.pullLeadChanges({ wait }), crm.leads.pullLeadChanges({ wait })];
    await crm.leads.changeLeadStage({ studioId: 'one', leadId: id, stage: LeadStage.WON });

    for (const { changes } of await Promise.all(pulls)) {
      expect(changes).toMatchObject([
        { lead: { id, stage: LeadStage.WON }, kinds: [{ kind: LeadChangeKind.STAGE_CHANGED }] },
      ]);
    }
  });

  // @proves bounds-53
  test('a pull returns no changes and no error when the core stops', async () => {
    const id = await created();
    const { received, ended } = watch();
    await expect.poll(() => listIds(received)).toEqual([id]);
    await acknowledge('', received);
    const pull = expect(crm.leads.pullLeadChanges({ wait })).resolves.toMatchObject({ changes: [] });
    const underWay = async () => (await scrape(core.metricsUrl)).get('lead_intake_core_calls_under_way');
    await expect.poll(underWay).toBe(2);
    await core.stop();

    await pull;
    await expect(ended).resolves.toBeUndefined();
  });
});

// @proves feed-8 feed-9
describe('a named consumer', () => {
  test('a watch of a named consumer gets each state once, until the consumer is removed', async () => {
    await create('relay');
    const { received, ended } = watch('relay');
    const leadId = await created();
    await expect.poll(() => listIds(received)).toEqual([leadId]);
    await crm.leads.changeLeadStage({ studioId: 'one', leadId, stage: LeadStage.WON });
    await expect.poll(() => received.length).toBe(2);
    expect(await crm.consumers.removeConsumer({ consumer: 'relay' })).toMatchObject({ removed: true });
    expect(await findCode(ended)).toBe(Code.NotFound);
    expect(await crm.consumers.removeConsumer({ consumer: 'relay' })).toMatchObject({ removed: false });
  });

  test('a consumer that starts with all leads gets those of all its studios as it acknowledges', async () => {
    const ids = await Promise.all([...times(20, () => created('one')), ...times(3, () => created('two'))]);
    await acknowledge('', await pulled(''));
    const { consumer } = await create('relay', ALL_LEADS);
    expect(consumer?.isBackfilling).toBe(true);
    await create('of-two', ALL_LEADS, ['two', 'two', 'none']);
    expect(listIds(await pulled('of-two'))).toHaveLength(3);

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

  test('a named consumer gets some leads again, or those of all its studios', async () => {
    await create('relay');
    const ids = [await created(), await created(), await created('two')];
    for (const consumer of ['relay', '']) await acknowledge(consumer, await pulled(consumer));
    const some = { studioId: 'one', leadIds: [(ids[1] as string).toUpperCase(), newId()] };
    expect(await crm.leads.resendLeads({ ...some, consumer: 'relay' })).toMatchObject({ leadCount: 1 });
    expect(listIds(await pulled('relay'))).toEqual([ids[1]]);
    expect(await pulled('')).toEqual([]);
    expect(await crm.leads.resendLeads(some)).toMatchObject({ leadCount: 1, skippedCount: 0, nextPageToken: '' });
    expect(listIds(await pulled(''))).toEqual([ids[1]]);
    await crm.leads.resendLeads({ allStudios: true, consumer: 'relay' });
    await expect.poll(async () => listIds(await pulled('relay'))).toEqual(ids.toSorted());
    expect(await findCode(crm.leads.resendLeads({ allStudios: true }))).toBe(Code.InvalidArgument);
  });

  // @proves feed-7 bounds-56
  test('leads changed in a time range are sent again, of which a call examines 500', async () => {
    await create('relay');
    const store = openSqliteStore(core.path);
    onTestFinished(() => store.close());
    // The leads of two minutes.
    const start = new Date('2026-03-01T10:00:00Z');
    const leads = times(501, (index) => aLead({ studioId: 'one', createdAt: new Date(start.getTime() + 240 * index) }));
    await Promise.all(leads.map((lead) => store.createLead(lead, keysFor(lead))));
    const range = (from: number, to: number) => ({
      startTime: timestampFromMs(start.getTime() + from),
      endTime: timestampFromMs(start.getTime() + to),
    });
    const settle = async (consumer: string) => {
      while ((await acknowledge(consumer, await pulled(consumer))) > 0);
    };
    for (const consumer of ['relay', '']) await settle(consumer);
    const last = { studioId: 'one', updateTime: range(119_000, 300_000) };

    for (const consumer of ['relay', '']) {
      const first = await crm.leads.resendLeads({ ...last, consumer });
      expect(first).toMatchObject({ leadCount: 4, nextPageToken: expect.stringMatching(/./) });
      const { nextPageToken: pageToken } = first;
      for (const updateTime of [range(0, 1), undefined])
        expect(await findCode(crm.leads.resendLeads({ ...last, consumer, updateTime, pageToken }))).toBe(
          Code.InvalidArgument,
        );
      const second = await crm.leads.resendLeads({ ...last, consumer, pageToken });
      expect(second).toMatchObject({ leadCount: 1, skippedCount: 0, nextPageToken: '' });
      expect(listIds(await pulled(consumer))).toEqual(leads.slice(-5).map(({ id }) => id));
      if (consumer !== '') expect(await pulled('')).toEqual([]);
    }
  });

  test('a consumer cannot have leads of another studio sent again', async () => {
    await create('relay', NOW, ['one']);
    for (const studioId of ['two', 'none'])
      expect(await findCode(crm.leads.resendLeads({ studioId, consumer: 'relay' }))).toBe(Code.InvalidArgument);
    expect((await crm.consumers.listConsumers({})).consumers[0]?.isBackfilling).toBe(false);
  });

  test('a change set aside is sent again at its retry time, or when it is taken back', async () => {
    await create('relay');
    const ids = await Promise.all(times(3, () => created()));
    const [first, second] = await pulled('relay');
    const selectAside = ({ lead, revision }: LeadChange, retryInMs?: number) => ({
      studioId: 'one',
      leadId: lead?.id ?? '',
      revision,
      reason: 'HTTP_500',
      ...(retryInMs !== undefined && { retryTime: timestampFromMs(Date.now() + retryInMs) }),
    });
    const leads = [selectAside(first as LeadChange, 60_000), selectAside(second as LeadChange)];
    const unknown = { ...selectAside(first as LeadChange), studioId: 'two' };
    expect(await crm.consumers.setAsideLeadChanges({ consumer: 'relay', leads: [...leads, unknown] })).toMatchObject({
      setAsideCount: 2,
      supersededCount: 0,
      unknownCount: 1,
    });
    expect(listIds(await pulled('relay'))).toEqual([ids.find((id) => !leads.some(({ leadId }) => leadId === id))]);
    const { consumers } = await crm.consumers.listConsumers({});
    expect(consumers[0]).toMatchObject({ waiting: { leadCount: 2 }, setAside: { leadCount: 1 } });

    const listed = [];
    for (let pageToken = '', page = 0; page < 3; page += 1) {
      const next = await crm.consumers.listSetAsideLeadChanges({ consumer: 'relay', pageSize: 1, pageToken });
      listed.push(...next.leads);
      if (next.nextPageToken === '') break;
      pageToken = next.nextPageToken;
    }
    expect(listed).toMatchObject(leads.map((lead) => ({ ...lead, attempts: 1 })));

    const inPart = { consumer: 'relay', studioId: 'one', leadIds: [(second?.lead?.id ?? '').toUpperCase()] };
    expect(await crm.consumers.takeBackLeadChanges(inPart)).toMatchObject({ takenBackCount: 1 });
    expect((await pulled('relay')).find(({ lead }) => lead?.id === second?.lead?.id)?.attempts).toBe(1);
    const all = { takenBackCount: 1, nextPageToken: '' };
    expect(await crm.consumers.takeBackLeadChanges({ consumer: 'relay', all: true })).toMatchObject(all);
    const change = (await pulled('relay')).find(({ lead }) => lead?.id === first?.lead?.id) as LeadChange;
    await crm.consumers.setAsideLeadChanges({ consumer: 'relay', leads: [selectAside(change, 300)] });
    expect(listIds(await pulled('relay'))).toHaveLength(2);
    await expect.poll(async () => listIds(await pulled('relay'))).toHaveLength(3);
  });

  test('a change taken back is sent once more over the same watch', async () => {
    await create('relay');
    const ending = new AbortController();
    const { received, ended } = watch('relay', ending.signal);
    await created();
    await expect.poll(() => received.length).toBe(1);
    const [{ lead, revision } = expect.fail()] = received;
    const named = { studioId: 'one', leadId: lead?.id ?? '', revision, reason: 'ANY' };
    await crm.consumers.setAsideLeadChanges({ consumer: 'relay', leads: [named] });
    await crm.consumers.takeBackLeadChanges({ consumer: 'relay', all: true });
    await expect.poll(() => received.map(({ attempts }) => attempts)).toEqual([0, 1]);
    ending.abort();
    await expect(ended).rejects.toMatchObject({ code: Code.Canceled });
  });

  // @proves bounds-226
  test('a consumer cannot set changes aside for too long, or take back changes without naming any', async () => {
    await create('relay');
    const retryTime = timestampFromMs(Date.now() + 8 * 86_400_000);
    const lead = { studioId: 'one', leadId: newId(), revision: 1n, reason: 'ANY', retryTime };
    const { consumers } = crm;
    for (const call of [
      consumers.setAsideLeadChanges({ consumer: 'relay', leads: [lead] }),
      consumers.takeBackLeadChanges({ consumer: 'relay' }),
      consumers.takeBackLeadChanges({ consumer: 'relay', all: true, pageToken: 'forged' }),
      consumers.listSetAsideLeadChanges({ consumer: 'relay', pageToken: 'forged' }),
    ])
      expect(await findCode(call)).toBe(Code.InvalidArgument);
  });

  // @proves bounds-51
  test('a consumer learns of leads held back, outdated states and unknown leads', async () => {
    await create('relay');
    const ids = await Promise.all(times(MAX_LEADS_PER_POLL + 1, () => created()));
    const some = await crm.leads.pullLeadChanges({ max: 2, consumer: 'relay' });
    expect(some).toMatchObject({ heldBack: true, changes: { length: 2 } });
    for await (const { heldBack, changes } of crm.leads.watchLeadChanges({ consumer: 'relay' })) {
      expect([heldBack, changes.length]).toEqual([true, 100]);
      break;
    }
    const { received } = watch('relay');
    await expect.poll(() => received.length).toBe(MAX_LEADS_PER_POLL);
    const [changed] = some.changes;
    await crm.leads.changeLeadStage({ studioId: 'one', leadId: changed?.lead?.id ?? '', stage: LeadStage.WON });
    await pulled('relay');
    expect(new Set(listIds(received)).size).toBe(MAX_LEADS_PER_POLL);
    const acknowledgements = some.changes.map(({ lead, revision }) => ({
      studioId: 'one',
      leadId: lead?.id ?? '',
      revision,
    }));
    const mistyped = acknowledgements.map((each) => ({ ...each, studioId: 'onne' }));
    const request = { consumer: 'relay', acknowledgements: [...acknowledgements, ...mistyped] };
    expect(await crm.leads.acknowledgeLeadChanges(request)).toMatchObject({
      acknowledgedCount: 1,
      supersededCount: 1,
      unknownCount: 2,
    });
    while ((await acknowledge('relay', await pulled('relay'))) > 0);
    await expect.poll(() => new Set(listIds(received))).toEqual(new Set(ids));
    await created();
    expect(await crm.leads.pullLeadChanges({ consumer: 'relay' })).toMatchObject({ heldBack: false });
  });

  test('a watch without changes gets heartbeats if it asks for them', async () => {
    await create('relay');
    const began = performance.now();
    let beats = 0;
    for await (const { changes, heldBack } of crm.leads.watchLeadChanges({
      consumer: 'relay',
      heartbeat: { seconds: 1n, nanos: 0 },
    })) {
      expect([changes, heldBack]).toEqual([[], false]);
      beats += 1;
      if (beats === 2) break;
    }
    expect(performance.now() - began).toBeGreaterThanOrEqual(2000);
    const tooOften = async () => {
      for await (const _ of crm.leads.watchLeadChanges({ heartbeat: { seconds: 0n, nanos: 999_000_000 } }));
    };
    expect(await findCode(tooOften())).toBe(Code.InvalidArgument);
  });

  test('an unknown consumer is not found, whatever the call', async () => {
    for (const call of [
      () => pulled('relay'),
      () => acknowledge('relay', []),
      () => crm.leads.resendLeads({ studioId: 'one', consumer: 'relay' }),
      () => crm.consumers.listSetAsideLeadChanges({ consumer: 'relay' }),
      () => crm.consumers.takeBackLeadChanges({ consumer: 'relay', all: true }),
      () =>
        crm.consumers.setAsideLeadChanges({
          consumer: 'relay',
          leads: [{ studioId: 'one', leadId: newId(), revision: 1n, reason: 'ANY' }],
        }),
      async () => {
        for await (const _ of crm.leads.watchLeadChanges({ consumer: 'relay' }));
      },
    ])
      expect(await findCode(call())).toBe(Code.NotFound);
  });

  // @proves bounds-66 bounds-224
  test('a consumer has a unique name and limited studios, and the number of consumers is limited', async () => {
    await create('relay', NOW, ['one']);
    expect((await create('relay', NOW, ['one'])).consumer?.name).toBe('relay');
    expect(await findCode(create('relay', NOW))).toBe(Code.AlreadyExists);
    const many = times(MAX_STUDIOS_OF_CONSUMER + 1, (index) => `studio-${index}`);
    expect(await findCode(create('many', NOW, many))).toBe(Code.InvalidArgument);
    await create('many', NOW, many.slice(1));
    for (const index of times(MAX_CONSUMERS - 2, (each) => each)) await create(`consumer-${index}`);
    expect(await findCode(create('one-more'))).toBe(Code.FailedPrecondition);
    await crm.consumers.removeConsumer({ consumer: 'many' });
    await create('one-more');
  });
});

// @proves feed-10
describe('a consumer of a restored database', () => {
  test('each response after a restore reports it to any consumer, even on an open watch', async () => {
    const store = openSqliteStore(core.path);
    onTestFinished(() => store.close());
    await create('relay');
    const pull = (consumer: string) => crm.leads.pullLeadChanges({ consumer });
    for (const consumer of ['', 'relay']) {
      const { databaseEpoch, restoredToTime } = await pull(consumer);
      expect({ databaseEpoch, restoredToTime }).toEqual({ databaseEpoch: 0n, restoredToTime: undefined });
    }
    const [now, to] = [new Date(), new Date(Date.now() - 3_600_000)];
    await store.raiseEpoch(to, now, BY);
    const restored = {
      databaseEpoch: BigInt(now.getTime()),
      restoredToTime: timestampFromDate(new Date(to.getTime() - 300_000)),
    };
    for (const consumer of ['', 'relay']) {
      expect(await pull(consumer)).toMatchObject(restored);
      const heartbeat = { seconds: 1n, nanos: 0 };
      for await (const message of crm.leads.watchLeadChanges({ consumer, heartbeat })) {
        expect(message).toMatchObject(restored);
        break;
      }
    }
  });

  test('a consumer can ask which of its leads are missing after a restore', async () => {
    const [here, there, lost] = [await created('one'), await created('two'), newId()];
    const missing = async (studioId: string, leadIds: string[], by = crm) =>
      (await by.consumers.findMissingLeads({ studioId, leadIds })).missingLeadIds;
    const asked = [here.toUpperCase(), there, lost.toUpperCase(), lost];
    expect(await missing('one', asked)).toEqual([there, lost]);
    expect(await missing('none', [here])).toEqual([here]);
    expect(await missing('one', [])).toEqual([]);
    const branch = await connectAs(['feed'], { studios: ['one'], consumers: ['own'] });
    expect(await missing('one', [here, lost], branch)).toEqual([lost]);
    expect(await findCode(missing('two', [there], branch))).toBe(Code.PermissionDenied);
    expect(await findCode(branch.consumers.findMissingLeads({ leadIds: [there] }))).toBe(Code.PermissionDenied);
  });
});

// @proves secrets-1
describe('a caller that may feed', () => {
  test('a caller with the feed role only pulls and acknowledges for its own consumers', async () => {
    await create('relay');
    await create('reporting');
    const id = await created();
    const relay = await connectAs(['feed'], { consumers: ['relay'] });

    expect(listIds(await pulled('relay', relay))).toEqual([id]);
    expect(await acknowledge('relay', await pulled('relay', relay), relay)).toBe(1);
    expect((await relay.consumers.listConsumers({})).consumers.map(({ name }) => name)).toEqual(['relay']);
    for (const consumer of ['', 'reporting']) {
      expect(await findCode(pulled(consumer, relay))).toBe(Code.PermissionDenied);
      expect(await findCode(acknowledge(consumer, [], relay))).toBe(Code.PermissionDenied);
      expect(await findCode(relay.leads.resendLeads({ studioId: 'one', consumer }))).toBe(Code.PermissionDenied);
      const leads = [{ studioId: 'one', leadId: id, revision: 1n, reason: 'ANY' }];
      expect(await findCode(relay.consumers.setAsideLeadChanges({ consumer, leads }))).toBe(Code.PermissionDenied);
      expect(await findCode(relay.consumers.takeBackLeadChanges({ consumer, all: true }))).toBe(Code.PermissionDenied);
      expect(await findCode(relay.consumers.listSetAsideLeadChanges({ consumer }))).toBe(Code.PermissionDenied);
    }
    expect((await relay.consumers.listSetAsideLeadChanges({ consumer: 'relay' })).leads).toEqual([]);
    expect(listIds(await pulled('reporting'))).toEqual([id]);
  });

  test('a feed caller of some studios has only consumers of these studios', async () => {
    await create('own', NOW, ['one']);
    await create('others', NOW, ['one', 'two']);
    await create('all');
    const id = await created();
    const branch = await connectAs(['feed'], { studios: ['one'], consumers: ['own', 'others', 'all'] });
    expect(listIds(await pulled('own', branch))).toEqual([id]);
    for (const consumer of ['others', 'all', '']) {
      expect(await findCode(pulled(consumer, branch))).toBe(Code.PermissionDenied);
      expect(await findCode(acknowledge(consumer, [], branch))).toBe(Code.PermissionDenied);
      const aside = branch.consumers.takeBackLeadChanges({ consumer, all: true });
      expect(await findCode(aside)).toBe(Code.PermissionDenied);
    }
    expect(await branch.consumers.takeBackLeadChanges({ consumer: 'own', all: true })).toMatchObject({
      takenBackCount: 0,
    });
    expect(await findCode(branch.leads.resendLeads({ studioId: 'two', consumer: 'own' }))).toBe(Code.PermissionDenied);
    expect(await findCode(branch.leads.resendLeads({ allStudios: true, consumer: 'all' }))).toBe(Code.PermissionDenied);
    expect(await findCode(branch.leads.resendLeads({ allStudios: true }))).toBe(Code.PermissionDenied);
    expect(await findCode(branch.leads.resendLeads({ allStudios: true, consumer: 'own' }))).toBeUndefined();
    expect((await branch.consumers.listConsumers({})).consumers.map(({ name }) => name)).toEqual(['own']);
  });

  test('a CRM caller of some studios manages only consumers of these studios', async () => {
    await create('others', NOW, ['two']);
    const branch = await connectAs(['crm'], { studios: ['one'] });
    const own = { name: 'own', studioIds: ['one'] };
    await branch.consumers.createConsumer({ consumer: own, start: NOW });
    for (const consumer of [
      { ...own, name: 'more', studioIds: ['one', 'two'] },
      { name: 'all', allStudios: true },
    ])
      expect(await findCode(branch.consumers.createConsumer({ consumer, start: NOW }))).toBe(Code.PermissionDenied);
    expect(await findCode(branch.consumers.removeConsumer({ consumer: 'others' }))).toBe(Code.PermissionDenied);
    expect(await branch.consumers.removeConsumer({ consumer: 'own' })).toMatchObject({ removed: true });
  });
});
