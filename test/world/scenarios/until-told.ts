import { setTimeout as sleep } from 'node:timers/promises';
import { Code, ConnectError } from '@connectrpc/connect';
import { ErrorInfoSchema } from '../../../proto/gen/google/rpc/error_details_pb.ts';
import { now, type Operation, type RestAnswer } from '../history.ts';
import type { Life } from '../life.ts';
import { ANSWERED_WITHIN_MS, requestOf, wholeAnswer } from './website.ts';

// Who does things in a studio that nobody else knows asks for each until it is told something for certain: whatever
// disturbs the service meanwhile, they know at each moment how all stands there.

/** How long somebody keeps asking; milliseconds. More than all may take to be served again. */
const ASKS_FOR_MS = 45_000;

/** For how long nothing may have disturbed anything before it is a fault that somebody is told nothing; milliseconds. */
const UNDISTURBED_MS = 15_000;

/** Nothing can be found out any more: too much disturbs it. */
class NotTold extends Error {}

/** Has something happen as far as what disturbs the service lets it. */
export async function asFarAsTold(happen: () => Promise<void>): Promise<void> {
  try {
    await happen();
  } catch (error) {
    if (!(error instanceof NotTold)) throw error;
  }
}

/** Asks until somebody is told something for certain. @throws what ends `asFarAsTold` where nobody is */
export async function untilTold<T>(life: Life, what: string, ask: () => Promise<T | undefined>): Promise<T> {
  for (const giveUp = now() + ASKS_FOR_MS; now() < giveUp; await sleep(100)) {
    const told = await ask();
    if (told !== undefined) return told;
  }
  if (!life.isDisturbedSince(now() - UNDISTURBED_MS))
    life.history.breaks(`${what}: nobody is told anything for certain in ${ASKS_FOR_MS} ms, and nothing was wrong`);
  throw new NotTold(what);
}

/** What a website server is answered for certain. */
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
      // Nothing was answered.
    }
    return undefined;
  });
}

/** What the CRM is told for certain: an answer, or in a word why there is none. */
export type Told<T> = { readonly answer: T } | { readonly refused: string };

/**
 * What the CRM is told for certain of something that may be done twice.
 *
 * @param isLostOnce where that makes a difference, is told that it may have been done already
 */
export function called<T>(life: Life, what: string, call: () => Promise<T>, isLostOnce?: () => void): Promise<Told<T>> {
  return untilTold(life, what, async () => {
    try {
      return { answer: await call() };
    } catch (error) {
      const fault = ConnectError.from(error);
      const [info] = fault.findDetails(ErrorInfoSchema);
      if (info?.domain === 'leadintake') return { refused: info.reason };
      // So a core tells a fault inside; a connection that breaks has other words.
      if (fault.code === Code.Internal && fault.rawMessage === 'internal error') return { refused: 'a fault inside' };
      isLostOnce?.();
      return undefined;
    }
  });
}
