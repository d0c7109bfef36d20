import { randomUUID } from 'node:crypto';
import { Code, ConnectError } from '@connectrpc/connect';
import { beforeEach, describe, expect, test } from 'vitest';
import { BadRequestSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { ConsumerStart } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { times } from '../support/builders.ts';
import { type CoreClients, connectToCore } from '../support/core-clients.ts';
import { CORE_TOKEN, startTestCore, type TestCore } from '../support/grpc.ts';

const TEST = 'trial';
const status = StudioStatus.ACTIVE;

let core: TestCore;
let crm: CoreClients;

beforeEach(async () => {
  core = await startTestCore();
  crm = connectToCore(core.url, CORE_TOKEN);
  await crm.directory.putStudio({ studio: { id: 'one', status } });
  await crm.directory.putStudio({ studio: { id: TEST, status, isTest: true } });
  return async () => {
    crm.close();
    await core.stop();
  };
});

async function created(studioId: string, key = randomUUID()): Promise<string> {
  const contact = { value: { case: 'email', value: `${key}@example.org` } } as const;
  const { lead } = await crm.leads.createLead({ studioId, idempotencyKey: key, displayName: 'Ada', contact });
  return lead?.id ?? '';
}

const pulled = async (consumer = '') =>
  (await crm.leads.pullLeadChanges({ max: 100, consumer })).changes.map(({ lead }) => lead?.id).toSorted();

const exported = async (request: { studioId?: string; includeTestStudios?: boolean; resumeToken?: string }) =>
  (await Array.fromAsync(crm.leads.exportLeads(request))).flatMap(({ leads }) => leads.map(({ id }) => id)).toSorted();

const readFields = (call: Promise<unknown>) =>
  call.then(
    () => expect.fail('it is not refused'),
    (error) =>
      ConnectError.from(error)
        .findDetails(BadRequestSchema)
        .flatMap(({ fieldViolations }) => fieldViolations.map(({ field }) => field)),
  );

// @proves studios-1
describe('a test studio', () => {
  test('a test studio works like any other, and its leads reach only those who ask', async () => {
    const { NOW, ALL_LEADS } = ConsumerStart;
    const before = await created(TEST);
    const create = (name: string, consumer: object, start: ConsumerStart = NOW) =>
      crm.consumers.createConsumer({ consumer: { name, ...consumer }, start });
    expect((await create('all', { allStudios: true }, ALL_LEADS)).consumer).toMatchObject({
      includeTestStudios: false,
    });
    const included = await create('tests', { allStudios: true, includeTestStudios: true }, ALL_LEADS);
    expect(included.consumer).toMatchObject({ allStudios: true, includeTestStudios: true });
    await create('named', { studioIds: [TEST] });
    expect(await readFields(create('wrong', { studioIds: [TEST], includeTestStudios: true }))).toEqual([
      'consumer.includeTestStudios',
    ]);
    const key = randomUUID();
    const [ordinary, test] = [await created('one'), await created(TEST, key)];
    expect(await created(TEST, key)).toBe(test);
    await crm.leads.changeLeadStage({ studioId: TEST, leadId: test, stage: LeadStage.WON });
    expect((await crm.leads.listLeads({ studioId: TEST })).leads.map(({ id }) => id)).toEqual([test, before]);

    expect(await pulled()).toEqual([ordinary]);
    expect(await pulled('all')).toEqual([ordinary]);
    expect(await pulled('named')).toEqual([test]);
    expect(await pulled('tests')).toEqual([before, ordinary, test].toSorted());
    await crm.leads.resendLeads({ studioId: TEST });
    await crm.leads.resendLeads({ studioId: TEST, consumer: 'named' });
    expect(await readFields(crm.leads.resendLeads({ studioId: TEST, consumer: 'all' }))).toEqual(['studioId']);
    expect(await pulled()).toEqual([ordinary]);
    expect(await pulled('all')).toEqual([ordinary]);
    expect(await pulled('named')).toEqual([before, test].toSorted());

    expect(await exported({})).toEqual([ordinary]);
    expect(await exported({ studioId: TEST })).toEqual([before, test].toSorted());
    expect(await exported({ includeTestStudios: true })).toEqual([before, ordinary, test].toSorted());
  });

  // @proves studios-2 bounds-90
  test('a test studio is emptied in batches, and no other studio can be', async () => {
    const kept = await created('one');
    const key = randomUUID();
    await created(TEST, key);
    await Promise.all(times(520, () => created(TEST)));
    expect(await crm.directory.emptyStudio({ studioId: TEST })).toMatchObject({
      deletedLeadCount: 500,
      isEmpty: false,
    });
    expect(await crm.directory.emptyStudio({ studioId: TEST })).toMatchObject({ deletedLeadCount: 21, isEmpty: true });
    expect(await crm.directory.emptyStudio({ studioId: TEST })).toMatchObject({ deletedLeadCount: 0, isEmpty: true });
    expect(await exported({ includeTestStudios: true })).toEqual([kept]);
    // The key creates a lead again, and the contact is free.
    const again = await created(TEST, key);
    expect((await crm.leads.listLeads({ studioId: TEST })).leads.map(({ id }) => id)).toEqual([again]);

    const empty = (studioId: string) => crm.directory.emptyStudio({ studioId });
    await expect(empty('one')).rejects.toMatchObject({
      code: Code.FailedPrecondition,
      rawMessage: 'The studio is not a test studio.',
    });
    await expect(empty('none')).rejects.toMatchObject({ code: Code.NotFound });
    expect(await exported({ studioId: 'one' })).toEqual([kept]);
  });
});
