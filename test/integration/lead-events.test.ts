import { beforeEach, describe, expect, test } from 'vitest';
import { newId } from '../../src/domain/new-id.ts';
import { aCreateLeadRequest, refusalOf } from '../support/grpc.ts';
import { putSource, putStudio } from '../support/grpc-studios.ts';
import { aSharedCore } from './shared-core.ts';
import type { WireLead, WireTime } from './wire-lead.ts';

const { caller } = aSharedCore();
let studioId: string;
beforeEach(async () => {
  studioId = await putStudio(caller);
});

const KINDS = ['stageMove', 'correction', 'erasure', 'enquiry'] as const;

type Event = { readonly time: WireTime } & { readonly [Kind in (typeof KINDS)[number]]?: object };

const kindOf = (event: Event) => KINDS.find((kind) => event[kind]);

const leads = <Answer>(method: string, request: object) => caller.call<Answer>(`LeadIntakeService/${method}`, request);
const eventsOf = async (leadId: string) =>
  (await leads<{ events: Event[] }>('ListLeadEvents', { studioId, leadId })).events;

/** A note, a name and an address that no response may have. */
const TEXTS = ['Secret Name', 'secret@example.org', 'a secret note', 'another secret'];

// @proves leads-36
describe('ListLeadEvents', () => {
  test('has moves, corrections and enquiries in their order, with who did them, and none of the texts', async () => {
    const [displayName, email, note, said] = TEXTS;
    const source = await putSource(caller, studioId);
    const creation = aCreateLeadRequest(studioId, { displayName, contact: { email }, note });
    const { lead } = await leads<{ lead: WireLead }>('CreateLead', creation);
    const ofLead = { studioId, leadId: lead.id };
    expect(await eventsOf(lead.id)).toEqual([]);

    const move = { ...ofLead, stage: 'LEAD_STAGE_CONTACTED', memberId: 'seller-1' };
    const moved = await leads<{ lead: WireLead }>('ChangeLeadStage', move);
    const again = aCreateLeadRequest(studioId, { displayName, contact: { email }, note: said, sourceId: source });
    expect(await refusalOf(leads('CreateLead', again))).toMatchObject({ reason: 'LEAD_ALREADY_OPEN' });
    const correction = { studioId, lead: { id: lead.id, note: said, sourceId: source } };
    const corrected = await leads<{ lead: WireLead }>('UpdateLead', correction);

    const events = await eventsOf(lead.id.toUpperCase());
    const byKind = Map.groupBy(events, kindOf);
    expect(events).toHaveLength(3);
    expect(byKind.get('stageMove')).toMatchObject([
      {
        time: moved.lead.updateTime,
        memberId: 'seller-1',
        stageMove: { from: 'LEAD_STAGE_NEW', to: 'LEAD_STAGE_CONTACTED' },
      },
    ]);
    expect(byKind.get('correction')).toMatchObject([
      { time: corrected.lead.updateTime, correction: { fields: ['source_id', 'note'] } },
    ]);
    expect(byKind.get('enquiry')).toMatchObject([{ enquiry: { sourceId: source } }]);
    // An enquiry may have the millisecond of the move before it, or of the correction after it.
    const millis = events.map(({ time: { seconds, nanos } }) => seconds * 1000 + nanos / 1e6);
    expect(millis).toEqual(millis.toSorted((a, b) => a - b));
    expect(TEXTS.filter((secret) => JSON.stringify(events).includes(secret))).toEqual([]);

    await leads('EraseLead', { ...ofLead, memberId: 'owner' });
    const rest = await eventsOf(lead.id);
    expect(rest.map(kindOf)).toEqual(['stageMove', 'correction', 'erasure']);
    expect(rest.at(-1)).toMatchObject({ memberId: 'owner' });
  });

  test("is refused for an unknown lead, for another studio's, and for ids that are none", async () => {
    const theirs = await putStudio(caller);
    const { lead } = await leads<{ lead: WireLead }>('CreateLead', aCreateLeadRequest(theirs));
    await leads('ChangeLeadStage', { studioId: theirs, leadId: lead.id, stage: 'LEAD_STAGE_WON' });

    for (const leadId of [newId(), lead.id]) {
      expect(await refusalOf(eventsOf(leadId))).toMatchObject({ reason: 'LEAD_NOT_FOUND' });
    }
    expect(await refusalOf(eventsOf('lead-1'))).toMatchObject({ reason: 'INVALID_REQUEST', fields: ['leadId'] });
  });
});
