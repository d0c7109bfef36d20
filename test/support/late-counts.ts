import { setTimeout as sleep } from 'node:timers/promises';
import { REDIS_TIMEOUT_MS } from '../../common/deadlines.ts';

/** How often in a row a request may be sent again, and how many of all requests, besides the first few. */
const MAX_IN_A_ROW = 5;
const MAX_SHARE = 0.05;
const FIRST_FEW = 10;

/**
 * Returns what sends a request with the same key again, after `Retry-After`, where a gateway says that it has written nothing because
 * Redis has not counted the request in time: on a busy machine Redis may be late. It is not for a gateway that cannot count, which says so
 * at once, nor for one that often cannot: those answers are returned as any other.
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
