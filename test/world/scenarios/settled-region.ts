import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { now, type RestAnswer, type SentLead } from '../history.ts';
import type { Life } from '../life.ts';
import { createApart, crmOf, inShort, leadApart, makeStudioApart, WAITS } from './apart.ts';
import { aScenario } from './scenario.ts';
import { asFarAsTold, called } from './until-told.ts';

/** How long after a change every former region is honoured; milliseconds. */
const FORMER_HELD_FOR_MS = 10_000;

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
  happen: (life, { regions, isTaken, core }) =>
    asFarAsTold(() => settle(life, regions as readonly ('FR' | 'GB')[], isTaken, core)),
});

async function settle(life: Life, regions: readonly ('FR' | 'GB')[], isTaken: boolean, core: number): Promise<void> {
  const studio = await makeStudioApart(life);
  const create = (name: string, contact: SentLead['contact']) =>
    createApart(life, studio, leadApart(life, studio.id, name, contact));
  const expect = (told: RestAnswer, expected: string, what: string) => {
    if (inShort(told) !== expected)
      life.history.breaks(
        `in ${studio.id}, of regions DE, ${regions}: ${what} is told ${inShort(told)}, not ${expected}`,
      );
  };
  const elsewhere = { type: 'phone', value: ELSEWHERE[regions.at(-1) ?? 'FR'] } as const;
  expect(await create('national', PHONE), '201', PHONE.value);
  if (isTaken) expect(await create('taken', elsewhere), '201', elsewhere.value);
  let putBegin = now();
  for (const regionCode of regions) {
    putBegin = now();
    const put = { id: studio.id, status: StudioStatus.ACTIVE, regionCode };
    await called(life, 'a region is put', () => crmOf(life, core).directory.putStudio({ studio: put }, WAITS));
  }
  const begin = now();
  for (;;) {
    const told = await create('in Germany', IN_GERMANY);
    if (told.status === 201) {
      if (now() < putBegin + FORMER_HELD_FOR_MS)
        life.history.breaks(`in ${studio.id} a former region is held to for ${Math.round(now() - putBegin)} ms only`);
      break;
    }
    expect(told, '409 integration_lead_already_open', IN_GERMANY.value);
    if (now() > begin + SETTLED_WITHIN_MS) {
      if (life.isDisturbedSince(begin)) return;
      life.history.breaks(`${studio.id} is held to its former region for more than ${SETTLED_WITHIN_MS} ms`);
      return;
    }
    await sleep(500);
  }
  expect(await create('the same text', PHONE), '409 integration_lead_already_open', PHONE.value);
  expect(await create('elsewhere', elsewhere), '409 integration_lead_already_open', elsewhere.value);
}
