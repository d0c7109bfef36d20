import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { now, type RestAnswer, type SentLead } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { asFarAsDefinite, definiteOutcome } from './definite-outcomes.ts';
import { aScenario } from './scenario.ts';
import { createSeparateLead, inShort, makeSeparateStudio, separateLead } from './separate-studio.ts';

/** How long after a change every former region is honoured; milliseconds. */
const FORMER_HONOURED_FOR_MS = 10_000;

/**
 * The time in which all claims are renewed without a disturbance; milliseconds: two pauses, and a read before each
 * step.
 */
const SETTLED_WITHIN_MS = 60_000;

const PHONE = { type: 'phone', value: '030 7654321' } as const;

/** What the number means for a studio in Germany, and elsewhere. */
const IN_GERMANY = { type: 'phone', value: '+49 30 7654321' } as const;
const ELSEWHERE = { FR: '+33 3 07 65 43 21', GB: '+44 307654321' } as const;

/**
 * A studio with an open lead gets another region, or two, one after the other. Claims by the former region hold for
 * ten seconds; once renewed, the lead claims only by the new region, and always by its exact text.
 */
export const settleInRegion = aScenario({
  weight: 1,
  choice: fc.record({
    regions: fc.constantFrom(['FR'], ['GB'], ['FR', 'GB'], ['GB', 'FR']),
    // Another lead has the meaning of the number in the new region.
    isTaken: fc.boolean(),
    core: fc.nat(1),
  }),
  // The deadlines here depend on the clock.
  isPossible: ({ world }) => world.clocks.length === 0,
  run: (sim, { regions, isTaken, core }) =>
    asFarAsDefinite(() => settle(sim, regions as readonly ('FR' | 'GB')[], isTaken, core)),
});

async function settle(
  sim: Simulation,
  regions: readonly ('FR' | 'GB')[],
  isTaken: boolean,
  core: number,
): Promise<void> {
  const studio = await makeSeparateStudio(sim);
  const create = (name: string, contact: SentLead['contact']) =>
    createSeparateLead(sim, studio, separateLead(sim, studio.id, name, contact));
  const expect = (answer: RestAnswer, expected: string, what: string) => {
    if (inShort(answer) !== expected)
      sim.history.fail(`in ${studio.id}, of regions DE, ${regions}: ${what} gets ${inShort(answer)}, not ${expected}`);
  };
  const elsewhere = { type: 'phone', value: ELSEWHERE[regions.at(-1) ?? 'FR'] } as const;
  expect(await create('national', PHONE), '201', PHONE.value);
  if (isTaken) expect(await create('taken', elsewhere), '201', elsewhere.value);
  let putBegin = now();
  for (const regionCode of regions) {
    putBegin = now();
    const put = { id: studio.id, status: StudioStatus.ACTIVE, regionCode };
    await definiteOutcome(sim, 'a region is put', () =>
      sim.crmAt(core).directory.putStudio({ studio: put }, CRM_TIMEOUT),
    );
  }
  const begin = now();
  for (;;) {
    const answer = await create('in Germany', IN_GERMANY);
    if (answer.status === 201) {
      if (now() < putBegin + FORMER_HONOURED_FOR_MS)
        sim.history.fail(`in ${studio.id} a former region is honoured for only ${Math.round(now() - putBegin)} ms`);
      break;
    }
    expect(answer, '409 integration_lead_already_open', IN_GERMANY.value);
    if (now() > begin + SETTLED_WITHIN_MS) {
      if (sim.isDisturbedSince(begin)) return;
      sim.history.fail(`${studio.id} honours its former region for more than ${SETTLED_WITHIN_MS} ms`);
      return;
    }
    await sleep(500);
  }
  expect(await create('the same text', PHONE), '409 integration_lead_already_open', PHONE.value);
  expect(await create('elsewhere', elsewhere), '409 integration_lead_already_open', elsewhere.value);
}
