import { setTimeout as sleep } from 'node:timers/promises';
import { Code, ConnectError } from '@connectrpc/connect';
import { ErrorInfoSchema } from '../../../proto/gen/google/rpc/error_details_pb.ts';
import { now, type Operation, type RestAnswer } from '../history.ts';
import type { Simulation } from '../simulation.ts';
import { ANSWERED_WITHIN_MS, requestOf, wholeAnswer } from './website.ts';

// A client of a studio that no other client uses repeats each operation until its outcome is certain. Whatever
// disturbs the service meanwhile, the state of the studio is known at each moment.

/** How long a client repeats an operation; milliseconds. More than the service takes to recover. */
const REPEATS_FOR_MS = 45_000;

/** How long nothing must have been disturbed before a missing response counts as a fault; milliseconds. */
const UNDISTURBED_MS = 15_000;

/** The outcome cannot be determined: there are too many disturbances. */
class Indefinite extends Error {}

/** Runs a scenario as far as disturbances of the service permit. */
export async function asFarAsDefinite(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!(error instanceof Indefinite)) throw error;
  }
}

/** Repeats an operation until its outcome is certain. @throws an error that ends `asFarAsDefinite` if it stays uncertain */
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

/** Returns the definitive response to a website server. */
export function definiteAnswer(sim: Simulation, secret: string, operation: Operation): Promise<RestAnswer> {
  const { method, path, headers, body } = requestOf(operation);
  return untilDefinite(sim, `${method} ${path}`, async () => {
    try {
      const response = await fetch(sim.world.urls[0] + path, {
        method,
        headers: { authorization: `Bearer ${secret}`, connection: 'close', ...headers },
        signal: AbortSignal.timeout(ANSWERED_WITHIN_MS),
        ...(body !== undefined && { body }),
      });
      const answer = await wholeAnswer(sim, method, path, response);
      if (![408, 429, 503].includes(answer.status)) return answer;
      await sleep(1000 * Number(answer.headers.get('retry-after') ?? 0));
    } catch {
      // There was no response.
    }
    return undefined;
  });
}

/** A definitive outcome of a call of the CRM: an answer, or the reason for the refusal in short. */
export type DefiniteOutcome<T> = { readonly answer: T } | { readonly refused: string };

/**
 * Returns the definitive outcome of an idempotent call of the CRM.
 *
 * @param onLostOutcome is notified when the call may already have been carried out, where that makes a difference
 */
export function definiteOutcome<T>(
  sim: Simulation,
  what: string,
  call: () => Promise<T>,
  onLostOutcome?: () => void,
): Promise<DefiniteOutcome<T>> {
  return untilDefinite(sim, what, async () => {
    try {
      return { answer: await call() };
    } catch (error) {
      const fault = ConnectError.from(error);
      const [info] = fault.findDetails(ErrorInfoSchema);
      if (info?.domain === 'leadintake') return { refused: info.reason };
      // A core reports internal faults with this text; a broken connection has another.
      if (fault.code === Code.Internal && fault.rawMessage === 'internal error') return { refused: 'internal error' };
      onLostOutcome?.();
      return undefined;
    }
  });
}
