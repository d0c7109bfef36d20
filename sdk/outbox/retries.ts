import type { ProblemError } from '../errors.ts';
import { FAILING_FROM_STATUS, TEMPORARY_STATUSES } from '../outcomes.ts';
import { isOfAll, isUnanswered, reasonOfFailure } from './reasons.ts';

/** A retry cannot help: the lead needs a person's attention. */
interface Refused {
  readonly state: 'refused';
  readonly reason: string;
}

/** The lead is sent again later. */
interface Waiting {
  readonly state: 'waiting';
  readonly reason: string;
  readonly retryAfterSeconds?: number | undefined;
  /** Whether the attempt does not count: it wrote nothing, and the lead did not cause its failure. */
  readonly isFree?: boolean;
}

/** The outcome for a lead that was not sent. */
export type Unsent = Refused | Waiting;

const SECOND_MS = 1000;
const HOUR_MS = 3600 * SECOND_MS;

const FIRST_BACK_OFF_MS = 30 * SECOND_MS;
const MAX_BACK_OFF_MS = HOUR_MS;

/** The maximum delay before the next attempt. */
export const MAX_WAIT_MS = 24 * HOUR_MS;

/** Returns whether a lead that the service has refused is sent again. */
export function outcomeOfProblem(problem: ProblemError): Unsent {
  const { status, retryAfterSeconds } = problem;
  const reason = reasonOfFailure(problem);
  if (!isOfAll(reason) && status < FAILING_FROM_STATUS && !TEMPORARY_STATUSES.includes(status))
    return { state: 'refused', reason };
  return { state: 'waiting', reason, retryAfterSeconds, isFree: isOfAll(reason) && problem.written === 'no' };
}

/** Returns how long a lead waits for its next attempt. */
export function waitMs({ reason, retryAfterSeconds }: Waiting, attempts: number): number {
  // The end of an outage must be noticed as soon as the end of a pause.
  const isShort = isOfAll(reason) || isUnanswered(reason);
  return isShort ? pauseMs(retryAfterSeconds) : retryDelayMs(attempts, retryAfterSeconds);
}

/** Returns the wait that the service has asked for; the first backoff when it has not. */
function pauseMs(retryAfterSeconds = FIRST_BACK_OFF_MS / SECOND_MS): number {
  return Math.min(MAX_WAIT_MS, retryAfterSeconds * SECOND_MS);
}

/** Returns the exponential backoff, up to a half shorter by jitter, and never less than `Retry-After`. */
function retryDelayMs(attempts: number, retryAfterSeconds = 0): number {
  const backOffMs = Math.min(MAX_BACK_OFF_MS, FIRST_BACK_OFF_MS * 2 ** (attempts - 1));
  const delayMs = Math.max(retryAfterSeconds * SECOND_MS, backOffMs * (1 - Math.random() / 2));
  return Math.round(Math.min(MAX_WAIT_MS, delayMs));
}
