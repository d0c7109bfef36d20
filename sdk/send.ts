import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ApiRequest,
  type Attempt,
  attempt,
  isWorthRepeating,
  leavesOutcomeOpen,
  retryAfterOf,
  settlesOutcome,
} from './attempt.ts';
import { IdempotencyConflictError, LeadAlreadyOpenError, NoAnswerError, ProblemError } from './errors.ts';

/** The first back-off, and the longest; milliseconds. */
const FIRST_BACK_OFF_MS = 500;
const MAX_BACK_OFF_MS = 30_000;

/** With less time left than this, another attempt would more likely confuse the outcome than settle it; milliseconds. */
const SHORTEST_ATTEMPT_MS = 1000;

/** A timer of Node that is longer goes off at once; milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** How requests are sent. */
export interface Sending {
  readonly fetch: typeof fetch;
  /** When to give up on an attempt and begin another one; milliseconds. */
  readonly attemptTimeoutMs: number;
  /** When to give up on the request, whatever the number of attempts; milliseconds. */
  readonly deadlineMs: number;
  /** Aborted when the caller gives up. */
  readonly signal?: AbortSignal | undefined;
}

/** What came back in the end. */
export interface Answer {
  readonly body: unknown;
  readonly headers: Headers;
}

/**
 * Sends a request, again and again while that may help and time is left.
 *
 * @throws ProblemError or NoAnswerError, which tell whether anything was written
 */
export async function send(
  request: ApiRequest,
  idempotencyKey: string | undefined,
  { fetch, attemptTimeoutMs, deadlineMs, signal }: Sending,
): Promise<Answer> {
  const end = performance.now() + deadlineMs;
  let attempts = 0;
  let isOpen = false;
  // Whoever gives up before anything is sent has written nothing.
  if (signal?.aborted) throw givenUp();
  for (;;) {
    const timeoutMs = Math.min(attemptTimeoutMs, Math.max(0, Math.ceil(end - performance.now())));
    const limits = [AbortSignal.timeout(Math.min(timeoutMs, MAX_TIMER_MS)), ...(signal ? [signal] : [])];
    const last = await attempt(request, fetch, AbortSignal.any(limits));
    attempts += 1;
    if (last.kind === 'answer') return last;
    isOpen = (isOpen && !settlesOutcome(last)) || leavesOutcomeOpen(last);
    if (signal?.aborted) throw givenUp();

    const waitMs = timeToWait(attempts, retryAfterOf(last));
    const isInTime = performance.now() + waitMs + SHORTEST_ATTEMPT_MS < end;
    if (!isWorthRepeating(last) || !isInTime) throw failed(last);
    await wait(waitMs, signal).catch(() => {
      throw givenUp();
    });
  }

  function givenUp() {
    return failed({ kind: 'none', cause: signal?.reason });
  }

  function failed(last: Exclude<Attempt, { kind: 'answer' }>) {
    const written = idempotencyKey !== undefined && isOpen ? 'unknown' : 'no';
    const failure = { written, idempotencyKey, attempts } as const;
    if (last.kind === 'none') {
      const message = signal?.aborted ? 'The caller has given up' : 'The service has not answered';
      return new NoAnswerError(message, { ...failure, cause: last.cause });
    }
    const told = { ...failure, retryAfterSeconds: retryAfterOf(last) };
    switch (last.problem.code) {
      case 'integration_lead_already_open':
        return new LeadAlreadyOpenError(leadIn(last.headers), last.problem, told);
      case 'integration_idempotency_conflict':
        return new IdempotencyConflictError(last.problem, told);
      default:
        return new ProblemError(last.problem, told);
    }
  }
}

/** Doubles with each attempt, by chance up to a half shorter, and never before the service wants the next one. */
function timeToWait(attempts: number, retryAfterSeconds = 0): number {
  const half = Math.min(MAX_BACK_OFF_MS, FIRST_BACK_OFF_MS * 2 ** (attempts - 1)) / 2;
  return Math.max(half, retryAfterSeconds * 1000) + Math.random() * half;
}

/** @throws Error when the caller gives up meanwhile */
async function wait(waitMs: number, signal: AbortSignal | undefined): Promise<void> {
  for (let restMs = waitMs; restMs > 0; restMs -= MAX_TIMER_MS) {
    await sleep(Math.min(restMs, MAX_TIMER_MS), undefined, { ...(signal && { signal }) });
  }
}

/** The id of the lead that a `Link: <…>; rel="existing-lead"` leads to. */
function leadIn(headers: Headers): string | undefined {
  return /\/([^/>]+)>; rel="existing-lead"/.exec(headers.get('link') ?? '')?.[1];
}
