/** The first and the maximum backoff; milliseconds. */
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 30_000;

/** The longest delay of a timer; milliseconds. A longer one fires immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Returns a signal that is aborted after `ms`, rounded up, and at the latest after the longest delay of a timer. */
export const timeoutSignal = (ms: number): AbortSignal => AbortSignal.timeout(Math.min(Math.ceil(ms), MAX_TIMER_MS));

/** Returns the delay before the next attempt: exponential backoff with up to half of it as jitter, and never less than `Retry-After`. */
export function retryDelayMs(attempts: number, retryAfterSeconds = 0): number {
  const half = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (attempts - 1)) / 2;
  return Math.max(half, retryAfterSeconds * 1000) + Math.random() * half;
}

/** Waits, even for longer than a timer can. Rejects with the reason when the signal is aborted. */
export async function wait(waitMs: number, signal: AbortSignal | undefined): Promise<void> {
  for (let restMs = waitMs; restMs > 0; restMs -= MAX_TIMER_MS) await sleep(Math.min(restMs, MAX_TIMER_MS), signal);
}

/** Rejects with the reason when the signal is aborted. */
function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    if (signal?.aborted) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
  });
}
