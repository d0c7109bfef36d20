import { randomInt } from 'node:crypto';
import { type Lived, live, type StartWorld } from './live.ts';
import { type Plan, planFrom, USUAL } from './plan.ts';
import { shrinkPlan } from './shrink-plan.ts';

/** The maximum number of steps of a life. */
export const STEPS = Number(process.env.WORLD_STEPS ?? 160);

/** The minimum duration of a run whose lives may have slow readers that keep their connections. */
const TIME_TO_STAY_SECONDS = 120;

/** The time limit for shrinking a plan that broke a promise; milliseconds. */
const SHRINKS_FOR_MS = Number(process.env.WORLD_SHRINK_SECONDS ?? 120) * 1000;

/** A life in which a promise was broken. */
export interface Failure {
  readonly seed: number;
  /** The number of the life, from 1. */
  readonly life: number;
  /** The shortest known plan that breaks a promise; `broken` and `story` belong to it. */
  readonly plan: Plan;
  readonly broken: readonly string[];
  readonly story: string;
}

/**
 * Runs one life after the other until a promise is broken or the time is over.
 *
 * @param seeds the seeds of the first lives; later ones are random
 * @param tell receives a line of progress after each life
 */
export async function liveFor(
  seconds: number,
  seeds: readonly number[],
  startWorld: StartWorld,
  tell: (line: string) => void,
): Promise<{ readonly lives: number; readonly failure: Failure | undefined }> {
  const begin = performance.now();
  for (let life = 1; ; life += 1) {
    const seed = seeds[life - 1] ?? drawnSeed(seconds);
    const lived = performance.now();
    const { failure, unknown } = await failureOf(seed, startWorld);
    const told = failure ? 'a promise is broken' : 'every promise is kept';
    const untold = unknown.length > 0 ? `, but for what is too tangled to tell: ${unknown.join(', ')}` : '';
    const secondsSince = (since: number) => Math.round((performance.now() - since) / 1000);
    const [took, all] = [secondsSince(lived), secondsSince(begin)] as const;
    tell(`life ${life}, WORLD_SEED=${seed}: ${told}${untold}, ${took} s (${all} of ${seconds} s)`);
    if (failure) return { lives: life, failure: { ...failure, seed, life } };
    if (all >= seconds && life >= seeds.length) return { lives: life, failure: undefined };
  }
}

/** Lives with slow readers take longer: short runs skip their seeds. */
function drawnSeed(seconds: number): number {
  for (;;) {
    const seed = randomInt(2 ** 31);
    if (seconds >= TIME_TO_STAY_SECONDS || !planFrom(seed, STEPS).stays) return seed;
  }
}

/** Runs the plan of a seed; when it breaks a promise, shrinks it to a shorter one that breaks one, too. */
async function failureOf(
  seed: number,
  startWorld: StartWorld,
): Promise<{
  readonly failure: Pick<Failure, 'plan' | 'broken' | 'story'> | undefined;
  readonly unknown: readonly string[];
}> {
  let count = 0;
  const liveOnce = async (plan: Plan): Promise<Lived> => {
    count += 1;
    return live(plan, `${seed}-${count}`, startWorld).catch((error) => ({
      broken: [`it cannot be lived: ${error.stack}`],
      unknown: [],
      story: '',
    }));
  };
  const plan = planFrom(seed, STEPS);
  const lived = await liveOnce(plan);
  const { unknown } = lived;
  if (lived.broken.length === 0) return { failure: undefined, unknown };
  const shortest = await shrinkPlan({ plan, lived }, USUAL, liveOnce, performance.now() + SHRINKS_FOR_MS);
  return { failure: { plan: shortest.plan, ...shortest.lived }, unknown };
}
