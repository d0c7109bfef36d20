import fc from 'fast-check';
import { AuditAction } from '../../../proto/gen/leadintake/v1/audit_pb.ts';
import { type Contact, type Lead, LeadStage, LeadView } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { ownContact } from '../contacts.ts';
import type { RestAnswer } from '../history.ts';
import type { Life } from '../life.ts';
import { createApart, crmOf, inShort, leadApart, leadIdIn, makeStudioApart, WAITS } from './apart.ts';
import { outcomeOf } from './crm.ts';
import { aScenario } from './scenario.ts';
import { answered, asFarAsTold, called, untilTold } from './until-told.ts';

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
  happen: (life, { core }) => asFarAsTold(() => correctTwice(life, core)),
});

async function correctTwice(life: Life, core: number): Promise<void> {
  const studio = await makeStudioApart(life);
  const expect = (told: string, expected: string, what: string) => {
    if (told !== expected)
      life.history.breaks(`in ${studio.id}, where leads are corrected, ${what}: ${told}, not ${expected}`);
  };
  const emailOf = (name: string) => ownContact(life.personal, life.uuid('contact', studio.id, name));
  const to = (name: string): Correction => ({ contact: { value: { case: 'email', value: emailOf(name).value } } });
  const create = (name: string, contact = emailOf(name)) =>
    createApart(life, studio, leadApart(life, studio.id, name, contact));

  const original = await create('first');
  expect(inShort(original), '201', 'the first is created');
  const id = leadIdIn(original);
  const displayName = `Eda ${life.personal}`;
  expect(
    await correct(life, core, studio.id, id, { ...to('second'), displayName }),
    'corrected',
    'it gets another contact',
  );

  const again = await create('first');
  expect(again.text === original.text ? 'the same' : 'another', 'the same', 'the answer to its repetition');
  const shown = JSON.parse((await answered(life, studio.secret, { name: 'get', leadId: id })).text);
  expect(shown.lead?.displayName === displayName ? 'corrected' : 'another', 'corrected', 'its name');
  const former = await create('of the former contact', emailOf('first'));
  expect(inShort(former), '201', 'the former contact is sent');
  expect(inTheWay(await create('of the other contact', emailOf('second'))), id, 'the other contact is sent');

  const both = [id, leadIdIn(former)];
  const told = await Promise.all(both.map((each, index) => correct(life, core + index, studio.id, each, to('third'))));
  expect(told.toSorted().join(), 'LEAD_ALREADY_OPEN,corrected', 'two get one contact');
  const winner = both[told.indexOf('corrected')] ?? '';
  expect(inTheWay(await create('of the last contact', emailOf('third'))), winner, 'the last contact is sent');
  const foundBy = async (name: string) => {
    const told = await called(life, `the leads of a contact of ${studio.id} are found`, () =>
      crmOf(life, core).leads.findLeads({ studioId: studio.id, ...to(name) }, WAITS),
    );
    return 'answer' in told ? told.answer.leads.map((lead) => lead.id).join() : told.refused;
  };
  expect(await foundBy('third'), winner, 'the leads of the last contact, open');
  const closing = { studioId: studio.id, leadId: winner, stage: LeadStage.WON };
  await called(life, `${winner} is closed`, () => crmOf(life, core).leads.changeLeadStage(closing, WAITS));
  expect(await foundBy('third'), winner, 'the leads of the last contact, closed');
  const events = await called(life, `what was done to ${id} is asked for`, () =>
    crmOf(life, core).audit.listAuditEvents({ studioId: studio.id, leadId: id }, WAITS),
  );
  const kept = 'answer' in events ? events.answer.events : [];
  const fields = kept.flatMap(({ action, to = '' }) => (action === AuditAction.LEAD_UPDATED ? [to] : []));
  expect(fields.join('; '), `${winner === id ? 'contact; ' : ''}displayName,contact`, 'what is kept of it');
}

/**
 * Corrects a lead on the condition that it is as just read, until the outcome is certain: an earlier attempt that
 * arrives late fails, because the lead's update time has changed.
 */
function correct(life: Life, core: number, studioId: string, id: string, correction: Correction): Promise<string> {
  const { leads } = crmOf(life, core);
  return untilTold(life, `a lead of ${studioId} is corrected`, async () => {
    const found = await outcomeOf(leads.getLead({ studioId, leadId: id, view: LeadView.FULL }, WAITS));
    const lead = 'answer' in found ? found.answer.lead : undefined;
    if (!lead) return undefined;
    if (emailIn(lead.contact) === correction.contact.value.value) return 'corrected';
    const told = await outcomeOf(
      leads.updateLead({ studioId, lead: { id, ...correction }, ...expecting(lead) }, WAITS),
    );
    if ('answer' in told) return 'corrected';
    return 'refused' in told && told.refused !== 'UPDATE_TIME_MISMATCH' ? told.refused : undefined;
  });
}

const expecting = ({ updateTime }: Lead) => (updateTime ? { expectedUpdateTime: updateTime } : {});

const emailIn = (contact: Contact | undefined): string | undefined => contact?.value.value;

/** Returns the id of the lead that conflicts with a creation, or else the response in short. */
function inTheWay(answer: RestAnswer): string {
  const link = /\/([0-9a-f-]{36})>/.exec(answer.headers.get('link') ?? '')?.[1];
  return answer.code === 'integration_lead_already_open' && link ? link : inShort(answer);
}
