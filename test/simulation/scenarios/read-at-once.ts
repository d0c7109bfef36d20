import fc from 'fast-check';
import { asFarAsDefinite, definiteAnswer } from './definite-outcomes.ts';
import { aScenario } from './scenario.ts';
import { createSeparateLead, inShort, leadIdIn, makeSeparateStudio, separateLead } from './separate-studio.ts';

/** Shows a visitor the lead that the website has just created. */
export const readAtOnce = aScenario({
  weight: 1,
  choice: fc.record({ name: fc.constantFrom('Ada', 'Zoë') }),
  run: (sim, { name }) =>
    asFarAsDefinite(async () => {
      const studio = await makeSeparateStudio(sim);
      const leadId = leadIdIn(await createSeparateLead(sim, studio, separateLead(sim, studio.id, name)));
      const answer = await definiteAnswer(sim, studio.secret, { name: 'get', leadId });
      if (answer.status !== 200)
        sim.history.fail(`answered 201, and then ${inShort(answer)}: the lead ${leadId} of ${studio.id}`);
    }),
});
