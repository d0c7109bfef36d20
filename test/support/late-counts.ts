import { setTimeout as sleep } from 'node:timers/promises';
import { REDIS_TIMEOUT_MS } from '../../common/deadlines.ts';

/** The limits of late counts: in a row, and FIRST_FEW plus this share of all requests. */
const MAX_IN_A_ROW = 5;
const MAX_SHARE = 0.05;
const FIRST_FEW = 10;

/**
 * Returns a function that sends a request, and retries it after `Retry-After` if Redis was too late to count it, as on a
 * busy machine. A gateway writes nothing then. Refusals that come at once or too often are returned like any other response.
 */
export function sendAgainIfLate(): (send: () => Promise<Response>) => Promise<Response> {
  let [sent, late] = [0, 0];
  return async (send) => {
    for (let inARow = 0; ; inARow += 1) {
      const sentAt = performance.now();
      const response = await send();
      const tookMs = performance.now() - sentAt;
      sent += 1;
      // Timers may fire a little early.
      if (response.status !== 503 || tookMs < 0.9 * REDIS_TIMEOUT_MS) return response;
      if (!(await response.clone().text()).includes('"code":"integration_rate_unavailable"')) return response;
      late += 1;
      if (inARow === MAX_IN_A_ROW || late > FIRST_FEW + MAX_SHARE * sent) return response;
      await sleep(1000 * Number(response.headers.get('retry-after')));
    }
  };
}
