import fc from 'fast-check';
import { LeadStage, LeadView, type LeadStage as Stage } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { conflictingLeadId } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { asFarAsDefinite, definiteAnswer, definiteOutcome } from './definite-outcomes.ts';
import { aScenario } from './scenario.ts';
import { createSeparateLead, inShort, leadIdIn, makeSeparateStudio, separateLead } from './separate-studio.ts';

/** A number without its country code, in two spellings. */
const [SPELLED, OTHERWISE] = ['030 901820', '(030) 90-18-20'];

/**
 * In a separate studio everything changes around a lead: its source is disabled, the studio gets another region, the lead is
 * closed, opened and closed. A repetition of its creation gets the original response all the while, and the same number, in another spelling, is
 * the lead's until it is closed. Finally its key is revoked, and refused from then on.
 */
export const changeAroundLead = aScenario({
  weight: 2,
  choice: fc.record({ core: fc.nat(1) }),
  run: (sim, { core }) => asFarAsDefinite(() => change(sim, core)),
});

async function change(sim: Simulation, core: number): Promise<void> {
  const studio = await makeSeparateStudio(sim);
  const { directory, leads, apiKeys } = sim.crmAt(core);
  const { id: studioId, sourceId, apiKeyId } = studio;
  const expect = (result: string, expected: string, what: string) => {
    if (result !== expected)
      sim.history.fail(`in ${studioId}, where all changes around a lead, ${what}: ${result}, not ${expected}`);
  };
  const changed = (what: string, call: () => Promise<unknown>) =>
    definiteOutcome(sim, `${what} of ${studioId} changes`, call);
  const lead = { ...separateLead(sim, studioId, 'first', { type: 'phone', value: SPELLED }), sourceId };
  const original = await createSeparateLead(sim, studio, lead);
  expect(inShort(original), '201', 'it is created');
  const id = leadIdIn(original);
  const isReplayed = async (when: string) => {
    const { text, headers } = await createSeparateLead(sim, studio, lead);
    expect(
      text === original.text && headers.has('idempotent-replayed') ? 'the same' : text,
      'the same',
      `its repetition ${when}`,
    );
  };
  const again = (name: string) =>
    createSeparateLead(sim, studio, separateLead(sim, studioId, name, { type: 'phone', value: OTHERWISE }));

  await isReplayed('at once');
  const leadSource = { studioId, id: sourceId, name: 'Form', enabled: false };
  await changed('the source', () => directory.putLeadSource({ leadSource }, CRM_TIMEOUT));
  await isReplayed('once its source is disabled');
  const updateMask = { paths: ['region_code'] };
  await changed('the region', () =>
    directory.putStudio({ studio: { id: studioId, regionCode: 'US' }, updateMask }, CRM_TIMEOUT),
  );
  await isReplayed('in another region');
  const inTheWay = async (when: string) =>
    expect(conflictingLeadId(await again('second')) ?? 'none', id, `the lead in the way of its number ${when}`);
  await inTheWay('in another region');
  const contact = { value: { case: 'phone', value: lead.contact.value } } as const;
  const found = await definiteOutcome(sim, `the leads of a number of ${studioId} are found`, () =>
    leads.findLeads({ studioId, contact }, CRM_TIMEOUT),
  );
  expect(
    'answer' in found ? found.answer.leads.map((each) => each.id).join() : found.refused,
    id,
    'the leads of its number',
  );
  const moveTo = (stage: Stage) =>
    changed('the stage', () => leads.changeLeadStage({ studioId, leadId: id, stage }, CRM_TIMEOUT));
  for (const stage of [LeadStage.LOST, LeadStage.CONTACTED]) await moveTo(stage);
  await inTheWay('once it is open again');
  await moveTo(LeadStage.WON);
  await isReplayed('once it is closed');
  expect(inShort(await again('third')), '201', 'the same number once it is closed');
  await moveTo(LeadStage.NEW);
  const shown = await definiteOutcome(sim, `${id} is read`, () =>
    leads.getLead({ studioId, leadId: id, view: LeadView.FULL }, CRM_TIMEOUT),
  );
  expect(
    'answer' in shown ? `${shown.answer.lead?.stage}` : shown.refused,
    `${LeadStage.WON}`,
    'its stage, beside the other one',
  );
  await changed('the key', () => apiKeys.revokeApiKey({ studioId, memberId: 'owner', apiKeyId }, CRM_TIMEOUT));
  const refused = await definiteAnswer(sim, studio.secret, { name: 'get', leadId: id });
  expect(inShort(refused), '401 integration_key_invalid', 'its key');
}
