import fc from 'fast-check';
import { now } from '../history.ts';
import { CRM_TIMEOUT } from '../simulation.ts';
import { studio, studioAt } from './choices.ts';
import { outcomeOf } from './operations.ts';
import { aScenario } from './scenario.ts';

/** How often an interrupted export is resumed. */
const MAX_ATTEMPTS = 4;

/**
 * The CRM exports all leads of a studio, or of all studios; an export interrupted by a disturbance or by the client
 * resumes on another core.
 */
export const exportLeads = aScenario({
  weight: 6,
  choice: fc.record({
    studio: fc.oneof(fc.constant(null), studio),
    core: fc.nat(1),
    /** The number of messages after which the client first interrupts it. */
    leavesAfter: fc.constantFrom(null, 1, 1, 2),
  }),
  async run(sim, { studio, core, leavesAfter }) {
    const of = studio === null ? '' : studioAt(sim, studio).id;
    const begin = now();
    const leads: { studioId: string; id: string }[] = [];
    let [resumeToken, isWhole, left] = ['', false, leavesAfter ?? Number.POSITIVE_INFINITY];
    const readOn = async (attempt: number) => {
      const stream = sim.crmAt(core + attempt).leads.exportLeads({ studioId: of, resumeToken }, CRM_TIMEOUT);
      for await (const message of stream) {
        leads.push(...message.leads.map(({ studioId, id }) => ({ studioId, id })));
        resumeToken = message.resumeToken;
        left -= 1;
        if (left === 0) return false;
      }
      return true;
    };
    for (let attempt = 0; attempt < MAX_ATTEMPTS && !isWhole; attempt += 1) {
      const outcome = await outcomeOf(readOn(attempt));
      if ('refused' in outcome) sim.history.fail(`an export of ${of || 'all studios'} is refused: ${outcome.refused}`);
      isWhole = 'answer' in outcome && outcome.answer;
    }
    sim.history.add({ kind: 'exported', party: 'CRM', of, leads, isWhole, span: { begin, end: now() } });
  },
});
