import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { ConsumerStart } from '../../../proto/gen/leadintake/v1/consumer_pb.ts';
import { LeadStage } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { times } from '../../support/builders.ts';
import { now } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { asFarAsDefinite, definiteOutcome, untilDefinite } from './definite-outcomes.ts';
import { command } from './operations.ts';
import { aScenario } from './scenario.ts';
import { createSeparateLead, leadIdIn, makeSeparateStudio, separateLead } from './separate-studio.ts';

const made = new WeakMap<Simulation, Set<string>>();

/** Returns the ids of leads in test studios, which consumers of all studios never get. */
export const testLeads = (sim: Simulation): ReadonlySet<string> => made.get(sim) ?? new Set();

/** Uses a test studio. Its leads must reach a consumer that opted in, and be gone when the studio is emptied. */
export const tryTestStudio = aScenario({
  weight: 2,
  choice: fc.record({ leads: fc.integer({ min: 1, max: 5 }), byCommand: fc.boolean(), core: fc.nat(1) }),
  run: (sim, { leads: count, byCommand, core }) =>
    asFarAsDefinite(async () => {
      const begin = now();
      const studio = await makeSeparateStudio(sim, true);
      const { id: studioId } = studio;
      const { consumers, directory, leads } = sim.crmAt(core);
      const name = studioId.slice(studioId.indexOf('apart'));
      const consumer = { name, studioIds: [studioId] };
      const create = () => consumers.createConsumer({ consumer, start: ConsumerStart.NOW }, CRM_TIMEOUT);
      const asked = 'answer' in (await definiteOutcome(sim, `consumer ${name} is created`, create));
      const lead = (index: number) => separateLead(sim, studioId, `${index}`);
      const ids = await Promise.all(
        times(count, async (index) => leadIdIn(await createSeparateLead(sim, studio, lead(index)))),
      );
      made.set(sim, new Set([...testLeads(sim), ...ids]));
      const move = { studioId, leadId: ids[0] ?? '', stage: LeadStage.CONTACTED };
      await definiteOutcome(sim, `a lead of ${studioId} is moved`, () => leads.changeLeadStage(move, CRM_TIMEOUT));
      if (leadIdIn(await createSeparateLead(sim, studio, lead(0))) !== ids[0])
        sim.history.fail(`in ${studioId} a creation is not replayed`);
      const { contact: given, idempotencyKey } = lead(0);
      const contact = { value: { case: given.type, value: given.value } } as const;
      const exported = await definiteOutcome(sim, `a person's data in ${studioId} is exported`, () =>
        Array.fromAsync(leads.exportContact({ studioId, contact }, CRM_TIMEOUT)),
      );
      const kept = 'answer' in exported ? exported.answer.slice(0, -1) : [];
      if (`${kept.map((each) => [each.lead?.id, each.idempotencyKey])}` !== `${[ids[0], idempotencyKey]}`)
        sim.history.fail(`in ${studioId} the export of a person has ${kept.map((each) => each.lead?.id)}`);
      const waiting = async () => {
        const pull = leads.pullLeadChanges({ consumer: name, max: 100 }, CRM_TIMEOUT).catch(() => undefined);
        return (await pull)?.changes.map((each) => each.lead?.id ?? '');
      };
      if (asked)
        await untilDefinite(sim, `consumer ${name} has the leads of ${studioId}`, async () => {
          const found = await waiting();
          return ids.every((id) => found?.includes(id)) || undefined;
        });
      if (byCommand) await command(sim, ['studios', 'empty', studioId]);
      const empty = () => directory.emptyStudio({ studioId }, CRM_TIMEOUT);
      const emptied = await definiteOutcome(sim, `${studioId} is emptied`, empty);
      if (!('answer' in emptied && emptied.answer.isEmpty)) sim.history.fail(`${studioId} is not emptied`);
      await sleep(50);
      const list = () => leads.listLeads({ studioId, pageSize: 100, pageToken: '' }, CRM_TIMEOUT);
      const left = await definiteOutcome(sim, `the leads of ${studioId} are listed`, list);
      const rest = 'answer' in left ? left.answer.leads.map(({ id }) => id) : [left.refused];
      // A lost attempt may have created a lead again.
      if (rest.length > 0 && !sim.isDisturbedSince(begin)) sim.history.fail(`the empty ${studioId} has ${rest}`);
      made.set(sim, new Set([...testLeads(sim), ...rest]));
      if (asked)
        await untilDefinite(sim, `nothing waits for consumer ${name}`, async () => {
          return (await waiting())?.every((id) => rest.includes(id)) || undefined;
        });
      const remove = () => consumers.removeConsumer({ consumer: name }, CRM_TIMEOUT);
      await definiteOutcome(sim, `consumer ${name} is removed`, remove);
    }),
});
