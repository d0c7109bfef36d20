import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { LeadStage, LeadView } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import {
  aCapture,
  anEmail,
  aService,
  BOTH_SCOPES,
  expectProblem,
  LEADS,
  PUBLIC_URL,
  readLead,
} from '../../support/service.ts';

const service = aService();

const aPhone = (value: string) => ({ type: 'phone', value });
const linkTo = (id: string) => `<${PUBLIC_URL}${LEADS}/${id}>; rel="existing-lead"`;

describe('a contact with an open lead', () => {
  test('a contact with an open lead gets no second one; keys that may read get a link to the first', {
    tags: ['4.1.3', '4.1.existing-lead', '7.integration_lead_already_open'],
  }, async () => {
    const contact = anEmail();
    for (const scopes of [BOTH_SCOPES, [ApiKeyScope.LEADS_CREATE]]) {
      const { secret, studioId } = await service.aStudioWithKey({ scopes });
      const { id } = await readLead(await service.post(secret, aCapture({ contact })), 201);

      const response = await service.post(secret, aCapture({ contact, displayName: 'Somebody else' }));

      const isLinked = scopes === BOTH_SCOPES;
      expect(response.headers.get('link')).toBe(isLinked ? linkTo(id) : null);
      expect(`${isLinked || [...response.headers.values()].join()}`).not.toContain(id);
      const problem = await expectProblem(response, 409, 'integration_lead_already_open', []);
      expect(JSON.stringify(problem)).not.toContain(id);
      expect(await service.countLeads(studioId)).toBe(1);
      if (isLinked) expect((await readLead(await service.get(secret, `/${id}`))).displayName).toBe('Ada Lovelace');
    }
  });

  test('a contact gets another lead once its first is closed, which then cannot be reopened', {
    tags: ['3.1.open', '3.1.moves', '4.1.3', '4.1.same-contact'],
  }, async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const contact = anEmail('12345@12345');
    await readLead(await service.post(secret, aCapture({ contact: aPhone(contact.value) })), 201);
    const { id: leadId } = await readLead(await service.post(secret, aCapture({ contact })), 201);
    const move = (stage: LeadStage) => service.leads.changeLeadStage({ studioId, leadId, stage });
    for (const stage of [LeadStage.CONTACTED, LeadStage.TRIAL_BOOKED, LeadStage.TRIAL_ATTENDED]) {
      await move(stage);
      await expectProblem(await service.post(secret, aCapture({ contact })), 409, 'integration_lead_already_open');
    }
    await move(LeadStage.WON);
    const next = await readLead(await service.post(secret, aCapture({ contact })), 201);
    await expect(move(LeadStage.NEW)).rejects.toThrow();
    await service.leads.changeLeadStage({ studioId, leadId: next.id, stage: LeadStage.LOST });
    await readLead(await service.post(secret, aCapture({ contact })), 201);
    expect(await service.countLeads(studioId)).toBe(4);
  });

  // @proves leads-6
  test("an open lead still blocks its phone number after the studio's region changes", async () => {
    const { secret, studioId } = await service.aStudioWithKey({ regionCode: 'DE' });
    const { id } = await readLead(await service.post(secret, aCapture({ contact: aPhone('0171 2345678') })), 201);
    await service.directory.putStudio({
      studio: { id: studioId, regionCode: 'FR' },
      updateMask: { paths: ['region_code'] },
    });

    for (const value of ['0171 2345678', '+49 171 2345678']) {
      const response = await service.post(secret, aCapture({ contact: aPhone(value) }));
      await expectProblem(response, 409, 'integration_lead_already_open');
      const contact = { value: { case: 'phone', value } } as const;
      expect((await service.leads.findLeads({ studioId, contact })).leads.map((lead) => lead.id)).toEqual([id]);
    }
    await readLead(await service.post(secret, aCapture({ contact: aPhone('0171 3456789') })), 201);
    const inGermany = await service.post(secret, aCapture({ contact: aPhone('+49 171 3456789') }));
    await readLead(inGermany, 201);
    expect(await service.countLeads(studioId)).toBe(3);
  });

  test('an enquiry is stored for the CRM unless the studio opts out, with the same response', {
    tags: ['4.1.enquiry'],
  }, async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const contact = anEmail();
    const { id } = await readLead(await service.post(secret, aCapture({ contact })), 201);
    const read = async () => [
      await (await service.get(secret, `/${id}`)).text(),
      await (await service.get(secret, '')).text(),
    ];
    const before = await read();
    const ask = async (note: string) => {
      const headers = { 'x-request-id': 'asked-again', 'idempotency-key': randomUUID() };
      const response = await service.post(secret, aCapture({ contact, note }), headers);
      const named = ['content-type', 'link', 'cache-control'].map((name) => response.headers.get(name));
      return [response.status, await response.text(), ...named];
    };
    const keptNotes = async () => {
      const { lead } = await service.leads.getLead({ studioId, leadId: id, view: LeadView.FULL });
      return lead?.enquiries.map(({ note }) => note);
    };

    const kept = await ask('And on Tuesday?');
    await service.directory.putStudio({
      studio: { id: studioId, keepEnquiries: false },
      updateMask: { paths: ['keep_enquiries'] },
    });
    const dropped = await ask('Or on Wednesday?');

    expect(dropped).toEqual(kept);
    expect(kept[0]).toBe(409);
    expect(await read()).toEqual(before);
    expect(await keptNotes()).toEqual(['And on Tuesday?']);
    await service.directory.putStudio({ studio: { id: studioId }, updateMask: { paths: ['keep_enquiries'] } });
    expect(await ask('Or on Thursday?')).toEqual(kept);
    expect(await keptNotes()).toEqual(['And on Tuesday?', 'Or on Thursday?']);
  });
});
