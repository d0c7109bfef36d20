import { setTimeout as sleep } from 'node:timers/promises';
import { STORE_CALL_MS } from '../../../common/deadlines.ts';
import { isLocked } from './result-codes.ts';

/** The maximum delay between two attempts to get a lock; milliseconds. */
const MAX_RETRY_MS = 25;

/** The delay before an attempt to get a lock is repeated, after a number of others. */
export const lockRetryMs = (attempts: number): number => Math.min(2 ** attempts, MAX_RETRY_MS);

/**
 * Repeats a call whose reads meet a lock, such as that of a process that recovers the log after another one was killed.
 * Writes wait in GroupCommit.
 *
 * @throws the last error when the call has taken STORE_CALL_MS
 */
export async function repeatWhileLocked<Result>(call: () => Promise<Result>): Promise<Result> {
  const giveUp = performance.now() + STORE_CALL_MS;
  for (let attempts = 0; ; attempts += 1) {
    try {
      return await call();
    } catch (error) {
      if (!isLocked(error) || performance.now() > giveUp) throw error;
    }
    await sleep(lockRetryMs(attempts));
  }
}
