import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { Throttle } from '../../common/throttle.ts';
import type { CoreClient } from '../core/core-client.ts';
import { MAX_PENDING_REQUESTS } from '../core/exchange-batcher.ts';
import { OVERLOADED } from '../problems.ts';

/**
 * The number of pending requests of an operation from which further ones are shed. The other half is for admitted requests that have not
 * reached the core yet.
 *
 * @rule 7.overload
 */
export const BUSY_THRESHOLD = MAX_PENDING_REQUESTS / 2;

/**
 * The number of immediate refusals per second, and the maximum delay of further ones. Without a delay, thousands of clients that retry at
 * once would take all of the gateway's time.
 */
const MAX_IMMEDIATE_REFUSALS_PER_SECOND = 1000;
const MAX_DELAY_MS = 1000;

const LOG_INTERVAL_MS = 10_000;

/**
 * Sheds a request before any work is done for it while too many of its operation wait for the core. Looking up its key and reading its body
 * first would take time from the waiting requests.
 *
 * @returns a function: undefined for an admitted request, a promise that rejects with the Problem for a refused one
 * @rule 7.overload
 */
export function loadShedding(core: CoreClient): (request: FastifyRequest) => Promise<never> | undefined {
  /** When the next refusal may be sent without a delay, by `performance.now()`. */
  let nextAt = 0;
  let refused = 0;
  const logThrottle = new Throttle(LOG_INTERVAL_MS);
  return (request) =>
    core.pending(request.routeOptions.config.operation) < BUSY_THRESHOLD ? undefined : refuse(request);

  async function refuse(request: FastifyRequest): Promise<never> {
    const { operation } = request.routeOptions.config;
    const now = performance.now();
    refused += 1;
    if (logThrottle.allow()) {
      request.log.warn({ operation, turnedAway: refused }, 'requests refused: too many are waiting for the core');
      refused = 0;
    }
    const delayMs = Math.min(Math.max(0, nextAt - now), MAX_DELAY_MS);
    nextAt = now + delayMs + 1000 / MAX_IMMEDIATE_REFUSALS_PER_SECOND;
    if (delayMs >= 1) await sleep(delayMs);
    throw OVERLOADED;
  }
}
