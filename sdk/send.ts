import {
  type ApiRequest,
  type Attempt,
  attempt,
  isWorthRepeating,
  leavesOutcomeOpen,
  parseRetryAfter,
  settlesOutcome,
} from './attempt.ts';
import { IdempotencyConflictError, LeadAlreadyOpenError, NoAnswerError, ProblemError } from './errors.ts';
import { whyNoAnswer } from './not-sent.ts';
import { retryDelayMs, timeoutSignal, wait } from './retry.ts';

/** The minimum time for another attempt; milliseconds. With less, it would more likely time out and leave the outcome unknown. */
const MIN_ATTEMPT_MS = 1000;

/** How a request is sent. */
export interface Sending {
  readonly fetch: typeof fetch;
  /** The time limit of one attempt; milliseconds. */
  readonly attemptTimeoutMs: number;
  /** The time limit over all attempts; milliseconds. */
  readonly deadlineMs: number;
  /** Cancels the request, including its retries. */
  readonly signal?: AbortSignal | undefined;
  readonly onAttempt: ((report: AttemptReport) => void) | undefined;
}

/** A report on one attempt, without keys and personal data. */
export interface AttemptReport {
  /** 1 for the first attempt of a request. */
  readonly attempt: number;
  /** The failure, such as `429 integration_rate_limited`, `502, not of the service` or `no answer`; undefined: none. */
  readonly failure: string | undefined;
  /** The id of the attempt in the service's logs. */
  readonly requestId: string | undefined;
  /** The number of requests that the quota still allows in its window. */
  readonly quotaRemaining: number | undefined;
  /** The delay before the next attempt; milliseconds. undefined: there is none. */
  readonly retryInMs: number | undefined;
}

/** A successful response. */
export interface Answer {
  readonly body: unknown;
  readonly headers: Headers;
  /** The number of times the request was sent. */
  readonly attempts: number;
}

/**
 * Sends a request, and retries while a retry may succeed and time is left.
 *
 * @throws ProblemError or NoAnswerError; `written` reports whether the lead may have been written
 */
export async function send(
  request: ApiRequest,
  idempotencyKey: string | undefined,
  { fetch, attemptTimeoutMs, deadlineMs, signal, onAttempt }: Sending,
): Promise<Answer> {
  const end = performance.now() + deadlineMs;
  let attempts = 0;
  let isOpen = false;
  // Cancelled before the first attempt: nothing was written.
  if (signal?.aborted) throw cancelled();
  for (;;) {
    const timeoutMs = Math.min(attemptTimeoutMs, Math.max(0, Math.ceil(end - performance.now())));
    const limits = [timeoutSignal(timeoutMs), ...(signal ? [signal] : [])];
    const last = await attempt(request, fetch, AbortSignal.any(limits));
    attempts += 1;
    if (last.kind === 'answer') {
      tell(onAttempt, reportOn(last, attempts));
      return { ...last, attempts };
    }
    isOpen = (isOpen && !settlesOutcome(last)) || leavesOutcomeOpen(last);
    const waitMs = retryDelayMs(attempts, parseRetryAfter(last));
    const isInTime = performance.now() + waitMs + MIN_ATTEMPT_MS < end;
    const isLast = signal?.aborted || !isWorthRepeating(last) || !isInTime;
    tell(onAttempt, reportOn(last, attempts, isLast ? undefined : waitMs));
    if (signal?.aborted) throw cancelled();
    if (isLast) throw failed(last);
    await wait(waitMs, signal).catch(() => {
      throw cancelled();
    });
  }

  function cancelled() {
    return failed({ kind: 'none', cause: signal?.reason });
  }

  function failed(last: Exclude<Attempt, { kind: 'answer' }>) {
    const written = idempotencyKey !== undefined && isOpen ? 'unknown' : 'no';
    const failure = { written, idempotencyKey, attempts, retryAfterSeconds: parseRetryAfter(last) } as const;
    if (last.kind === 'none') {
      const message = signal?.aborted
        ? 'The call was cancelled'
        : `The service has not answered: ${whyNoAnswer(last.cause, last.status)}`;
      return new NoAnswerError(message, { ...failure, status: last.status, cause: last.cause });
    }
    switch (last.problem.code) {
      case 'integration_lead_already_open':
        return new LeadAlreadyOpenError(leadIn(last.headers), last.problem, failure);
      case 'integration_idempotency_conflict':
        return new IdempotencyConflictError(last.problem, failure);
      default:
        return new ProblemError(last.problem, failure);
    }
  }
}

/** Calls the listener, which may be asynchronous. Its failure does not fail the request, which may have written the lead. */
async function tell(onAttempt: Sending['onAttempt'], report: AttemptReport): Promise<void> {
  try {
    await onAttempt?.(report);
  } catch (error) {
    console.error('Lead Intake: onAttempt has failed:', error);
  }
}

function reportOn(last: Attempt, attempt: number, retryInMs?: number): AttemptReport {
  const remaining = /;\s*r=(\d+)/.exec(last.headers?.get('ratelimit') ?? '')?.[1];
  return {
    attempt,
    failure: describeFailure(last),
    requestId: last.headers?.get('x-request-id') ?? undefined,
    quotaRemaining: remaining === undefined ? undefined : Number(remaining),
    retryInMs,
  };
}

function describeFailure(last: Attempt): string | undefined {
  if (last.kind === 'answer') return undefined;
  if (last.kind === 'problem') return `${last.problem.status} ${last.problem.code}`;
  return last.status === undefined ? 'no answer' : whyNoAnswer(last.cause, last.status);
}

/** Returns the lead id from `Link: <…>; rel="existing-lead"`. */
function leadIn(headers: Headers): string | undefined {
  return /\/([^/>]+)>; rel="existing-lead"/.exec(headers.get('link') ?? '')?.[1];
}
