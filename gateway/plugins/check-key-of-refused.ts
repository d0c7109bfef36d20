import type { FastifyError, FastifyInstance } from 'fastify';
import type { ApiKeyCache } from '../api-key-cache.ts';
import type { CoreClient } from '../core-client.ts';
import { Problem, type ProblemCode } from '../problems.ts';
import type { Quota } from '../quota/quota-port.ts';
import { checked } from './authentication.ts';
import { tellNoQuota, uncount } from './quota.ts';

/** What the core says of a key that is not good, or not now. */
const ABOUT_THE_KEY = new Set<ProblemCode>([
  'integration_key_invalid',
  'subscription_suspended',
  'integration_issuer_forbidden',
]);

/**
 * Sees to it that what is wrong with a key is told before whatever else is wrong with the request, and that such a request
 * counts for nothing. A request with a known key may be refused before the core was asked for anything: then it is asked
 * about the key now.
 *
 * @rule 7.order 8.counted 8.quota-headers
 */
export function checkKeyOfRefused(
  app: FastifyInstance,
  { core, known, quota }: { readonly core: CoreClient; readonly known: ApiKeyCache; readonly quota: Quota },
): void {
  app.setErrorHandler(async (error: FastifyError, request, reply) => {
    const { key } = request.state;
    // Without one the key itself was refused, if anybody looked at it.
    if (!key) throw error;
    const first = key.isChecked ? error : await core.authenticate(checked(key, request.id)).then(() => error, itself);
    if (first instanceof Problem && ABOUT_THE_KEY.has(first.code)) {
      // The next request with it is not counted before the core has found it good again.
      known.forget(key.secretSha256);
      await uncount(key, reply, quota);
    } else if (first !== error && key.countedIn === undefined) tellNoQuota(reply);
    throw first;
  });
}

const itself = (problem: FastifyError): FastifyError => problem;
