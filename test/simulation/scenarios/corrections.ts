import fc from 'fast-check';
import { AuditAction } from '../../../proto/gen/leadintake/v1/audit_pb.ts';
import { type Contact, type Lead, LeadStage, LeadView } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { ownContact } from '../contacts.ts';
import { conflictingLeadId, type RestAnswer } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { outcomeOf } from './crm.ts';
import { asFarAsDefinite, definiteAnswer, definiteOutcome, untilDefinite } from './definite-outcomes.ts';
import { aScenario } from './scenario.ts';
import { createSeparateLead, inShort, leadIdIn, makeSeparateStudio, separateLead } from './separate-studio.ts';

/** The new data of a lead. */
interface Correction {
  readonly displayName?: string;
  readonly contact: { readonly value: { readonly case: 'email'; readonly value: string } };
}

/**
 * In a separate studio a lead gets another contact, and then two leads get a third one concurrently: the former
 * contact is free, the new one is taken, exactly one of the two has the third and is found by it, and repeating the
 * creation returns the original response.
 */
export const correctLeads = aScenario({
  weight: 2,
  choice: fc.record({ core: fc.nat(1) }),
  run: (sim, { core }) => asFarAsDefinite(() => correctTwice(sim, core)),
});

async function correctTwice(sim: Simulation, core: number): Promise<void> {
  const studio = await makeSeparateStudio(sim);
  const expect = (result: string, expected: string, what: string) => {
    if (result !== expected)
      sim.history.fail(`in ${studio.id}, where leads are corrected, ${what}: ${result}, not ${expected}`);
  };
  const emailOf = (name: string) => ownContact(sim.personal, sim.uuid('contact', studio.id, name));
  const to = (name: string): Correction => ({ contact: { value: { case: 'email', value: emailOf(name).value } } });
  const create = (name: string, contact = emailOf(name)) =>
    createSeparateLead(sim, studio, separateLead(sim, studio.id, name, contact));

  const original = await create('first');
  expect(inShort(original), '201', 'the first is created');
  const id = leadIdIn(original);
  const displayName = `Eda ${sim.personal}`;
  expect(
    await correct(sim, core, studio.id, id, { ...to('second'), displayName }),
    'corrected',
    'it gets another contact',
  );

  const again = await create('first');
  expect(again.text === original.text ? 'the same' : 'another', 'the same', 'the answer to its repetition');
  const shown = JSON.parse((await definiteAnswer(sim, studio.secret, { name: 'get', leadId: id })).text);
  expect(shown.lead?.displayName === displayName ? 'corrected' : 'another', 'corrected', 'its name');
  const former = await create('of the former contact', emailOf('first'));
  expect(inShort(former), '201', 'the former contact is sent');
  expect(inTheWay(await create('of the other contact', emailOf('second'))), id, 'the other contact is sent');

  const both = [id, leadIdIn(former)];
  const results = await Promise.all(
    both.map((each, index) => correct(sim, core + index, studio.id, each, to('third'))),
  );
  expect(results.toSorted().join(), 'LEAD_ALREADY_OPEN,corrected', 'two get one contact');
  const winner = both[results.indexOf('corrected')] ?? '';
  expect(inTheWay(await create('of the last contact', emailOf('third'))), winner, 'the last contact is sent');
  const foundBy = async (name: string) => {
    const outcome = await definiteOutcome(sim, `the leads of a contact of ${studio.id} are found`, () =>
      sim.crmAt(core).leads.findLeads({ studioId: studio.id, ...to(name) }, CRM_TIMEOUT),
    );
    return 'answer' in outcome ? outcome.answer.leads.map((lead) => lead.id).join() : outcome.refused;
  };
  expect(await foundBy('third'), winner, 'the leads of the last contact, open');
  const closing = { studioId: studio.id, leadId: winner, stage: LeadStage.WON };
  await definiteOutcome(sim, `${winner} is closed`, () => sim.crmAt(core).leads.changeLeadStage(closing, CRM_TIMEOUT));
  expect(await foundBy('third'), winner, 'the leads of the last contact, closed');
  const events = await definiteOutcome(sim, `the events of ${id} are listed`, () =>
    sim.crmAt(core).audit.listAuditEvents({ studioId: studio.id, leadId: id }, CRM_TIMEOUT),
  );
  const kept = 'answer' in events ? events.answer.events : [];
  const fields = kept.flatMap(({ action, to = '' }) => (action === AuditAction.LEAD_UPDATED ? [to] : []));
  expect(fields.join('; '), `${winner === id ? 'contact; ' : ''}displayName,contact`, 'the fields in its events');
}

/**
 * Corrects a lead on the condition that it is as just read, until the outcome is certain: an earlier attempt that
 * arrives late fails, because the lead's update time has changed.
 */
function correct(sim: Simulation, core: number, studioId: string, id: string, correction: Correction): Promise<string> {
  const { leads } = sim.crmAt(core);
  return untilDefinite(sim, `a lead of ${studioId} is corrected`, async () => {
    const found = await outcomeOf(leads.getLead({ studioId, leadId: id, view: LeadView.FULL }, CRM_TIMEOUT));
    const lead = 'answer' in found ? found.answer.lead : undefined;
    if (!lead) return undefined;
    if (emailIn(lead.contact) === correction.contact.value.value) return 'corrected';
    const outcome = await outcomeOf(
      leads.updateLead({ studioId, lead: { id, ...correction }, ...expecting(lead) }, CRM_TIMEOUT),
    );
    if ('answer' in outcome) return 'corrected';
    return 'refused' in outcome && outcome.refused !== 'UPDATE_TIME_MISMATCH' ? outcome.refused : undefined;
  });
}

const expecting = ({ updateTime }: Lead) => (updateTime ? { expectedUpdateTime: updateTime } : {});

const emailIn = (contact: Contact | undefined): string | undefined => contact?.value.value;

/** Returns the id of the lead that conflicts with a creation, or else the response in short. */
function inTheWay(answer: RestAnswer): string {
  const link = conflictingLeadId(answer);
  return answer.code === 'integration_lead_already_open' && link ? link : inShort(answer);
}
