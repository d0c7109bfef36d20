import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { times } from '../../support/builders.ts';
import { now } from '../history.ts';
import { runSql } from '../run-sql.ts';
import type { Simulation } from '../simulation.ts';
import { lasting } from './choices.ts';
import { asFarAsDefinite, definiteAnswer, untilDefinite } from './definite-outcomes.ts';
import { MACHINE } from './faults.ts';
import { command } from './operations.ts';
import { byFetch } from './requests.ts';
import { aScenario } from './scenario.ts';
import {
  createSeparateLead,
  inShort,
  leadIdIn,
  makeSeparateStudio,
  type SeparateStudio,
  separateLead,
} from './separate-studio.ts';

/** The number of concurrent creations with one key, each with another contact. */
const AT_ONCE = 3;

const INDEX = 'leads_by_idempotency_key';

/** What replaces the unique index of keys. */
const WEAKER = {
  gone: [],
  partial: [`CREATE UNIQUE INDEX ${INDEX} ON leads (studio_number, idempotency_key) WHERE stage = 'lost'`],
  'not unique': [`CREATE INDEX ${INDEX} ON leads (studio_number, idempotency_key)`],
} as const;

type Weakness = keyof typeof WEAKER;

/**
 * The unique index of keys is dropped, or replaced by a weaker one, which is then removed. No creation is acknowledged without
 * it: the insert itself notices on SQLite. Leads can be read, and `doctor` reports it.
 */
export const loseIndex = aScenario({
  isPossible: ({ world }) => world.databaseUrl.startsWith('sqlite:'),
  weight: 1,
  choice: fc.record({ how: fc.constantFrom<Weakness>('gone', 'partial', 'not unique'), forMs: lasting(200, 1500) }),
  run: (sim, { how, forMs }) =>
    sim.inTurn(MACHINE, () =>
      asFarAsDefinite(async () => {
        const studio = await makeSeparateStudio(sim);
        const known = await createSeparateLead(sim, studio, separateLead(sim, studio.id, 'before'));
        const drop = [`DROP INDEX IF EXISTS ${INDEX}`];
        await sim.disturb(`the index of keys is ${how} for ${forMs} ms`, [], async () => {
          await runSql(sim.world.databaseUrl, drop, ...WEAKER[how].map((sql) => [sql]));
          try {
            await live(sim, studio, how, now() + forMs);
            const read = await definiteAnswer(sim, studio.secret, { name: 'get', leadId: leadIdIn(known) });
            if (read.status !== 200) sim.history.fail(`without an index a lead is read as ${inShort(read)}`);
          } finally {
            await runSql(sim.world.databaseUrl, drop);
          }
          // Readiness is up to a second behind.
          await createSeparateLead(sim, studio, separateLead(sim, studio.id, 'after'));
        });
      }),
    ),
});

/** Creates leads and asks `doctor` while the index is weak; what is dropped may be made again at any time. */
async function live(sim: Simulation, { id, secret }: SeparateStudio, how: Weakness, untilMs: number): Promise<void> {
  for (let round = 0; now() < untilMs; round += 1) {
    const { idempotencyKey, ...lead } = separateLead(sim, id, `${how}, round ${round}`);
    const answers = await Promise.all(
      times(AT_ONCE, (index) => {
        const contact = { type: 'email', value: `${idempotencyKey}-${index}@${sim.personal}.example` } as const;
        const operation = { name: 'create', lead: { ...lead, idempotencyKey, contact } } as const;
        return byFetch(sim, sim.world.urls[0] as string, secret, operation);
      }),
    );
    const made = new Set(answers.flatMap((answer) => (answer?.status === 201 ? [leadIdIn(answer)] : [])));
    if (made.size > (how === 'gone' ? 1 : 0))
      sim.history.fail(`with an index that is ${how}, ${made.size} leads are acknowledged for one key`);
    await sleep(40);
  }
  if (how === 'gone') return;
  const found = await untilDefinite(sim, 'doctor', async () => {
    const { status, stdout, stderr } = await command(sim, ['doctor', 'core']);
    return typeof status === 'number' ? `${status} ${stdout} ${stderr}` : undefined;
  });
  if (!/^1 .*idempotency_?key/is.test(found)) sim.history.fail(`with a weak index, doctor says: ${found}`);
}
