import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Throttle } from '../common/throttle.ts';
import type { Dependencies } from './usecases/dependencies.ts';
import { type RenewalObserver, renewClaims } from './usecases/renew-claims.ts';

/** How often it is looked whether claims are to be made anew; milliseconds. */
const LOOK_EVERY_MS = 5000;

/** How often the log tells how far a long renewal has come; milliseconds. */
const TOLD_EVERY_MS = 10_000;

/** How often the log tells that a studio's renewal fails, and of how many studios in that time; milliseconds. */
const FAILURE_TOLD_EVERY_MS = 600_000;
const MAX_LOGGED_FAILURES = 100;

/**
 * Makes claims of leads anew whenever that is due, for as long as the process runs; whoever else does so, too.
 *
 * @returns stops it: nothing new is begun, and what is under way ends with the store
 */
export function keepClaimsRenewed(deps: Pick<Dependencies, 'store' | 'clock'>, log: Logger): () => void {
  const stopping = new AbortController();
  const progress = new Throttle(TOLD_EVERY_MS);
  const failures = new Throttle(FAILURE_TOLD_EVERY_MS, MAX_LOGGED_FAILURES);
  const observer = {
    progressed({ studio, renewal: { step, after } }: Renewal, renewed: number) {
      if (!progress.isDue()) return;
      log.info({ studioId: studio.id, step, after, renewed }, 'claims are being made anew');
    },
    stepEnded({ studio, renewal: { step } }: Renewal, renewed: number) {
      log.info({ studioId: studio.id, step, renewed }, 'claims were made anew');
    },
    leadInTheWay: (studioId: string, leadId: string, holderId: string) =>
      log.warn({ studioId, leadId, holderId }, 'two open leads have one contact'),
    failed({ studio, renewal: { step } }: Renewal, error: unknown) {
      if (!failures.isDue(studio.id)) return;
      log.warn({ studioId: studio.id, step, err: error }, 'claims cannot be made anew');
    },
  };
  void keepOn();
  return () => stopping.abort();

  async function keepOn(): Promise<void> {
    while (!stopping.signal.aborted) {
      // A store that is away is told of by readiness; what is due stays due.
      await renewClaims(deps, observer, stopping.signal).catch(() => {});
      await sleep(LOOK_EVERY_MS, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
    }
  }
}

type Renewal = Parameters<NonNullable<RenewalObserver['stepEnded']>>[0];
