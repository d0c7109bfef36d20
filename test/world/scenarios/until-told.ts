import { setTimeout as sleep } from 'node:timers/promises';
import { Code, ConnectError } from '@connectrpc/connect';
import { ErrorInfoSchema } from '../../../proto/gen/google/rpc/error_details_pb.ts';
import { now, type Operation, type RestAnswer } from '../history.ts';
import type { Life } from '../life.ts';
import { ANSWERED_WITHIN_MS, requestOf, wholeAnswer } from './website.ts';

// A client of a studio that no other client uses repeats each operation until its outcome is certain. Whatever
// disturbs the service meanwhile, the state of the studio is known at each moment.

/** How long a client repeats an operation; milliseconds. More than the service takes to recover. */
const ASKS_FOR_MS = 45_000;

/** How long nothing must have been disturbed before a missing response counts as a fault; milliseconds. */
const UNDISTURBED_MS = 15_000;

/** The outcome cannot be determined: there are too many disturbances. */
class NotTold extends Error {}

/** Runs a scenario as far as disturbances of the service permit. */
export async function asFarAsTold(happen: () => Promise<void>): Promise<void> {
  try {
    await happen();
  } catch (error) {
    if (!(error instanceof NotTold)) throw error;
  }
}

/** Repeats an operation until its outcome is certain. @throws an error that ends `asFarAsTold` if it stays uncertain */
export async function untilTold<T>(life: Life, what: string, ask: () => Promise<T | undefined>): Promise<T> {
  for (const giveUp = now() + ASKS_FOR_MS; now() < giveUp; await sleep(100)) {
    const told = await ask();
    if (told !== undefined) return told;
  }
  if (!life.isDisturbedSince(now() - UNDISTURBED_MS))
    life.history.breaks(`${what}: nobody is told anything for certain in ${ASKS_FOR_MS} ms, and nothing was wrong`);
  throw new NotTold(what);
}

/** Returns the definitive response to a website server. */
export function answered(life: Life, secret: string, operation: Operation): Promise<RestAnswer> {
  const { method, path, headers, body } = requestOf(operation);
  return untilTold(life, `${method} ${path}`, async () => {
    try {
      const response = await fetch(life.world.urls[0] + path, {
        method,
        headers: { authorization: `Bearer ${secret}`, connection: 'close', ...headers },
        signal: AbortSignal.timeout(ANSWERED_WITHIN_MS),
        ...(body !== undefined && { body }),
      });
      const answer = await wholeAnswer(life, method, path, response);
      if (![408, 429, 503].includes(answer.status)) return answer;
      await sleep(1000 * Number(answer.headers.get('retry-after') ?? 0));
    } catch {
      // There was no response.
    }
    return undefined;
  });
}

/** A definitive outcome of a call of the CRM: an answer, or the reason for the refusal in short. */
export type Told<T> = { readonly answer: T } | { readonly refused: string };

/**
 * Returns the definitive outcome of an idempotent call of the CRM.
 *
 * @param isLostOnce is notified when the call may already have been carried out, where that makes a difference
 */
export function called<T>(life: Life, what: string, call: () => Promise<T>, isLostOnce?: () => void): Promise<Told<T>> {
  return untilTold(life, what, async () => {
    try {
      return { answer: await call() };
    } catch (error) {
      const fault = ConnectError.from(error);
      const [info] = fault.findDetails(ErrorInfoSchema);
      if (info?.domain === 'leadintake') return { refused: info.reason };
      // A core reports internal faults with this text; a broken connection has another.
      if (fault.code === Code.Internal && fault.rawMessage === 'internal error') return { refused: 'a fault inside' };
      isLostOnce?.();
      return undefined;
    }
  });
}
