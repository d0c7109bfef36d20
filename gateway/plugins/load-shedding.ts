import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { Throttle } from '../../common/throttle.ts';
import type { CoreClient } from '../core-client.ts';
import { Problem } from '../problems.ts';

/**
 * How many a second are turned away at once, and how long it takes at most when there are more; milliseconds. Whoever comes
 * again at once, and so do thousands, would be all that the gateway has time for.
 */
const AT_ONCE_PER_SECOND = 1000;
const MAX_DELAY_MS = 1000;

/** How often the log tells of it, at most; milliseconds. */
const TOLD_EVERY_MS = 10_000;

const TURNED_AWAY = new Problem('integration_unavailable', {
  detail: 'Too many requests wait already, so this one was not begun: nothing was written.',
  // By the line below, not by one for each of thousands.
  isTold: true,
});

/**
 * Turns a request away before anything is done for it while too many of its kind wait for the core: looking up its key and
 * reading its body, only to refuse it then, would cost what those who wait are served with.
 *
 * @returns what gives undefined for who may come in, and rejects with the Problem that the caller is to be told
 * @rule 7.overload
 */
export function loadShedding(core: CoreClient): (request: FastifyRequest) => Promise<never> | undefined {
  /** When the next may be turned away, at the pace above. */
  let nextAt = 0;
  let turnedAway = 0;
  const told = new Throttle(TOLD_EVERY_MS);
  return (request) => (core.isBusy(request.routeOptions.config.operation) ? turnAway(request) : undefined);

  async function turnAway(request: FastifyRequest): Promise<never> {
    const { operation } = request.routeOptions.config;
    const now = performance.now();
    turnedAway += 1;
    if (told.isDue()) {
      request.log.warn({ operation, turnedAway }, 'too many requests wait for the core: more are turned away');
      turnedAway = 0;
    }
    const delayMs = Math.min(Math.max(0, nextAt - now), MAX_DELAY_MS);
    nextAt = now + delayMs + 1000 / AT_ONCE_PER_SECOND;
    if (delayMs >= 1) await sleep(delayMs);
    throw TURNED_AWAY;
  }
}
