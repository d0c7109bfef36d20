import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { now } from '../history.ts';
import { CRM_TIMEOUT } from '../simulation.ts';
import { studio, studioAt } from './choices.ts';
import { findOutcome } from './operations.ts';
import { aScenario } from './scenario.ts';

/** How often an export is begun or resumed. */
const MAX_ATTEMPTS = 4;

/**
 * Exports the leads of a studio or of all studios: all of them, or those changed since a time. An export that a disturbance or
 * the client interrupts resumes on another core.
 */
export const exportLeads = aScenario({
  weight: 6,
  choice: fc.record({
    studio: fc.oneof(fc.constant(null), studio),
    core: fc.nat(1),
    /** The number of messages after which the client first interrupts the export. */
    leavesAfter: fc.constantFrom(null, 1, 1, 2),
    /** Requests only leads changed since this long before the export; null: all leads; milliseconds. */
    changesOfMs: fc.constantFrom(null, null, 1000, 60_000, 3_600_000),
  }),
  async run(sim, { studio, core, leavesAfter, changesOfMs }) {
    const of = studio === null ? '' : studioAt(sim, studio).id;
    const begin = now();
    const leads: { studioId: string; id: string; updatedMs: number }[] = [];
    const sinceMs = changesOfMs === null ? null : Date.now() - changesOfMs;
    const filter = sinceMs === null ? {} : { updateTime: { startTime: timestampFromMs(sinceMs) } };
    let [resumeToken, isWhole, left] = ['', false, leavesAfter ?? Number.POSITIVE_INFINITY];
    const readOn = async (attempt: number) => {
      const stream = sim.crmAt(core + attempt).leads.exportLeads({ studioId: of, resumeToken, filter }, CRM_TIMEOUT);
      for await (const message of stream) {
        for (const { studioId, id, updateTime } of message.leads)
          leads.push({ studioId, id, updatedMs: updateTime ? timestampMs(updateTime) : Number.NaN });
        resumeToken = message.resumeToken;
        left -= 1;
        if (left === 0) return false;
      }
      return true;
    };
    for (let attempt = 0; attempt < MAX_ATTEMPTS && !isWhole; attempt += 1) {
      const outcome = await findOutcome(readOn(attempt));
      if ('refused' in outcome) sim.history.fail(`an export of ${of || 'all studios'} is refused: ${outcome.refused}`);
      isWhole = 'answer' in outcome && outcome.answer;
    }
    sim.history.add({ kind: 'exported', party: 'CRM', of, leads, isWhole, sinceMs, span: { begin, end: now() } });
  },
});
