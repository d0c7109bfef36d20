import { beforeEach, describe, expect, test } from 'vitest';
import { newId } from '../../src/domain/new-id.ts';
import { aCreateLeadRequest, refusalOf } from '../support/grpc.ts';
import { putSource, putStudio } from '../support/grpc-studios.ts';
import { aSharedCore } from './shared-core.ts';
import type { WireLead } from './wire-lead.ts';

const { caller } = aSharedCore();
let studioId: string;

beforeEach(async () => {
  studioId = await putStudio(caller);
});

const leads = <Answer>(method: string, request: object) => caller.call<Answer>(`LeadIntakeService/${method}`, request);
const capture = (overrides?: object) => aCreateLeadRequest(studioId, overrides);
const anEmail = () => ({ email: `${newId()}@example.org` });

/** Creates a lead; returns it with its contact. */
async function aLead(overrides: object = {}): Promise<WireLead> {
  const { lead } = await leads<{ lead: WireLead }>('CreateLead', capture(overrides));
  return read(lead);
}

const read = async ({ id }: { readonly id: string }) =>
  (await leads<{ lead: WireLead }>('GetLead', { studioId, leadId: id, view: 'LEAD_VIEW_FULL' })).lead;
const update = async (lead: object, more: object = {}) =>
  (await leads<{ lead: WireLead }>('UpdateLead', { studioId, lead, ...more })).lead;
const mask = (...paths: string[]) => ({ updateMask: { paths } });

// @proves leads-8
describe('UpdateLead', () => {
  // @proves leads-44
  test('and ChangeLeadStage return the revision of the change feed, also where nothing changes or is repeated', async () => {
    const lead = await aLead();
    const inFeed = async () => {
      const { changes } = await leads<{ changes: { lead: WireLead; revision: number }[] }>('PullLeadChanges', {
        max: 100,
      });
      return changes.find((change) => change.lead.id === lead.id)?.revision;
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

  test('changes exactly the fields of a mask, and clears those that are not given', async () => {
    const lead = await aLead({ note: 'Calls back.', sourceId: await putSource(caller, studioId) });
    const others = { displayName: 'x', contact: anEmail() };

    const answer = await update({ id: lead.id, ...others }, mask('note', 'source_id'));

    const { note, sourceId, ...rest } = lead;
    expect(answer).toEqual({ ...rest, updateTime: answer.updateTime });
  });

  test('accepts only an enabled source of the studio, or the current one of the lead', async () => {
    const sourceId = await putSource(caller, studioId);
    const lead = await aLead({ sourceId });
    await caller.call('DirectoryService/PutLeadSource', {
      leadSource: { studioId, id: sourceId, name: 'Form', enabled: false },
    });

    const others = [
      newId(),
      await putSource(caller, await putStudio(caller)),
      await putSource(caller, studioId, false),
    ];
    for (const other of others) {
      expect(await refusalOf(update({ id: lead.id, sourceId: other, note: 'x' }))).toMatchObject({
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

  test('checks the request, the lead, the time, the source and the contact, in this order', async () => {
    const [lead, other] = [await aLead(), await aLead()];
    const faulty = { displayName: '', id: newId(), sourceId: newId(), contact: other.contact };
    const all = mask('display_name', 'contact', 'source_id');
    const stale = { expectedUpdateTime: { seconds: 1, nanos: 0 } };
    const reasonOf = async (change: object, more: object) =>
      (await refusalOf(update({ ...faulty, ...change }, { ...all, ...stale, ...more }))).reason;

    expect(await reasonOf({}, {})).toBe('INVALID_REQUEST');
    const valid = { displayName: 'Eda' };
    expect(await reasonOf(valid, {})).toBe('LEAD_NOT_FOUND');
    const found = { ...valid, id: lead.id };
    expect(await reasonOf(found, {})).toBe('UPDATE_TIME_MISMATCH');
    const inTime = { expectedUpdateTime: lead.updateTime };
    expect(await reasonOf(found, inTime)).toBe('SOURCE_INVALID');
    expect(await reasonOf({ ...found, sourceId: await putSource(caller, studioId) }, inTime)).toBe('LEAD_ALREADY_OPEN');
  });
});
