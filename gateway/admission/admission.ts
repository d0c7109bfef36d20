import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyError, FastifyInstance, FastifyRequest } from 'fastify';
import { Throttle } from '../../common/throttle.ts';
import type { CoreClient } from '../core/core-client.ts';
import { OVERLOADED, Problem, type ProblemCode } from '../problems.ts';
import { hasScopeFor, senderToCheck } from '../request.ts';
import { type ApiKeyCache, authenticator } from './authentication.ts';
import { refundRequest, requestCounter } from './count-quota.ts';
import type { Quota, QuotaPolicy } from './quota/quota-port.ts';

/**
 * The number of refusals per second that are immediate, and the maximum delay of further ones; milliseconds. Without a
 * delay, thousands of clients that retry immediately would take all of the gateway's time.
 */
const MAX_IMMEDIATE_REFUSALS_PER_SECOND = 1000;
const MAX_DELAY_MS = 1000;

const LOG_INTERVAL_MS = 10_000;

/** The problems of a key that is not valid, or not now. */
const KEY_PROBLEMS = new Set<ProblemCode>([
  'integration_key_invalid',
  'subscription_suspended',
  'integration_issuer_forbidden',
]);

/** The refusals by the quota. */
const UNCOUNTED = new Set<ProblemCode>(['integration_rate_limited', 'integration_rate_unavailable']);

export interface AdmissionParts {
  readonly core: CoreClient;
  readonly cache: ApiKeyCache;
  readonly quota: Quota;
  readonly policy: QuotaPolicy;
}

/** Admits callers of the API in the contract's order of checks, before any body is read. @rule 5.3 5.9 7.order */
export function admitCallers(app: FastifyInstance, parts: AdmissionParts): void {
  const shedLoad = loadShedding(parts.core);
  const authenticate = authenticator(parts.core, parts.cache);
  const count = requestCounter(parts.quota, parts.policy);
  app.addHook('onRequest', async (request, reply) => {
    // Both are rarely promises, and only promises are awaited: each await costs a turn of the event loop.
    const refusal = shedLoad(request);
    if (refusal) await refusal;
    const found = authenticate(request, reply);
    const key = found instanceof Promise ? await found : found;
    request.state.key = key;
    if (!hasScopeFor(key.caller, request.routeOptions.config.operation)) {
      throw new Problem('integration_scope_forbidden');
    }
    await count(key, reply);
  });
  checkKeyBeforeRefusal(app, parts);
}

/**
 * Refuses a request before any work is done for it while too many of its operation wait for the core: looking up its
 * key and reading its body, only to refuse it then, would take time from the waiting ones.
 *
 * @returns a function: undefined for an admitted request, a promise that rejects with the Problem for a refused one
 * @rule 7.overload
 */
function loadShedding(core: CoreClient): (request: FastifyRequest) => Promise<never> | undefined {
  /** The earliest time of the next refusal, at the rate above. */
  let nextAt = 0;
  let refused = 0;
  const logThrottle = new Throttle(LOG_INTERVAL_MS);
  return (request) => (core.isBusy(request.routeOptions.config.operation) ? refuse(request) : undefined);

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

/**
 * Gives a problem of the key precedence over any other problem of the request, and takes such a request out of the
 * quota. A request with a cached key may be refused before the core has validated the key; then this validates it, unless
 * the quota has refused it.
 *
 * @rule 7.order 8.counted 8.quota-headers
 */
function checkKeyBeforeRefusal(app: FastifyInstance, { core, cache, quota }: AdmissionParts): void {
  app.setErrorHandler(async (error: FastifyError, request, reply) => {
    const { key } = request.state;
    // Without one, the key itself was refused, or was never read.
    if (!key) throw error;
    // A request that is not counted costs the core nothing, or a key would make it work without bound.
    if (error instanceof Problem && UNCOUNTED.has(error.code)) throw error;
    const first = key.isChecked
      ? error
      : await core.authenticate(senderToCheck(key, request.id)).then(
          () => error,
          (problem) => problem,
        );
    if (first instanceof Problem && KEY_PROBLEMS.has(first.code)) {
      // So that the next request with the key is not counted before the core has validated it.
      cache.delete(key.secretSha256);
      await refundRequest(key, reply, quota);
    }
    throw first;
  });
}
