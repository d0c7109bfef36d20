import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { times } from '../../support/builders.ts';
import { now } from '../history.ts';
import type { Life } from '../life.ts';
import { leadApart, makeStudioApart, type StudioApart, WAITS } from './apart.ts';
import { lasting } from './choices.ts';
import { outcomeOf } from './crm.ts';
import { aScenario } from './scenario.ts';
import { asFarAsTold } from './until-told.ts';
import { MACHINE } from './weather.ts';

/** The number of concurrent creations per core, all with one key, each with another contact. */
const AT_ONCE = 3;

/** How long rebuilding an index may take; milliseconds. */
const MADE_WITHIN_MS = 65_000;

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
  weight: 1,
  choice: fc.record({
    hows: fc.shuffledSubarray(['gone', 'partial', 'not unique'] as const, { minLength: 2 }),
    forMs: lasting(200, 1500),
  }),
  happen: (life, { hows, forMs }) =>
    life.inTurn(MACHINE, () =>
      // A cut connection would keep earlier requests in flight.
      life.inTurn('way database', () =>
        asFarAsTold(async () => {
          const studio = await makeStudioApart(life);
          for (const how of hows)
            await life.disturb(`the index of keys is ${how} for ${forMs} ms`, [], () => lose(life, studio, how, forMs));
        }),
      ),
    ),
});

async function lose(life: Life, studio: StudioApart, how: 'gone' | 'partial' | 'not unique', forMs: number) {
  const { hand, parts } = life.world;
  // On MongoDB duplicate leads may be written in that moment and must be deleted afterwards, so only this scenario
  // may create leads. On SQLite there are none.
  const gateways = hand.database === 'MongoDB' ? parts.filter(({ name }) => name.startsWith('gateway')) : [];
  const before = leadApart(life, studio.id, `before it is ${how}`).idempotencyKey;
  const { leadId: known } = await create(life, studio, 0, before, 0);
  for (const gateway of gateways) gateway.pause();
  try {
    if (gateways.length > 0) await sleep(SETTLES_MS);
    let isOver = false;
    const creations = keepCreating(life, studio, how, () => isOver);
    try {
      await hand.weakenIndexOfKeys(how);
      const weakFrom = now();
      await sleep(forMs);
      if (known) await expectRead(life, studio, known);
      if (how !== 'gone') await expectDoctorSays(life);
      const weakUntil = now();
      isOver = true;
      const all = await creations;
      judge(life, all, how === 'gone' ? undefined : { begin: weakFrom, end: weakUntil });
    } finally {
      isOver = true;
      await creations;
      await hand.forgetLeadsOf(studio.id);
      await hand.mendIndexOfKeys();
    }
  } finally {
    for (const gateway of gateways) gateway.resume();
  }
  await untilCreated(life, studio, how);
}

/** Sends creations to every core repeatedly, with a new key in each round. */
async function keepCreating(life: Life, studio: StudioApart, how: string, isOver: () => boolean): Promise<Creation[]> {
  const all: Promise<Creation>[] = [];
  for (let round = 0; !isOver(); round += 1) {
    const { idempotencyKey } = leadApart(life, studio.id, `${how}, round ${round}`);
    const cores = life.crm.flatMap((_, core) => times(AT_ONCE, () => core));
    all.push(...cores.map((core, index) => create(life, studio, core, idempotencyKey, index)));
    await sleep(40);
  }
  return Promise.all(all);
}

async function create(life: Life, { id: studioId }: StudioApart, core: number, idempotencyKey: string, index: number) {
  const value = `${idempotencyKey}-${index}@${life.personal}.example`;
  const request = { studioId, idempotencyKey, displayName: `Ada ${life.personal}` };
  const contact = { value: { case: 'email', value } } as const;
  const begin = now();
  const crm = life.crm[core % life.crm.length];
  const outcome = await outcomeOf((crm as NonNullable<typeof crm>).leads.createLead({ ...request, contact }, WAITS));
  const leadId = 'answer' in outcome ? outcome.answer.lead?.id : undefined;
  return { idempotencyKey, begin, end: now(), leadId };
}

/** One key never yields two leads; and no creation is acknowledged while the unique index is known to be missing. */
function judge({ history }: Life, creations: readonly Creation[], weak: { begin: number; end: number } | undefined) {
  const answered = creations.filter(({ leadId }) => leadId !== undefined);
  for (const [key, same] of Map.groupBy(answered, ({ idempotencyKey }) => idempotencyKey)) {
    const ids = new Set(same.map(({ leadId }) => leadId));
    if (ids.size > 1) history.breaks(`while an index was lost, ${ids.size} leads are answered for the key ${key}`);
  }
  const onNothing = answered.filter(({ begin, end }) => weak && begin > weak.begin && end < weak.end);
  if (onNothing.length > 0)
    history.breaks(`${onNothing.length} leads are answered as created that no unique index of keys stands on`);
  const what = `${creations.length} leads are asked for meanwhile, ${answered.length} times one is answered`;
  history.add({ kind: 'other', party: 'CRM', what, span: { begin: now(), end: now() } });
}

async function expectRead(life: Life, { id: studioId }: StudioApart, leadId: string): Promise<void> {
  for (const { leads } of life.crm) {
    const outcome = await outcomeOf(leads.getLead({ studioId, leadId }, WAITS));
    if (!('answer' in outcome))
      life.history.breaks(`while an index is lost a lead is not read: ${JSON.stringify(outcome)}`);
  }
}

async function expectDoctorSays({ world, history }: Life): Promise<void> {
  const { status, answer, complaint } = await world.commandLine.run(['doctor', 'core'], 30_000);
  if (status !== 1 || !/idempotency_?key/i.test(answer + complaint))
    history.breaks(`while an index is lost, doctor says ${status} ${answer} ${complaint}`);
}

/** Once nothing prevents it, the index is rebuilt and creations succeed again. */
async function untilCreated(life: Life, studio: StudioApart, how: string): Promise<void> {
  const giveUp = now() + MADE_WITHIN_MS;
  for (const core of life.crm.keys()) {
    const { idempotencyKey } = leadApart(life, studio.id, `after it was ${how}, at core ${core}`);
    while ((await create(life, studio, core, idempotencyKey, 0)).leadId === undefined) {
      if (now() > giveUp) {
        life.history.breaks(
          `core ${core + 1} creates no lead ${MADE_WITHIN_MS} ms after its index could be made again`,
        );
        return;
      }
      await sleep(250);
    }
  }
}
