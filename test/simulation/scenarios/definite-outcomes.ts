import { setTimeout as sleep } from 'node:timers/promises';
import { now, type Operation, type RestAnswer } from '../history.ts';
import type { Simulation } from '../simulation.ts';
import { findOutcome } from './operations.ts';
import { byFetch } from './requests.ts';

// The only client of a studio repeats each operation until its outcome is certain. So the state of the studio is known at
// each moment, despite disturbances.

/** How long a client repeats an operation: longer than the service takes to recover; milliseconds. */
const REPEATS_FOR_MS = 45_000;

/** How long nothing must have been disturbed for a missing response to break a promise; milliseconds. */
const UNDISTURBED_MS = 15_000;

/** Too many disturbances prevent a certain outcome. */
class Indefinite extends Error {}

/** Runs a scenario, and ends it when disturbances leave an outcome uncertain. */
export async function asFarAsDefinite(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!(error instanceof Indefinite)) throw error;
  }
}

/** Repeats an operation until its outcome is certain. @throws Indefinite if it stays uncertain */
export async function untilDefinite<T>(
  sim: Simulation,
  what: string,
  attempt: () => Promise<T | undefined>,
): Promise<T> {
  for (const giveUp = now() + REPEATS_FOR_MS; now() < giveUp; await sleep(100)) {
    const outcome = await attempt();
    if (outcome !== undefined) return outcome;
  }
  if (!sim.isDisturbedSince(now() - UNDISTURBED_MS))
    sim.history.fail(`${what}: no definite outcome in ${REPEATS_FOR_MS} ms without a disturbance`);
  throw new Indefinite(what);
}

/** Returns the definite response to a website server. */
export function definiteAnswer(sim: Simulation, secret: string, operation: Operation): Promise<RestAnswer> {
  return untilDefinite(sim, operation.name, async () => {
    const answer = await byFetch(sim, sim.world.urls[0] as string, secret, operation);
    if (!answer || ![408, 429, 503].includes(answer.status)) return answer;
    await sleep(1000 * Number(answer.headers.get('retry-after') ?? 0));
    return undefined;
  });
}

/** Returns the definite outcome of an idempotent call of the CRM: an answer, or the reason of a refusal. */
export function definiteOutcome<T>(
  sim: Simulation,
  what: string,
  call: () => Promise<T>,
): Promise<{ readonly answer: T } | { readonly refused: string }> {
  return untilDefinite(sim, what, async () => {
    const outcome = await findOutcome(call());
    return 'unknown' in outcome ? undefined : outcome;
  });
}
