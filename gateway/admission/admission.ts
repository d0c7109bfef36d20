import type { FastifyError, FastifyInstance } from 'fastify';
import { quotaPolicy } from '../config.ts';
import { isOfKey, Problem, type ProblemCode } from '../problems.ts';
import { hasScopeFor, senderToCheck } from '../request.ts';
import { ApiKeyCache, authenticator, uncountedRefusals } from './authentication.ts';
import { refundRequest, requestCounter } from './count-quota.ts';
import { KeyLookUps } from './key-look-ups.ts';
import { loadShedding } from './load-shedding.ts';

/** The refusals by the quota. */
const UNCOUNTED = new Set<ProblemCode>(['integration_rate_limited', 'integration_rate_unavailable']);

/**
 * Admits callers of the API in the contract's order of checks, before any body is read.
 *
 * @param keyCacheMs how long the owner of a key is remembered
 * @rule 5.3 5.9 7.order
 */
export function admitCallers(app: FastifyInstance, keyCacheMs: number): void {
  const { core, metrics, quota, config } = app;
  const shedLoad = loadShedding(core);
  const cache = new ApiKeyCache(keyCacheMs);
  const lookUps = new KeyLookUps(core);
  // More than there are look-ups: many requests share one.
  metrics?.watchWaiting('AuthenticateApiKey', () => lookUps.waiting);
  const authenticate = authenticator(lookUps, cache);
  const count = requestCounter(quota, quotaPolicy(config));
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
  checkKeyBeforeRefusal(app, lookUps, cache);
}

/**
 * Gives a problem of the key precedence over any other problem of the request, and takes such a request out of the
 * quota. A request with a cached key may be refused before the core has validated the key; then this validates it, unless
 * the quota has refused it. What no quota has counted is refused later if its address has too many of that.
 *
 * @rule 7.order 8.counted 8.quota-headers
 */
function checkKeyBeforeRefusal(app: FastifyInstance, lookUps: KeyLookUps, cache: ApiKeyCache): void {
  const holdIfTooMany = uncountedRefusals();
  app.setErrorHandler(async (error: FastifyError, request, reply) => {
    const { key } = request.state;
    // Without one, the key itself was refused, or was never read.
    if (!key) {
      if (isOfKey(error)) await holdIfTooMany(request);
      throw error;
    }
    // A request that is not counted costs the core nothing, or a key would make it work without bound.
    if (error instanceof Problem && UNCOUNTED.has(error.code)) throw error;
    const first = key.isChecked
      ? error
      : await lookUps.check(senderToCheck(key, request.id)).then(
          () => error,
          (problem) => problem,
        );
    if (isOfKey(first)) {
      // So that the next request with the key is not counted before the core has validated it.
      cache.delete(key.secretSha256);
      await refundRequest(key, reply, app.quota);
    }
    if (isOfKey(first) || key.countedIn === undefined) await holdIfTooMany(request);
    throw first;
  });
}
