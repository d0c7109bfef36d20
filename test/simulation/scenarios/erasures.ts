import fc from 'fast-check';
import { StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { times } from '../../support/builders.ts';
import { ownContact } from '../contacts.ts';
import { now } from '../history.ts';
import { CRM_TIMEOUT } from '../simulation.ts';
import { asFarAsDefinite, definiteAnswer, definiteOutcome } from './definite-outcomes.ts';
import { FIRST_PAGE } from './requests.ts';
import { aScenario } from './scenario.ts';
import { createSeparateLead, leadIdIn, makeKey, makeSeparateStudio, separateLead } from './separate-studio.ts';

/** Exports and erases the leads of a person by a contact that one of them had before a correction. */
export const forgetPerson = aScenario({
  weight: 2,
  choice: fc.record({ core: fc.nat(1) }),
  run: (sim, { core }) =>
    asFarAsDefinite(async () => {
      const studio = await makeSeparateStudio(sim);
      const { id: studioId } = studio;
      const { leads } = sim.crmAt(core);
      const makeContact = (name: string) => ownContact(sim.personal, sim.uuid('contact', studioId, name));
      const [before, after] = [makeContact('before'), makeContact('after')];
      const ask = async <T>(what: string, call: () => Promise<T>): Promise<T | undefined> => {
        const outcome = await definiteOutcome(sim, `${what} in ${studioId}`, call);
        if ('answer' in outcome) return outcome.answer;
        sim.history.fail(`${what} in ${studioId}: ${outcome.refused}`);
        return undefined;
      };
      const create = async (name: string) =>
        leadIdIn(await createSeparateLead(sim, studio, separateLead(sim, studioId, name, before)));
      const corrected = await create('corrected');
      const lead = { id: corrected, contact: { value: { case: after.type, value: after.value } } };
      await ask('a contact is corrected', () => leads.updateLead({ studioId, lead }, CRM_TIMEOUT));
      const other = await create('other');

      const contact = { value: { case: before.type, value: before.value } };
      const exported = await ask('a person is exported', () =>
        Array.fromAsync(leads.exportContact({ studioId, contact }, CRM_TIMEOUT)),
      );
      const lacks = [corrected, other].filter((id) => !exported?.some((each) => each.lead?.id === id));
      if (exported && lacks.length > 0) sim.history.fail(`in ${studioId} the export of a person lacks ${lacks}`);
      const erased = await ask('a person is erased', () => leads.eraseContact({ studioId, contact }, CRM_TIMEOUT));
      if (erased?.mayBeIncomplete) sim.history.fail(`in ${studioId} a complete erasure reports that some may remain`);
      const left = await ask('leads are listed', () => leads.listLeads({ studioId }, CRM_TIMEOUT));
      const ids = left?.leads.map(({ id }) => id);
      if (ids && ids.length > 0) sim.history.fail(`in ${studioId} an erasure leaves ${ids} of ${[corrected, other]}`);
    }),
});

/** Erases a studio while leads and a key are created in it. Once that is reported, no lead exists or appears, and the key is refused. */
export const endStudio = aScenario({
  weight: 1,
  choice: fc.record({ core: fc.nat(1), leads: fc.integer({ min: 1, max: 6 }) }),
  run: (sim, { core, leads: count }) =>
    asFarAsDefinite(async () => {
      const begin = now();
      const studio = await makeSeparateStudio(sim);
      const { id: studioId } = studio;
      const [crm, other] = [sim.crmAt(core), sim.crmAt(core + 1)];
      const create = (name: string) => createSeparateLead(sim, studio, separateLead(sim, studioId, name));
      await create('first');
      const erase = async () => {
        let erased = 0;
        for (let pageToken = ''; ; ) {
          const call = () => crm.directory.eraseStudio({ studioId, confirmStudioId: studioId, pageToken }, CRM_TIMEOUT);
          const part = await definiteOutcome(sim, `${studioId} is erased`, call);
          if ('refused' in part) return part.refused;
          erased += Number(part.answer.erasedLeadCount);
          pageToken = part.answer.nextPageToken;
          if (pageToken === '') return erased;
        }
      };
      const making = makeKey(sim, studioId).catch(() => undefined);
      const [erased, ...answers] = await Promise.all([erase(), ...times(count, (index) => create(`${index}`))]);
      for (const { status } of answers)
        if (![201, 401, 402].includes(status)) sim.history.fail(`a creation in the ending ${studioId} gets ${status}`);
      if (typeof erased === 'string') sim.history.fail(`${studioId} is not erased: ${erased}`);
      const list = () => other.leads.listLeads({ studioId, pageSize: 100 }, CRM_TIMEOUT);
      const left = await definiteOutcome(sim, `the leads of ${studioId} are listed`, list);
      // A suspended core may write when it continues.
      if (!('answer' in left && left.answer.leads.length === 0) && !sim.isDisturbedSince(begin))
        sim.history.fail(`the erased ${studioId} has leads`);
      const late = await create('late');
      if (![401, 402].includes(late.status))
        sim.history.fail(`in the erased ${studioId} a creation gets ${late.status}`);
      const made = await making;
      const read = made && (await definiteAnswer(sim, made.secret, FIRST_PAGE));
      if (read && ![401, 402].includes(read.status))
        sim.history.fail(`in the erased ${studioId} a key that was created meanwhile gets ${read.status}`);
      const revived = { id: studioId, status: StudioStatus.ACTIVE };
      const put = () => other.directory.putStudio({ studio: revived }, CRM_TIMEOUT);
      const again = await definiteOutcome(sim, `${studioId} is put again`, put);
      if (!('refused' in again && again.refused === 'STUDIO_ENDED'))
        sim.history.fail(`the erased ${studioId} can be put again`);
    }),
});
