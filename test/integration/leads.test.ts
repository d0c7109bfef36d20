import { beforeEach, describe, expect, test } from 'vitest';
import { newId } from '../../src/domain/new-id.ts';
import { times } from '../support/builders.ts';
import { exchange } from '../support/exchange-calls.ts';
import { aCreateLeadRequest, aCreation, findRefusal } from '../support/grpc.ts';
import { createKey, type KeyOfStudio, putSource, putStudio, revokeKey } from '../support/grpc-studios.ts';
import { aSharedCore } from './shared-core.ts';
import { millis, type WireLead, type WireTime } from './wire-lead.ts';

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

const listIds = (listed: { readonly leads: readonly WireLead[] }) => listed.leads.map(({ id }) => id);
const idsIn = (messages: readonly Exported[]) => messages.flatMap(listIds);

const aLead = async (overrides: object = {}) =>
  (await leads<{ lead: WireLead }>('CreateLead', aCreateLeadRequest(studioId, overrides))).lead;
const read = async ({ id }: { readonly id: string }) =>
  (await leads<{ lead: WireLead }>('GetLead', { studioId, leadId: id, view: 'LEAD_VIEW_FULL' })).lead;
const anEmail = () => ({ email: `${newId()}@example.org` });

/** Creates a lead by a request of the public API and returns its id. */
async function createdWith({ secretSha256 }: KeyOfStudio): Promise<string> {
  const [outcome] = await exchange(caller, [[{ secretSha256, createLead: aCreation() }]]);
  return outcome?.answer?.leadId ?? expect.fail('no lead was created');
}

const move = async ({ id }: WireLead, stage: string) =>
  (await leads<{ lead: WireLead }>('ChangeLeadStage', { studioId, leadId: id, stage: `LEAD_STAGE_${stage}` })).lead;

/** Returns the ids of leads in the order of their changes, then by id. */
const byUpdate = (changed: readonly WireLead[]) =>
  changed.toSorted((a, b) => millis(a.updateTime) - millis(b.updateTime) || (a.id < b.id ? -1 : 1)).map(({ id }) => id);

/** Returns a time of a lead plus some nanoseconds. */
const later = ({ seconds, nanos }: WireLead['createTime'], by: number) => ({ seconds, nanos: nanos + by });

// @proves leads-34
describe('a filter', () => {
  test('a filter finds leads by stage and source, last changed first', async () => {
    const [form, fair] = [await putSource(caller, studioId), await putSource(caller, studioId)];
    const [first, second, third] = [await aLead({ sourceId: form }), await aLead({ sourceId: fair }), await aLead()];
    const won = byUpdate([await move(third, 'WON'), await move(first, 'WON')]);

    expect(listIds(await list({ stages: ['LEAD_STAGE_WON'] }))).toEqual(won.toReversed());
    expect(listIds(await list({ stages: ['LEAD_STAGE_NEW', 'LEAD_STAGE_LOST'] }))).toEqual([second.id]);
    expect(listIds(await list({ sourceIds: [form.toUpperCase(), fair] }))).toEqual([second.id, first.id]);
    expect(listIds(await list({ stages: ['LEAD_STAGE_WON'], sourceIds: [form] }))).toEqual([first.id]);
    expect(idsIn(await exported({ stages: ['LEAD_STAGE_WON'] }))).toEqual([first.id, third.id]);
    for (const none of [{}, { stages: [], sourceIds: [] }, { createTime: {}, updateTime: {} }]) {
      expect(listIds(await list(none))).toEqual([third.id, second.id, first.id]);
      expect(idsIn(await exported(none))).toEqual([first.id, second.id, third.id]);
    }
  });

  test('a filter compares times to the nanosecond, including the start but not the end', async () => {
    const { id, createTime: at } = await aLead();

    // In the order of ids and of changes, each with and without another condition.
    const lists = ['createTime', 'updateTime'].flatMap((field) =>
      [{}, { stages: ['LEAD_STAGE_NEW'] }].map(
        (more) => async (range: object) => listIds(await list({ ...more, [field]: range })),
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
  test('a filter finds the leads that a key created, even a revoked one, and leads name their key', async () => {
    const [leaked, other] = [await createKey(caller, { studioId }), await createKey(caller, { studioId })];
    const [one, another] = [await createdWith(leaked), await createdWith(other)];
    const again = await createdWith(leaked);
    const { id: byCrm } = await aLead();
    await revokeKey(caller, leaked);

    const { apiKeyId } = leaked.owner;
    const filter = { apiKeyIds: [apiKeyId.toUpperCase()] };
    expect(listIds(await list(filter))).toEqual([again, one]);
    expect(idsIn(await exported(filter))).toEqual([one, again]);
    expect(listIds(await list({ ...filter, stages: ['LEAD_STAGE_NEW'] }))).toEqual([again, one]);
    expect(listIds(await list({ apiKeyIds: [newId()] }))).toEqual([]);
    const counted = await leads<{ bySource: object[] }>('CountLeads', { studioId, filter });
    expect(counted.bySource).toMatchObject([{ count: 2 }]);
    const listKeys = (of: readonly WireLead[]) => of.map((lead) => [lead.id, (lead as { apiKeyId?: string }).apiKeyId]);
    const all = [
      [byCrm, undefined],
      [again, apiKeyId],
      [another, other.owner.apiKeyId],
      [one, apiKeyId],
    ];
    expect(listKeys((await list(undefined)).leads)).toEqual(all);
    expect(listKeys((await exported(undefined)).flatMap((each) => each.leads)).toReversed()).toEqual(all);
    const { lead } = await leads<{ lead: WireLead }>('GetLead', { studioId, leadId: one });
    expect(listKeys([lead])).toEqual([[one, apiKeyId]]);
  });

  // @proves leads-35
  test('counts leads by stage and source, only in their own studio', async () => {
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
    expect(await findRefusal(leads('CountLeads', { studioId: 'nowhere' }))).toMatchObject({
      reason: 'STUDIO_NOT_FOUND',
    });
  });

  test('a page token continues only a list with an equivalent filter', async () => {
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
      expect([...listIds({ leads: first }), ...listIds(second)]).toEqual(all.map(({ id }) => id).toReversed());
      for (const other of filters.filter((each) => each !== filter)) {
        expect(await findRefusal(list(other, { pageToken }))).toMatchObject({ fields: ['pageToken'] });
      }
      const [message] = await exported(filter);
      for (const other of filters.filter((each) => each !== filter)) {
        const resumed = exported(other, { resumeToken: message?.resumeToken });
        expect(await findRefusal(resumed)).toMatchObject({ fields: ['resumeToken'] });
      }
      expect(idsIn(await exported(filter, { resumeToken: message?.resumeToken }))).toEqual([]);
    }
  });

  test('an export by changes resumes after the last processed message', async () => {
    await Promise.all(times(101, () => aLead()));
    const filter = { updateTime: { startTime: { seconds: 1 } } };
    const messages = await exported(filter);
    expect(messages.map(listIds).map(({ length }) => length)).toEqual([100, 1]);
    const [first] = messages as [Exported];
    const changed = await move(first.leads[0] as WireLead, 'LOST');

    const rest = await exported(filter, { resumeToken: first.resumeToken });

    expect(idsIn(rest)).toEqual([...listIds(messages[1] as Exported), changed.id]);
    expect(millis(changed.updateTime)).toBeGreaterThan(millis(first.leads[0]?.updateTime as WireLead['updateTime']));
  });
});

// @proves leads-9
describe('FindLeads', () => {
  const find = (contact: object, more: object = {}) =>
    leads<Listed & { readonly mayBeIncomplete: boolean }>('FindLeads', { studioId, contact, ...more });

  test('FindLeads reports that leads may be missing if some were opened without a region', async () => {
    const contact = { phone: '+49 30 1234567' };
    const putRegion = (id: string, regionCode: string) =>
      caller.call('DirectoryService/PutStudio', { studio: { id, regionCode, status: 'STUDIO_STATUS_ACTIVE' } });
    expect(await find(contact)).toMatchObject({ mayBeIncomplete: true });
    await putRegion(studioId, 'DE');
    expect(await find(contact)).toMatchObject({ mayBeIncomplete: true });
    expect(await find(anEmail())).toMatchObject({ mayBeIncomplete: false });

    const other = newId();
    for (const region of ['DE', 'AT']) await putRegion(other, region);
    expect(await find(contact, { studioId: other })).toMatchObject({ mayBeIncomplete: false });
  });

  test('FindLeads returns all leads in pages', async () => {
    const contact = anEmail();
    const all = [await aLead({ contact })];
    for (const _ of [1, 2]) {
      await move(all[0] as WireLead, 'LOST');
      all.unshift(await aLead({ contact }));
    }
    const first = await find(contact, { pageSize: 2 });
    const second = await find(contact, { pageSize: 2, pageToken: first.nextPageToken });
    expect([listIds(first), listIds(second)]).toEqual(
      [all.slice(0, 2), all.slice(2)].map((leads) => listIds({ leads })),
    );
    expect(second.nextPageToken).toBe('');
  });
});

// @proves leads-36
test('ListLeadEvents has moves, corrections and enquiries in order, without their texts', async () => {
  const KINDS = ['stageMove', 'correction', 'erasure', 'enquiry'] as const;
  type Event = { readonly time: WireTime } & { readonly [Kind in (typeof KINDS)[number]]?: object };
  const findKind = (event: Event) => KINDS.find((kind) => event[kind]);
  const listEvents = async (leadId: string) =>
    (await leads<{ events: Event[] }>('ListLeadEvents', { studioId, leadId })).events;
  const TEXTS = ['Secret Name', 'secret@example.org', 'a secret note', 'another secret'];
  const [displayName, email, note, said] = TEXTS;
  const source = await putSource(caller, studioId);
  const lead = await aLead({ displayName, contact: { email }, note });
  const ofLead = { studioId, leadId: lead.id };
  expect(await listEvents(lead.id)).toEqual([]);

  const toContacted = { ...ofLead, stage: 'LEAD_STAGE_CONTACTED', memberId: 'seller-1' };
  const moved = await leads<{ lead: WireLead }>('ChangeLeadStage', toContacted);
  const again = aLead({ displayName, contact: { email }, note: said, sourceId: source });
  expect(await findRefusal(again)).toMatchObject({ reason: 'LEAD_ALREADY_OPEN' });
  const correction = { studioId, lead: { id: lead.id, note: said, sourceId: source } };
  const corrected = await leads<{ lead: WireLead }>('UpdateLead', correction);

  const events = await listEvents(lead.id.toUpperCase());
  const byKind = Map.groupBy(events, findKind);
  expect(events).toHaveLength(3);
  const move = { from: 'LEAD_STAGE_NEW', to: 'LEAD_STAGE_CONTACTED' };
  expect(byKind.get('stageMove')).toMatchObject([
    { time: moved.lead.updateTime, memberId: 'seller-1', stageMove: move },
  ]);
  expect(byKind.get('correction')).toMatchObject([
    { time: corrected.lead.updateTime, correction: { fields: ['source_id', 'note'] } },
  ]);
  expect(byKind.get('enquiry')).toMatchObject([{ enquiry: { sourceId: source } }]);
  // An enquiry may have the same millisecond as the move before it or the correction after it.
  const times = events.map(({ time }) => millis(time));
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  expect(TEXTS.filter((secret) => JSON.stringify(events).includes(secret))).toEqual([]);

  await leads('EraseLead', { ...ofLead, memberId: 'owner' });
  const rest = await listEvents(lead.id);
  expect(rest.map(findKind)).toEqual(['stageMove', 'correction', 'erasure']);
  expect(rest.at(-1)).toMatchObject({ memberId: 'owner' });
  expect(await findRefusal(listEvents(newId()))).toMatchObject({ reason: 'LEAD_NOT_FOUND' });
});

// @proves leads-8
describe('UpdateLead', () => {
  const update = async (lead: object, more: object = {}) =>
    (await leads<{ lead: WireLead }>('UpdateLead', { studioId, lead, ...more })).lead;
  const mask = (...paths: string[]) => ({ updateMask: { paths } });

  // @proves leads-44
  test('UpdateLead and ChangeLeadStage return the revision of the feed, even without a change', async () => {
    const consumer = { name: 'of-one', studioIds: [studioId] };
    await caller.call('ConsumerService/CreateConsumer', { consumer, start: 'CONSUMER_START_NOW' });
    const lead = await aLead();
    const inFeed = async () => {
      const { changes } = await leads<{ changes: { revision: number }[] }>('PullLeadChanges', { consumer: 'of-one' });
      return changes[0]?.revision;
    };
    const call = async (method: string, request: object) => {
      const { revision } = await leads<{ revision: number }>(method, { studioId, ...request });
      expect({ method, request, revision }).toEqual({ method, request, revision: await inFeed() });
      return revision;
    };
    const moved = { leadId: lead.id, stage: 'LEAD_STAGE_CONTACTED', requestId: newId() };
    const corrected = { lead: { id: lead.id, note: 'x' }, requestId: newId(), expectedUpdateTime: undefined };

    const first = await call('ChangeLeadStage', moved);
    expect(await call('ChangeLeadStage', { ...moved, requestId: newId() })).toBe(first);
    const { updateTime } = await read(lead);
    const second = await call('UpdateLead', { ...corrected, expectedUpdateTime: updateTime });
    expect(second).toBeGreaterThan(first);
    expect(await call('UpdateLead', { ...corrected, expectedUpdateTime: updateTime })).toBe(second);
    expect(await call('ChangeLeadStage', moved)).toBe(second);
  });

  test('UpdateLead changes exactly the fields of a mask, and clears those that are not given', async () => {
    const lead = await read(await aLead({ note: 'Calls back.', sourceId: await putSource(caller, studioId) }));
    const others = { displayName: 'x', contact: anEmail() };

    const answer = await update({ id: lead.id, ...others }, mask('note', 'source_id'));

    const { note, sourceId, ...rest } = lead;
    expect(answer).toEqual({ ...rest, updateTime: answer.updateTime });
  });

  test("UpdateLead accepts only an enabled source of the studio or the lead's current one", async () => {
    const sourceId = await putSource(caller, studioId);
    const lead = await read(await aLead({ sourceId }));
    await caller.call('DirectoryService/PutLeadSource', {
      leadSource: { studioId, id: sourceId, name: 'Form', enabled: false },
    });

    for (const other of [newId(), await putSource(caller, studioId, false)]) {
      expect(await findRefusal(update({ id: lead.id, sourceId: other, note: 'x' }))).toMatchObject({
        code: 'FAILED_PRECONDITION',
        reason: 'SOURCE_INVALID',
      });
    }
    expect(await read(lead)).toEqual(lead);
    await expect(update({ id: lead.id, sourceId: sourceId.toUpperCase(), note: 'x' })).resolves.toMatchObject({
      sourceId,
      note: 'x',
    });
  });

  test('UpdateLead checks the request, lead, time, source and contact, in this order', async () => {
    const [lead, other] = [await aLead(), await read(await aLead())];
    const faulty = { displayName: '', id: newId(), sourceId: newId(), contact: other.contact };
    const all = mask('display_name', 'contact', 'source_id');
    const stale = { expectedUpdateTime: { seconds: 1, nanos: 0 } };
    const findReason = async (change: object, more: object) =>
      (await findRefusal(update({ ...faulty, ...change }, { ...all, ...stale, ...more }))).reason;

    expect(await findReason({}, {})).toBe('INVALID_REQUEST');
    const valid = { displayName: 'Eda' };
    expect(await findReason(valid, {})).toBe('LEAD_NOT_FOUND');
    const found = { ...valid, id: lead.id };
    expect(await findReason(found, {})).toBe('UPDATE_TIME_MISMATCH');
    const inTime = { expectedUpdateTime: lead.updateTime };
    expect(await findReason(found, inTime)).toBe('SOURCE_INVALID');
    expect(await findReason({ ...found, sourceId: await putSource(caller, studioId) }, inTime)).toBe(
      'LEAD_ALREADY_OPEN',
    );
  });
});

test('GetLead and ListLeads return the current lead, with its contact only in the full view', async () => {
  const contact = { phone: '+49 (0)30 1234567' };
  const { id } = await aLead({ contact });
  const won = { ...(await move({ id } as WireLead, 'WON')), contact: null };
  const get = async (view?: string, leadId = id) =>
    (await leads<{ lead: WireLead }>('GetLead', { studioId, leadId, ...(view && { view }) })).lead;

  expect(await get('LEAD_VIEW_FULL')).toEqual({ ...won, contact });
  expect(await get('LEAD_VIEW_BASIC')).toEqual(won);
  expect(await get(undefined, id.toUpperCase())).toEqual(won);
  expect((await list(undefined, { view: 'LEAD_VIEW_FULL' })).leads).toMatchObject([{ ...won, contact }]);
  expect((await list(undefined, { view: 'LEAD_VIEW_BASIC' })).leads).toMatchObject([won]);
});
