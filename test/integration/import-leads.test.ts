import { randomUUID } from 'node:crypto';
import { anyUnpack, timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';
import { ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { ConsumerStart } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { LeadChangeKind, LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { times } from '../support/builders.ts';
import { anEmail, aService, readLead } from '../support/service.ts';

const service = aService();

const LONG_AGO = new Date('2019-05-04T10:00:00.123Z');
const LATER = new Date('2019-06-01T00:00:00.000Z');

const anImport = (overrides: object = {}) => ({
  idempotencyKey: randomUUID(),
  displayName: 'Ada Lovelace',
  contact: { value: { case: 'email', value: `${randomUUID()}@example.org` } } as const,
  ...overrides,
});

type Results = Awaited<ReturnType<typeof service.leads.importLeads>>['results'];

const listIds = (results: Results) =>
  results.map(({ outcome }) => (outcome.case === 'imported' ? outcome.value.leadId : undefined));

const listReasons = (results: Results): (string | undefined)[] =>
  results.map(({ outcome }) =>
    outcome.case === 'error'
      ? outcome.value.details.map((detail) => anyUnpack(detail, ErrorInfoSchema)?.reason).find(Boolean)
      : undefined,
  );

// @proves imports-1
describe('ImportLeads', () => {
  test('ImportLeads writes leads with their stages and times, listed by creation time', async () => {
    const { studioId, secret, sourceId } = await service.aStudioWithKey();
    const { id: today } = await readLead(
      await service.post(secret, { displayName: 'Ada', contact: anEmail(`${randomUUID()}@example.org`) }),
      201,
    );
    const times = { createTime: timestampFromDate(LONG_AGO), updateTime: timestampFromDate(LATER) };
    const { results } = await service.leads.importLeads({
      studioId,
      leads: [anImport({ stage: LeadStage.WON, note: 'By telephone.', sourceId, ...times }), anImport()],
    });

    const [won, plain] = listIds(results);
    const { leads } = await service.leads.listLeads({ studioId, view: 2 });
    expect(leads.map(({ id }) => id)).toEqual([plain, today, won]);
    expect(leads[2]).toMatchObject({ stage: LeadStage.WON, note: 'By telephone.', sourceId, ...times });
    expect(leads[0]).toMatchObject({ stage: LeadStage.NEW, createTime: leads[0]?.updateTime });
    const { changes } = await service.leads.pullLeadChanges({ max: 100 });
    const change = changes.find(({ lead }) => lead?.id === won);
    expect(change?.kinds.map(({ kind }) => kind)).toEqual([LeadChangeKind.CREATED]);
    // The change counts from the import.
    expect(timestampDate(change?.firstChangeTime as never).getTime()).toBeGreaterThan(Date.now() - 60_000);
  });

  // @proves feed-8
  test('a named consumer gets the creation of a lead that is moved before it polls', async () => {
    const { studioId } = await service.aStudioWithKey();
    const consumer = `c-${randomUUID()}`;
    await service.consumers.createConsumer({
      consumer: { name: consumer, studioIds: [studioId] },
      start: ConsumerStart.NOW,
    });
    const lead = anImport({ createTime: timestampFromDate(LONG_AGO) });
    const { results } = await service.leads.importLeads({ studioId, leads: [lead] });
    const [leadId = ''] = listIds(results);
    await service.leads.changeLeadStage({ studioId, leadId, stage: LeadStage.WON });
    const { changes } = await service.leads.pullLeadChanges({ consumer });
    expect(changes.map(({ kinds }) => kinds.map(({ kind }) => kind))).toEqual([
      [LeadChangeKind.CREATED, LeadChangeKind.STAGE_CHANGED],
    ]);
  });

  // @proves imports-3
  test('ImportLeads recognises a lead by its id in its own studio, whatever became of it', async () => {
    const { studioId, secret } = await service.aStudioWithKey();
    const post = () => service.post(secret, { displayName: 'Ada', contact: anEmail(`${randomUUID()}@example.org`) });
    const ids = await Promise.all(times(3, async () => (await readLead(await post(), 201)).id));
    const [open, closed, erased] = ids as [string, string, string];
    await service.leads.changeLeadStage({ studioId, leadId: closed, stage: LeadStage.LOST });
    await service.leads.eraseLead({ studioId, leadId: erased });
    const known = [open, closed, erased].map((leadId) => anImport({ leadId: leadId.toUpperCase() }));
    const unchecked = anImport({ leadId: closed, displayName: '', idempotencyKey: 'x' });

    const { results } = await service.leads.importLeads({ studioId, leads: [...known, unchecked] });

    expect(results.map(({ outcome }) => outcome.case === 'imported' && { ...outcome.value })).toMatchObject([
      { leadId: open, replayed: true, erased: false },
      { leadId: closed, replayed: true, erased: false },
      { leadId: erased, replayed: true, erased: true },
      { leadId: closed, replayed: true, erased: false },
    ]);
    expect(await service.countLeads(studioId)).toBe(2);

    const other = await service.aStudioWithKey();
    const request = { studioId: other.studioId, leads: known };
    for (const replayed of [false, true]) {
      const { results } = await service.leads.importLeads(request);
      const values = results.map(({ outcome }) => outcome.case === 'imported' && outcome.value);
      expect(values).toMatchObject(times(3, () => ({ replayed, erased: false })));
      expect(listIds(results).some((id) => ids.includes(id ?? ''))).toBe(false);
    }
    const invalid = await service.leads.importLeads({ studioId, leads: [anImport({ leadId: 'x' })] });
    expect(listReasons(invalid.results)).toEqual(['INVALID_REQUEST']);
  });
});
