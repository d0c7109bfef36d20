import { beforeEach, describe, expect, test } from 'vitest';
import { newId } from '../../src/domain/new-id.ts';
import { times } from '../support/builders.ts';
import { exchange } from '../support/exchange-calls.ts';
import { aCreateLeadRequest, aCreation, refusalOf } from '../support/grpc.ts';
import { createKey, type KeyOfStudio, putSource, putStudio, revokeKey } from '../support/grpc-studios.ts';
import { aSharedCore } from './shared-core.ts';
import { millis, type WireLead } from './wire-lead.ts';

const { caller } = aSharedCore();
let studioId: string;

beforeEach(async () => {
  studioId = await putStudio(caller);
});

const leads = <Answer>(method: string, request: object) => caller.call<Answer>(`LeadIntakeService/${method}`, request);

interface Listed {
  readonly leads: readonly WireLead[];
  readonly nextPageToken: string;
}

const list = (filter: object | undefined, more: object = {}) =>
  leads<Listed>('ListLeads', { studioId, ...(filter && { filter }), ...more });

interface Exported {
  readonly leads: readonly WireLead[];
  readonly resumeToken: string;
}

async function exported(filter: object | undefined, more: object = {}): Promise<Exported[]> {
  const messages: Exported[] = [];
  const request = { studioId, ...(filter && { filter }), ...more };
  for await (const message of caller.stream<Exported>('LeadIntakeService/ExportLeads', request)) messages.push(message);
  return messages;
}

const idsOf = (listed: { readonly leads: readonly WireLead[] }) => listed.leads.map(({ id }) => id);
const idsIn = (messages: readonly Exported[]) => messages.flatMap(idsOf);

async function aLead(overrides: object = {}): Promise<WireLead> {
  return (await leads<{ lead: WireLead }>('CreateLead', aCreateLeadRequest(studioId, overrides))).lead;
}

/** Creates a lead by a request of the public API; returns its id. */
async function createdWith({ secretSha256 }: KeyOfStudio): Promise<string> {
  const [outcome] = await exchange(caller, [[{ secretSha256, createLead: aCreation() }]]);
  return outcome?.answer?.leadId ?? expect.fail('no lead was created');
}

const move = async ({ id }: WireLead, stage: string) =>
  (await leads<{ lead: WireLead }>('ChangeLeadStage', { studioId, leadId: id, stage: `LEAD_STAGE_${stage}` })).lead;

/** The ids of leads in the order of their changes: several may have one time. */
const byUpdate = (changed: readonly WireLead[]) =>
  changed.toSorted((a, b) => millis(a.updateTime) - millis(b.updateTime) || (a.id < b.id ? -1 : 1)).map(({ id }) => id);

/** A time of a lead, and some nanoseconds more. */
const later = ({ seconds, nanos }: WireLead['createTime'], by: number) => ({ seconds, nanos: nanos + by });

// @proves leads-34
describe('a filter', () => {
  test('finds leads by stage and source, those that changed last first', async () => {
    const [form, fair] = [await putSource(caller, studioId), await putSource(caller, studioId)];
    const [first, second, third] = [await aLead({ sourceId: form }), await aLead({ sourceId: fair }), await aLead()];
    const won = byUpdate([await move(third, 'WON'), await move(first, 'WON')]);

    expect(idsOf(await list({ stages: ['LEAD_STAGE_WON'] }))).toEqual(won.toReversed());
    expect(idsOf(await list({ stages: ['LEAD_STAGE_NEW', 'LEAD_STAGE_LOST'] }))).toEqual([second.id]);
    expect(idsOf(await list({ sourceIds: [form.toUpperCase(), fair] }))).toEqual([second.id, first.id]);
    expect(idsOf(await list({ stages: ['LEAD_STAGE_WON'], sourceIds: [form] }))).toEqual([first.id]);
    expect(idsIn(await exported({ stages: ['LEAD_STAGE_WON'] }))).toEqual([first.id, third.id]);
    for (const none of [{}, { stages: [], sourceIds: [] }, { createTime: {}, updateTime: {} }]) {
      expect(idsOf(await list(none))).toEqual([third.id, second.id, first.id]);
      expect(idsIn(await exported(none))).toEqual([first.id, second.id, third.id]);
    }
  });

  test('compares times to the nanosecond: the start of a range is in it, and the end is not', async () => {
    const { id, createTime: at } = await aLead();

    // By the order of ids, by that of changes, and by either with another condition.
    const lists = ['createTime', 'updateTime'].flatMap((field) =>
      [{}, { stages: ['LEAD_STAGE_NEW'] }].map(
        (more) => async (range: object) => idsOf(await list({ ...more, [field]: range })),
      ),
    );
    const exports = (range: object) => exported({ updateTime: range }).then(idsIn);
    for (const found of [...lists, exports]) {
      expect(await found({ startTime: at, endTime: later(at, 1) })).toEqual([id]);
      expect(await found({ startTime: at })).toEqual([id]);
      expect(await found({ startTime: later(at, 1) })).toEqual([]);
      expect(await found({ endTime: at })).toEqual([]);
      expect(await found({ startTime: at, endTime: at })).toEqual([]);
      const widest = {
        startTime: { seconds: -62_135_596_800 },
        endTime: { seconds: 253_402_300_799, nanos: 999_999_999 },
      };
      expect(await found(widest)).toEqual([id]);
    }
  });

  // @proves leads-43
  test('finds the leads that a key created, also once that is revoked, and each lead names its key', async () => {
    const [leaked, other] = [await createKey(caller, { studioId }), await createKey(caller, { studioId })];
    const [one, another] = [await createdWith(leaked), await createdWith(other)];
    const again = await createdWith(leaked);
    const { id: byCrm } = await aLead();
    await revokeKey(caller, leaked);

    const { apiKeyId } = leaked.owner;
    const filter = { apiKeyIds: [apiKeyId.toUpperCase()] };
    expect(idsOf(await list(filter))).toEqual([again, one]);
    expect(idsIn(await exported(filter))).toEqual([one, again]);
    expect(idsOf(await list({ ...filter, stages: ['LEAD_STAGE_NEW'] }))).toEqual([again, one]);
    expect(idsOf(await list({ apiKeyIds: [newId()] }))).toEqual([]);
    const counted = await leads<{ bySource: object[] }>('CountLeads', { studioId, filter });
    expect(counted.bySource).toMatchObject([{ count: 2 }]);
    const keysOf = (of: readonly WireLead[]) => of.map((lead) => [lead.id, (lead as { apiKeyId?: string }).apiKeyId]);
    const all = [
      [byCrm, undefined],
      [again, apiKeyId],
      [another, other.owner.apiKeyId],
      [one, apiKeyId],
    ];
    expect(keysOf((await list(undefined)).leads)).toEqual(all);
    expect(keysOf((await exported(undefined)).flatMap((each) => each.leads)).toReversed()).toEqual(all);
    const { lead } = await leads<{ lead: WireLead }>('GetLead', { studioId, leadId: one });
    expect(keysOf([lead])).toEqual([[one, apiKeyId]]);
  });

  test("finds nothing of another studio, by whatever is another's", async () => {
    const [mine, theirs] = [await putSource(caller, studioId), await putStudio(caller)];
    await aLead({ sourceId: mine });
    const source = await putSource(caller, theirs);
    await leads('CreateLead', aCreateLeadRequest(theirs, { sourceId: source }));

    expect(idsOf(await list({ sourceIds: [source] }))).toEqual([]);
    expect(idsIn(await exported({ sourceIds: [source] }))).toEqual([]);
    expect(idsOf(await list({ sourceIds: [mine] }, { studioId: theirs }))).toEqual([]);
  });

  // @proves leads-35
  test('counts by stage and source, of its studio alone', async () => {
    const source = await putSource(caller, studioId);
    const [first] = [await aLead({ sourceId: source }), await aLead({ sourceId: source }), await aLead()];
    await move(first, 'WON');
    await leads('CreateLead', aCreateLeadRequest(await putStudio(caller)));
    const counted = (filter?: object) => leads<object>('CountLeads', { studioId, ...(filter && { filter }) });

    const ofSource = (count: number) => ({
      stage: 'LEAD_STAGE_UNSPECIFIED',
      sourceId: source,
      count,
      isLowerBound: false,
    });
    const ofStage = (stage: string, count: number) => ({ stage: `LEAD_STAGE_${stage}`, count, isLowerBound: false });
    const all = await counted();
    expect(all).toMatchObject({ bySource: [ofSource(2), { count: 1 }] });
    expect(all).toHaveProperty('byStage.length', 6);
    expect(await counted({ sourceIds: [source], stages: ['LEAD_STAGE_NEW', 'LEAD_STAGE_WON'] })).toMatchObject({
      byStage: [ofStage('NEW', 1), ofStage('WON', 1)],
      bySource: [ofSource(2)],
    });
    expect(await counted({ sourceIds: [newId()] })).toMatchObject({ bySource: [] });
    const [unknown, faulty] = [{ studioId: 'nowhere' }, { studioId, filter: { stages: [0] } }];
    expect(await refusalOf(leads('CountLeads', unknown))).toMatchObject({ reason: 'STUDIO_NOT_FOUND' });
    expect(await refusalOf(leads('CountLeads', faulty))).toMatchObject({ reason: 'INVALID_REQUEST' });
  });

  const SECOND = { seconds: 1 };
  // @proves bounds-95
  test.each<[string, object, string]>([
    ['21 sources', { sourceIds: times(21, newId) }, 'filter.sourceIds'],
    ['21 keys', { apiKeyIds: times(21, newId) }, 'filter.apiKeyIds'],
    ['a key that is no UUID', { apiKeyIds: [newId(), 'website'] }, 'filter.apiKeyIds[1]'],
    ['a source that is no UUID', { sourceIds: [newId(), 'form'] }, 'filter.sourceIds[1]'],
    ['an unspecified stage', { stages: ['LEAD_STAGE_UNSPECIFIED'] }, 'filter.stages'],
    ['a stage of a later release', { stages: [99] }, 'filter.stages'],
    [
      'a range that ends before it starts',
      { createTime: { startTime: { seconds: 2 }, endTime: SECOND } },
      'filter.createTime',
    ],
    [
      'a time before the year 1',
      { updateTime: { startTime: { seconds: -62_135_596_801 } } },
      'filter.updateTime.startTime',
    ],
    [
      'a time after the year 9999',
      { updateTime: { endTime: { seconds: 253_402_300_800 } } },
      'filter.updateTime.endTime',
    ],
    ['nanoseconds beyond a second', { createTime: { endTime: { nanos: 1_000_000_000 } } }, 'filter.createTime.endTime'],
  ])('with %s is refused, with the name of the field', async (_, filter, field) => {
    for (const call of [list(filter), exported(filter)]) {
      expect(await refusalOf(call)).toMatchObject({ reason: 'INVALID_REQUEST', fields: [field] });
    }
  });

  test('a token continues the list of its filter, however that is written, and no other', async () => {
    const source = await putSource(caller, studioId);
    const all = [await aLead({ sourceId: source }), await aLead({ sourceId: source })];
    const [stages, sourceIds] = [
      ['LEAD_STAGE_NEW', 'LEAD_STAGE_WON'],
      [source, newId()],
    ];
    const filters = [
      { stages, sourceIds },
      { sourceIds },
      { createTime: { startTime: all[0]?.createTime } },
      undefined,
    ];

    for (const filter of filters) {
      const { leads: first, nextPageToken: pageToken } = await list(filter, { pageSize: 1 });
      const again = filter?.stages && {
        stages: [...stages, ...stages].toReversed(),
        sourceIds: sourceIds.map((id) => id.toUpperCase()).toReversed(),
      };
      const second = await list(again ?? filter, { pageSize: 1, pageToken });
      expect([...idsOf({ leads: first }), ...idsOf(second)]).toEqual(all.map(({ id }) => id).toReversed());
      for (const other of filters.filter((each) => each !== filter)) {
        expect(await refusalOf(list(other, { pageToken }))).toMatchObject({ fields: ['pageToken'] });
      }
      const [message] = await exported(filter);
      for (const other of filters.filter((each) => each !== filter)) {
        const resumed = exported(other, { resumeToken: message?.resumeToken });
        expect(await refusalOf(resumed)).toMatchObject({ fields: ['resumeToken'] });
      }
      expect(idsIn(await exported(filter, { resumeToken: message?.resumeToken }))).toEqual([]);
    }
  });

  test('an export by changes resumes behind the message that was processed last', async () => {
    await Promise.all(times(130, () => aLead()));
    const filter = { updateTime: { startTime: SECOND } };
    const messages = await exported(filter);
    expect(messages.map(idsOf).map(({ length }) => length)).toEqual([100, 30]);
    const [first] = messages as [Exported];
    const changed = await move(first.leads[0] as WireLead, 'LOST');

    const rest = await exported(filter, { resumeToken: first.resumeToken });

    expect(idsIn(rest)).toEqual([...idsOf(messages[1] as Exported), changed.id]);
    expect(millis(changed.updateTime)).toBeGreaterThan(millis(first.leads[0]?.updateTime as WireLead['updateTime']));
  });
});
