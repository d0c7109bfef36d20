import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { type Collection, MongoClient } from 'mongodb';
import { now } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { lasting } from './choices.ts';
import { asFarAsDefinite } from './definite-outcomes.ts';
import { MACHINE } from './faults.ts';
import { command, outcomeOf } from './operations.ts';
import { aScenario } from './scenario.ts';
import { createSeparateLead, leadIdIn, makeSeparateStudio, separateLead } from './separate-studio.ts';

/** How long a core may take to notice, and the longest that an earlier request is in flight; milliseconds. */
const NOTICED_WITHIN_MS = 2000;
const SETTLES_MS = 1000;

const NAME = 'idempotencyKey';
const KEY = { studioId: 1, 'idempotency.key': 1 } as const;

/** What replaces the unique index of keys. */
const WEAKER = { gone: {}, partial: { unique: true, partialFilterExpression: { stage: 'lost' } }, 'not unique': {} };

type Weakness = keyof typeof WEAKER;

/**
 * Like `loseIndex`, on MongoDB: cores notice within a second. What is created until then may be a duplicate, so that only this
 * scenario creates leads meanwhile, at the cores, and then deletes them.
 */
export const loseMongoIndex = aScenario({
  isPossible: ({ world }) => world.databaseUrl.startsWith('mongodb:'),
  weight: 1,
  choice: fc.record({ how: fc.constantFrom<Weakness>('gone', 'partial', 'not unique'), forMs: lasting(200, 1500) }),
  run: (sim, { how, forMs }) =>
    sim.inTurn(MACHINE, () =>
      sim.inTurn('replica set', () =>
        asFarAsDefinite(async () => {
          const studio = await makeSeparateStudio(sim);
          const known = await createSeparateLead(sim, studio, separateLead(sim, studio.id, 'before'));
          await sim.disturb(`the index of keys is ${how} for ${forMs} ms`, [], async () => {
            await lose(sim, studio.id, leadIdIn(known), how, forMs);
            await createSeparateLead(sim, studio, separateLead(sim, studio.id, 'after'));
          });
        }),
      ),
    ),
});

async function lose(sim: Simulation, studioId: string, leadId: string, how: Weakness, forMs: number): Promise<void> {
  const client = new MongoClient(sim.world.databaseUrl, { writeConcern: { w: 'majority' }, readPreference: 'primary' });
  const leads = client.db().collection('leads');
  const gateways = sim.world.parts.filter(({ name }) => name.startsWith('gateway'));
  for (const gateway of gateways) gateway.pause();
  try {
    await sleep(SETTLES_MS);
    await weaken(leads, how);
    const noticed = now() + NOTICED_WITHIN_MS;
    const creations: ReturnType<typeof create>[] = [];
    for (let round = 0; now() < noticed + forMs; round += 1) {
      const { idempotencyKey } = separateLead(sim, studioId, `${how}, round ${round}`);
      for (const core of [0, 0, 1, 1]) creations.push(create(sim, studioId, core, idempotencyKey, creations.length));
      await sleep(100);
    }
    for (const core of sim.crm) {
      const read = await outcomeOf(core.leads.getLead({ studioId, leadId }, CRM_TIMEOUT));
      if ('refused' in read) sim.history.fail(`without an index a lead is read as ${read.refused}`);
    }
    if (how !== 'gone') {
      const { status, stdout, stderr } = await command(sim, ['doctor', 'core']);
      if (status !== 1 || !/idempotency_?key/i.test(stdout + stderr))
        sim.history.fail(`with a weak index, doctor says: ${status} ${stdout} ${stderr}`);
    }
    const made = (await Promise.all(creations)).filter(({ begin, id }) => begin > noticed && id !== undefined);
    for (const [key, same] of Map.groupBy(made, ({ key }) => key)) {
      const count = new Set(same.map(({ id }) => id)).size;
      if (count > (how === 'gone' ? 1 : 0))
        sim.history.fail(`with an index that is ${how}, ${count} leads are acknowledged for the key ${key}`);
    }
  } finally {
    await leads.deleteMany({ studioId });
    if (how !== 'gone') await leads.dropIndex(NAME);
    await client.close();
    for (const gateway of gateways) gateway.resume();
  }
}

/** Drops the index and puts a weaker one in its place, whatever a core makes first. */
async function weaken(leads: Collection, how: Weakness): Promise<void> {
  for (let isWeak = false; !isWeak; ) {
    await leads.dropIndex(NAME).catch(() => {});
    const replaced = how === 'gone' || leads.createIndex(KEY, { name: NAME, ...WEAKER[how] });
    isWeak = await Promise.resolve(replaced).then(
      () => true,
      () => false,
    );
  }
}

/** Creates a lead at a core, of a contact of its own. */
async function create(sim: Simulation, studioId: string, core: number, key: string, number: number) {
  const begin = now();
  const contact = { value: { case: 'email', value: `${key}-${number}@${sim.personal}.example` } } as const;
  const request = { studioId, idempotencyKey: key, displayName: `Ada ${sim.personal}`, contact };
  const outcome = await outcomeOf(sim.crmAt(core).leads.createLead(request, CRM_TIMEOUT));
  return { key, begin, id: 'answer' in outcome ? outcome.answer.lead?.id : undefined };
}
