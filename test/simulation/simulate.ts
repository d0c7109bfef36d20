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

/** The inputs that determine a life, beside the code. */
interface Lived {
  readonly seed: number;
  readonly plan: Plan;
}

/** A plan that breaks a promise, and the commit of its code. */
interface KeptPlan extends Lived {
  readonly commit: string;
  readonly database: Database;
}

/** The place of lives: SQLite by default, in processes with these variables. */
interface Where {
  readonly database?: Database;
  readonly env?: Readonly<Record<string, string>>;
  /** The options that repeat such lives. */
  readonly again?: string;
}

export interface Simulations {
  readonly lives: number;
  readonly virtualMs: number;
  /** A readable report; undefined if no promise was broken. */
  readonly failure: string | undefined;
}

/**
 * Lives one life after the other, several concurrently, until a promise is broken or the time is over.
 *
 * @param plans in the order in which they are lived
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
  const liveOn = async () => {
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
  await Promise.all(Array.from({ length: availableParallelism() }, liveOn));
  return { ...all, failure: failed && (await shortest(failed, where)) };
}

/** Writes the shortest known plan that breaks a promise, and describes its life. */
async function shortest(
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
    `seed ${seed} breaks promises at commit ${commit}; \`npm run simulate -- --database ${database} --seed ${seed}${again}\` shows it again,`,
    `and \`npm run simulate -- --plan ${file}\` its shortest known plan, also when seeds make other plans`,
    ...others,
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

/** Returns the commit of the code, and whether files differ from it. */
function currentCommit(): string {
  const words = ['describe', '--always', '--abbrev=40', '--exclude=*', '--dirty=, changed'];
  try {
    return execFileSync('git', words, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return 'unknown';
  }
}

/**
 * Generates the plans of a seed and the next ones.
 *
 * @param hours how long the steps of each life last in total; 0: as short as possible
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

/** Lives the life of a plan once, and prints all of it. */
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
  if (!database) throw new Error(`--database is one of ${DATABASES.join(', ')}`);
  const names = Object.keys({ ...SCENARIOS, ...(database === 'mongodb' && MORE_SCENARIOS) });
  if (scenario !== undefined && !names.includes(scenario)) throw new Error(`--scenario is one of ${names.join(', ')}`);
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
      console.log(`it broke a promise at commit ${kept.commit}, and is lived at ${commit}, where more may differ`);
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
