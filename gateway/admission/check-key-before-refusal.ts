import type { FastifyError, FastifyInstance } from 'fastify';
import { bearerToCheck } from '../core/bearer.ts';
import type { CoreClient } from '../core/core-client.ts';
import { Problem, type ProblemCode } from '../problems.ts';
import type { ApiKeyCache } from './api-key-cache.ts';
import { refundRequest } from './count-quota.ts';
import type { Quota } from './quota/quota-port.ts';

/** The problems of a key that is not valid, or not now. */
const KEY_PROBLEMS = new Set<ProblemCode>([
  'integration_key_invalid',
  'subscription_suspended',
  'integration_issuer_forbidden',
]);

/** The refusals by the quota. */
const UNCOUNTED = new Set<ProblemCode>(['integration_rate_limited', 'integration_rate_unavailable']);

/**
 * Gives a problem of the key precedence over any other problem of the request, and takes such a request out of the
 * quota. A request with a cached key may be refused before the core has validated the key; then this validates it, unless
 * the quota has refused it.
 *
 * @rule 7.order 8.counted 8.quota-headers
 */
export function checkKeyBeforeRefusal(
  app: FastifyInstance,
  { core, cache, quota }: { readonly core: CoreClient; readonly cache: ApiKeyCache; readonly quota: Quota },
): void {
  app.setErrorHandler(async (error: FastifyError, request, reply) => {
    const { key } = request.state;
    // Without one, the key itself was refused, or was never read.
    if (!key) throw error;
    // A request that is not counted costs the core nothing, or a key would make it work without bound.
    if (error instanceof Problem && UNCOUNTED.has(error.code)) throw error;
    const first = key.isChecked
      ? error
      : await core.authenticate(bearerToCheck(key, request.id)).then(
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
