import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { times } from '../../support/builders.ts';
import { now } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { lasting } from './choices.ts';
import { outcomeOf } from './crm.ts';
import { asFarAsDefinite } from './definite-outcomes.ts';
import { MACHINE } from './faults.ts';
import { aScenario } from './scenario.ts';
import { makeSeparateStudio, type SeparateStudio, separateLead } from './separate-studio.ts';

/** The number of concurrent creations per core, all with one key, each with another contact. */
const AT_ONCE = 3;

/** How long a core on MongoDB may take to notice; milliseconds. On SQLite the insert itself does. */
const NOTICED_WITHIN_MS = 2000;

/** How long rebuilding an index may take; milliseconds. */
const REBUILT_WITHIN_MS = 65_000;

/** The longest that an earlier request may still be in flight; milliseconds. */
const SETTLES_MS = 1000;

/** The outcome of a creation: the id of the lead in the response, if any. */
interface Creation {
  readonly idempotencyKey: string;
  readonly begin: number;
  readonly end: number;
  readonly leadId: string | undefined;
}

/** The unique index of keys is dropped, or replaced by a weaker one, which is then removed. */
export const loseIndex = aScenario({
  // The simulated replica set does not know all commands of doctor.
  isPossible: ({ world }) => world.directAccess.database === 'SQLite',
  weight: 1,
  choice: fc.record({
    hows: fc.shuffledSubarray(['gone', 'partial', 'not unique'] as const, { minLength: 2 }),
    forMs: lasting(200, 1500),
  }),
  run: (sim, { hows, forMs }) =>
    sim.inTurn(MACHINE, () =>
      // A cut connection would keep earlier requests in flight.
      sim.inTurn('link database', () =>
        asFarAsDefinite(async () => {
          const studio = await makeSeparateStudio(sim);
          for (const how of hows)
            await sim.disturb(`the index of keys is ${how} for ${forMs} ms`, [], () => lose(sim, studio, how, forMs));
        }),
      ),
    ),
});

async function lose(sim: Simulation, studio: SeparateStudio, how: 'gone' | 'partial' | 'not unique', forMs: number) {
  const { directAccess, parts } = sim.world;
  // On MongoDB duplicate leads may be written in that moment and must be deleted afterwards, so only this scenario
  // may create leads. On SQLite there are none.
  const gateways = directAccess.database === 'MongoDB' ? parts.filter(({ name }) => name.startsWith('gateway')) : [];
  const before = separateLead(sim, studio.id, `before it is ${how}`).idempotencyKey;
  const { leadId: known } = await create(sim, studio, 0, before, 0);
  for (const gateway of gateways) gateway.pause();
  try {
    if (gateways.length > 0) await sleep(SETTLES_MS);
    let isOver = false;
    const creations = keepCreating(sim, studio, how, () => isOver);
    try {
      await directAccess.weakenKeyIndex(how);
      const noticeMs = directAccess.database === 'MongoDB' ? NOTICED_WITHIN_MS : 0;
      await sleep(noticeMs);
      const noticed = now();
      await sleep(forMs);
      if (known) await expectRead(sim, studio, known);
      if (how !== 'gone') await expectDoctorReports(sim);
      const weakUntil = now();
      isOver = true;
      const all = await creations;
      judge(sim, all, noticed, how === 'gone' ? undefined : weakUntil);
    } finally {
      isOver = true;
      await creations;
      await directAccess.deleteLeadsOf(studio.id);
      await directAccess.removeWeakKeyIndex();
    }
  } finally {
    for (const gateway of gateways) gateway.resume();
  }
  await untilCreated(sim, studio, how);
}

/** Sends creations to every core repeatedly, with a new key in each round. */
async function keepCreating(
  sim: Simulation,
  studio: SeparateStudio,
  how: string,
  isOver: () => boolean,
): Promise<Creation[]> {
  const all: Promise<Creation>[] = [];
  for (let round = 0; !isOver(); round += 1) {
    const { idempotencyKey } = separateLead(sim, studio.id, `${how}, round ${round}`);
    const cores = sim.crm.flatMap((_, core) => times(AT_ONCE, () => core));
    all.push(...cores.map((core, index) => create(sim, studio, core, idempotencyKey, index)));
    await sleep(40);
  }
  return Promise.all(all);
}

async function create(
  sim: Simulation,
  { id: studioId }: SeparateStudio,
  core: number,
  idempotencyKey: string,
  index: number,
) {
  const value = `${idempotencyKey}-${index}@${sim.personal}.example`;
  const request = { studioId, idempotencyKey, displayName: `Ada ${sim.personal}` };
  const contact = { value: { case: 'email', value } } as const;
  const begin = now();
  const outcome = await outcomeOf(sim.crmAt(core).leads.createLead({ ...request, contact }, CRM_TIMEOUT));
  const leadId = 'answer' in outcome ? outcome.answer.lead?.id : undefined;
  return { idempotencyKey, begin, end: now(), leadId };
}

/**
 * Once the loss is noticed, one key never yields two leads; and no creation is acknowledged while the unique index is
 * missing.
 *
 * @param weakUntil undefined: it may have been made again at any time
 */
function judge(
  { history }: Simulation,
  creations: readonly Creation[],
  noticed: number,
  weakUntil: number | undefined,
) {
  const answered = creations.filter(({ begin, leadId }) => begin > noticed && leadId !== undefined);
  for (const [key, same] of Map.groupBy(answered, ({ idempotencyKey }) => idempotencyKey)) {
    const ids = new Set(same.map(({ leadId }) => leadId));
    if (ids.size > 1) history.fail(`while an index was lost, ${ids.size} leads are answered for the key ${key}`);
  }
  const onNothing = answered.filter(({ end }) => weakUntil !== undefined && end < weakUntil);
  if (onNothing.length > 0) history.fail(`${onNothing.length} leads are acknowledged without a unique index of keys`);
  const what = `${creations.length} creations meanwhile, ${answered.length} of them acknowledged`;
  history.note('CRM', what);
}

async function expectRead(sim: Simulation, { id: studioId }: SeparateStudio, leadId: string): Promise<void> {
  for (const { leads } of sim.crm) {
    const read = () => outcomeOf(leads.getLead({ studioId, leadId }, CRM_TIMEOUT));
    let outcome = await read();
    // Sent at the moment when its connection reached its age.
    if ('unknown' in outcome && outcome.unknown.includes('REFUSED_STREAM')) outcome = await read();
    if (!('answer' in outcome))
      sim.history.fail(`while an index is lost a lead is not read: ${JSON.stringify(outcome)}`);
  }
}

async function expectDoctorReports({ world, history }: Simulation): Promise<void> {
  const { status, stdout, stderr } = await world.commandLine.run(['doctor', 'core'], 30_000);
  if (status !== 1 || !/idempotency_?key/i.test(stdout + stderr))
    history.fail(`while an index is lost, doctor returns ${status} ${stdout} ${stderr}`);
}

/** Once nothing prevents it, the index is rebuilt and creations succeed again. */
async function untilCreated(sim: Simulation, studio: SeparateStudio, how: string): Promise<void> {
  const giveUp = now() + REBUILT_WITHIN_MS;
  for (const core of sim.crm.keys()) {
    const { idempotencyKey } = separateLead(sim, studio.id, `after it was ${how}, at core ${core}`);
    while ((await create(sim, studio, core, idempotencyKey, 0)).leadId === undefined) {
      if (now() > giveUp) {
        sim.history.fail(
          `core ${core + 1} creates no lead ${REBUILT_WITHIN_MS} ms after its index could be made again`,
        );
        return;
      }
      await sleep(250);
    }
  }
}
