import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT } from '../tools/processes.ts';
import { changedBy, DATABASES, type Database, type Life, live, simulatedPlanFrom } from './life.ts';
import { type Plan, SCENARIOS, USUAL } from './plan.ts';
import { MORE_SCENARIOS } from './replica-set-scenarios.ts';
import { shrinkPlan } from './shrink-plan.ts';

/** The processor time for finding a shorter plan that breaks a promise; milliseconds. */
const SHRINKS_FOR_MS = 120_000;

/** The number of broken promises shown. */
const SHOWN = 10;

/** The folder of failure reports. */
export const REPORTS: string = join(ROOT, '.test-report');

/** The inputs that determine a life, besides the code. */
interface Lived {
  readonly seed: number;
  readonly plan: Plan;
}

/** A plan that breaks a promise, and the commit of its code. */
interface KeptPlan extends Lived {
  readonly commit: string;
  readonly database: Database;
}

/** Where lives run: on SQLite by default, in processes with these environment variables. */
interface Where {
  readonly database?: Database;
  readonly env?: Readonly<Record<string, string>>;
  /** The options that repeat these lives. */
  readonly again?: string;
}

export interface Simulations {
  readonly lives: number;
  readonly virtualMs: number;
  /** A readable report; undefined if no promise was broken. */
  readonly failure: string | undefined;
}

/**
 * Runs lives, as many at once as there are processors, until a promise is broken or the time is over.
 *
 * @param plans in the order in which they start
 * @param report receives a line after each life
 */
export async function simulate(
  plans: Iterable<Lived>,
  forMs: number,
  report: (line: string) => void = () => {},
  where: Where = {},
): Promise<Simulations> {
  const end = performance.now() + forMs;
  const all = { lives: 0, virtualMs: 0 };
  let failed: (Lived & { readonly life: Life }) | undefined;
  const waiting = plans[Symbol.iterator]();
  const runLives = async () => {
    while (!failed && performance.now() < end) {
      const { value, done } = waiting.next();
      if (done) return;
      const { seed, plan } = value;
      const life = await live(seed, plan, where);
      all.lives += 1;
      all.virtualMs += life.virtualMs;
      const verdict = life.violations.length > 0 ? 'a promise is broken' : 'every promise is kept';
      const excused = `${Math.round(100 * life.excused)} % of requests are excused`;
      const unchecked = life.unknown.length > 0 ? `, not checked: ${life.unknown.join(', ')}` : '';
      report(
        `seed ${seed}: ${verdict}, ${(life.virtualMs / 1000).toFixed(1)} s, ${life.events} events, ${excused}, trace ${life.trace}${unchecked}`,
      );
      if (life.violations.length > 0) failed ??= { seed, plan, life };
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, runLives));
  return { ...all, failure: failed && (await reportShortest(failed, where)) };
}

/** Shortens a plan that breaks a promise, stores it, and describes its life. */
async function reportShortest(
  { seed, plan, life }: Lived & { readonly life: Life },
  { database = 'sqlite', env = {}, again = '' }: Where,
): Promise<string> {
  let [shown, spentMs] = [life, 0];
  const isBroken = async (shorter: Plan) => {
    const lived = await live(seed, shorter, { database, env });
    spentMs += lived.processorMs;
    if (lived.violations.length > 0) shown = lived;
    return lived.violations.length > 0;
  };
  const kept = await shrinkPlan(plan, USUAL, isBroken, () => spentMs < SHRINKS_FOR_MS);
  const { steps, ...settings } = kept;
  const commit = currentCommit();
  const file = join(REPORTS, `simulation-${database}-${seed}.json`);
  mkdirSync(REPORTS, { recursive: true });
  writeFileSync(file, JSON.stringify({ commit, database, seed, plan: kept } satisfies KeptPlan));
  const [first = '', ...others] = shown.violations.slice(0, SHOWN);
  return [
    first,
    '',
    `seed ${seed} breaks promises at commit ${commit}; \`npm run simulate -- --database ${database} --seed ${seed}${again}\` repeats that,`,
    `and \`npm run simulate -- --plan ${file}\` runs its shortest known plan, even when seeds make other plans`,
    ...others,
    '',
    `that plan has ${steps.length} steps and these settings: ${JSON.stringify(settings)}`,
    ...steps.map((step) => JSON.stringify(step)),
    '',
    shown.story,
    '',
    'the last events:',
    ...shown.lastEvents,
  ].join('\n');
}

/** Describes the commit of the code, and whether files differ from it. */
function currentCommit(): string {
  const words = ['describe', '--always', '--abbrev=40', '--exclude=*', '--dirty=, changed'];
  try {
    return execFileSync('git', words, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return 'unknown';
  }
}

/**
 * Generates the plans of consecutive seeds.
 *
 * @param hours the total duration of the steps of each life; 0: as short as possible
 * @param often a scenario that is every second step
 */
export function* plansFrom(
  first: number,
  steps: number,
  database: Database,
  hours = 0,
  often?: string,
): Generator<Lived> {
  for (let seed = first; ; seed += 1) yield { seed, plan: simulatedPlanFrom(seed, steps, database, hours, often) };
}

/** Runs the life of a plan once, and prints all of it. */
async function show({ seed, plan }: Lived, where: Where, options: readonly string[]): Promise<void> {
  const { violations, events, story } = await live(seed, plan, { ...where, options });
  const verdict = violations.length > 0 ? violations : ['every promise is kept'];
  console.log([...verdict, '', story, '', `${events} events`].join('\n'));
  process.exitCode = violations.length > 0 ? 1 : 0;
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
      plan: { type: 'string' },
      scenario: { type: 'string' },
      bug: { type: 'string' },
    },
  });
  const { seed, seconds, steps, hours, trace, scenario, bug } = values;
  const options = trace ? ['--trace', trace] : [];
  const database = DATABASES.find((each) => each === values.database);
  if (!database) throw new Error(`--database must be one of ${DATABASES.join(', ')}`);
  const names = Object.keys({ ...SCENARIOS, ...(database === 'mongodb' && MORE_SCENARIOS) });
  if (scenario !== undefined && !names.includes(scenario))
    throw new Error(`--scenario must be one of ${names.join(', ')}`);
  const again = Object.entries({ scenario, bug })
    .flatMap(([name, value]) => (value ? [` --${name} ${value}`] : []))
    .join('');
  const env = bug === undefined ? {} : changedBy(bug);
  const first = seed === undefined ? Math.floor(Math.random() * 2 ** 30) : Number(seed);
  const plans = plansFrom(first, Number(steps), database, Number(hours), scenario);
  if (values.plan !== undefined) {
    const kept: KeptPlan = JSON.parse(readFileSync(values.plan, 'utf8'));
    const commit = currentCommit();
    if (kept.commit !== commit)
      console.log(`this plan broke a promise at commit ${kept.commit}; it now runs at ${commit}, which may differ`);
    await show(kept, { database: kept.database, env }, options);
  } else if (seed !== undefined && options.length > 0) await show(plans.next().value, { database, env }, options);
  else {
    const { failure, lives, virtualMs } = await simulate(
      seed === undefined ? plans : plans.take(1),
      Number(seconds) * 1000,
      console.log,
      { database, env, again },
    );
    console.log(failure ?? `every promise is kept: lives ${lives}, simulated seconds ${(virtualMs / 1000).toFixed(0)}`);
    process.exitCode = failure ? 1 : 0;
  }
}
