import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Throttle } from '../common/throttle.ts';
import type { Dependencies } from './usecases/dependencies.ts';
import { type RenewalObserver, renewClaims } from './usecases/renew-claims.ts';

/** The interval between checks for due renewal steps; milliseconds. */
const CHECK_INTERVAL_MS = 5000;

/** The minimum interval between log lines about the progress of renewals; milliseconds. */
const PROGRESS_LOG_INTERVAL_MS = 10_000;

/** A failing renewal is logged once per studio and interval, for at most this many studios; milliseconds. */
const FAILURE_LOG_INTERVAL_MS = 600_000;
const MAX_LOGGED_FAILURES = 100;

/**
 * Carries out claim renewals in the background when they are due. Several processes may do so concurrently.
 *
 * @returns a function that stops it: no further step begins, and one in progress ends when the store closes
 */
export function keepClaimsRenewed(deps: Pick<Dependencies, 'store' | 'clock'>, log: Logger): () => void {
  const stopping = new AbortController();
  const progress = new Throttle(PROGRESS_LOG_INTERVAL_MS);
  const failures = new Throttle(FAILURE_LOG_INTERVAL_MS, MAX_LOGGED_FAILURES);
  const observer: RenewalObserver = {
    onProgress({ studio, renewal: { step, after } }, renewed) {
      if (!progress.allow()) return;
      log.info({ studioId: studio.id, step, after, renewed }, 'claim renewal in progress');
    },
    stepEnded({ studio, renewal: { step } }, renewed) {
      log.info({ studioId: studio.id, step, renewed }, 'claim renewal step complete');
    },
    claimConflict: (studioId, leadId, holderId) =>
      log.warn({ studioId, leadId, holderId }, 'two open leads have the same contact; close one of them'),
    failed({ studio, renewal: { step } }, error) {
      if (!failures.allow(studio.id)) return;
      log.warn({ studioId: studio.id, step, err: error }, 'claim renewal failed');
    },
  };
  void renewLoop();
  return () => stopping.abort();

  async function renewLoop(): Promise<void> {
    while (!stopping.signal.aborted) {
      // Readiness reports an unavailable store; due steps stay due.
      await renewClaims(deps, observer, stopping.signal).catch(() => {});
      await sleep(CHECK_INTERVAL_MS, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
    }
  }
}
