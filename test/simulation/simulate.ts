import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { DATABASES, type Database, type Life, live, simulatedPlanFrom } from './life.ts';
import { type Plan, USUAL } from './plan.ts';
import { shrinkPlan } from './shrink-plan.ts';

/** The time for finding a shorter plan that breaks a promise; milliseconds. */
const SHRINKS_FOR_MS = 120_000;

/** The number of broken promises that are shown. */
const SHOWN = 10;

export interface Simulations {
  readonly lives: number;
  readonly virtualMs: number;
  /** A text for people; undefined: every promise was kept. */
  readonly failure: string | undefined;
}

/**
 * Lives one life after the other, several at once, until a promise is broken or the time is over.
 *
 * @param seeds the seeds, in the order in which they are used
 * @param report receives a line after each life
 * @param hours over how long the steps of each life are spread; 0: as soon as possible
 */
export async function simulate(
  seeds: Iterable<number>,
  steps: number,
  forMs: number,
  report: (line: string) => void = () => {},
  database: Database = 'sqlite',
  hours = 0,
): Promise<Simulations> {
  const end = performance.now() + forMs;
  const all = { lives: 0, virtualMs: 0 };
  let failed: { readonly seed: number; readonly plan: Plan; readonly life: Life } | undefined;
  const waiting = seeds[Symbol.iterator]();
  const liveOn = async () => {
    while (!failed && performance.now() < end) {
      const { value: seed, done } = waiting.next();
      if (done) return;
      const plan = simulatedPlanFrom(seed, steps, database, hours);
      const life = await live(seed, plan, { database });
      all.lives += 1;
      all.virtualMs += life.virtualMs;
      const verdict = life.violations.length > 0 ? 'a promise is broken' : 'every promise is kept';
      const unchecked = life.unknown.length > 0 ? `, not checked: ${life.unknown.join(', ')}` : '';
      report(
        `seed ${seed}: ${verdict}, ${(life.virtualMs / 1000).toFixed(1)} s, ${life.events} events, trace ${life.trace}${unchecked}`,
      );
      if (life.violations.length > 0) failed ??= { seed, plan, life };
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, liveOn));
  return { ...all, failure: failed && (await shortest(failed, database)) };
}

/** Describes the shortest known life that breaks a promise. */
async function shortest(
  { seed, plan, life }: { seed: number; plan: Plan; life: Life },
  database: Database,
): Promise<string> {
  let shown = life;
  const isBroken = async (shorter: Plan) => {
    const lived = await live(seed, shorter, { database });
    if (lived.violations.length > 0) shown = lived;
    return lived.violations.length > 0;
  };
  const { steps, ...settings } = await shrinkPlan(plan, USUAL, isBroken, performance.now() + SHRINKS_FOR_MS);
  return [
    `seed ${seed} breaks promises; \`npm run simulate -- --database ${database} --seed ${seed}\` shows it again`,
    ...shown.violations.slice(0, SHOWN),
    '',
    `a plan of ${steps.length} steps that does: ${JSON.stringify(settings)}`,
    ...steps.map((step) => JSON.stringify(step)),
    '',
    shown.story,
    '',
    'the last events:',
    ...shown.lastEvents,
  ].join('\n');
}

/** Seeds from one on. */
export function* seedsFrom(first: number): Generator<number> {
  for (let seed = first; ; seed += 1) yield seed;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      database: { type: 'string', default: 'sqlite' },
      seed: { type: 'string' },
      seconds: { type: 'string', default: '60' },
      steps: { type: 'string', default: '80' },
      hours: { type: 'string', default: '0' },
      trace: { type: 'string' },
      from: { type: 'string' },
    },
  });
  const { seed, seconds, steps, hours, trace, from } = values;
  const database = DATABASES.find((each) => each === values.database);
  if (!database) throw new Error(`--database is one of ${DATABASES.join(', ')}`);
  if (seed !== undefined && (trace ?? from) !== undefined) {
    const options = [...(trace ? ['--trace', trace] : []), ...(from ? ['--from', from] : [])];
    const plan = simulatedPlanFrom(Number(seed), Number(steps), database, Number(hours));
    const { violations, events, story } = await live(Number(seed), plan, { database, options });
    console.log([...violations, '', story, '', `${events} events`].join('\n'));
  } else {
    const seeds = seed === undefined ? seedsFrom(Math.floor(Math.random() * 2 ** 30)) : [Number(seed)];
    const { failure, lives, virtualMs } = await simulate(
      seeds,
      Number(steps),
      Number(seconds) * 1000,
      console.log,
      database,
      Number(hours),
    );
    console.log(failure ?? `every promise is kept: lives ${lives}, simulated seconds ${(virtualMs / 1000).toFixed(0)}`);
    process.exitCode = failure ? 1 : 0;
  }
}
