import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { textOfHash } from '../../common/rules/key-secret.ts';
import { quotaPolicy } from '../config.ts';
import { next } from '../key-check.ts';
import { Problem, problemEvent } from '../problems.ts';
import { hasScopeFor, senderToCheck } from '../request.ts';
import { ApiKeyCache, authenticator, uncountedRefusals } from './authentication.ts';
import { removeQuotaHeaders, requestCounter } from './count-quota.ts';
import { KeyLookUps } from './key-look-ups.ts';
import { loadShedding } from './load-shedding.ts';

/**
 * Admits callers before any body is read, in the order of `gateway/key-check.ts`.
 *
 * @param keyCacheMs how long the owner of a key is cached
 * @rule 5.3 5.9 7.order 8.counted 8.quota-headers
 */
export function admitCallers(app: FastifyInstance, keyCacheMs: number): void {
  const { core, metrics, quota, config } = app;
  const shedLoad = loadShedding(core);
  const cache = new ApiKeyCache(keyCacheMs);
  const lookUps = new KeyLookUps(core.authenticate);
  // Counts requests, not look-ups: many requests share one look-up.
  metrics?.watchWaiting('AuthenticateApiKey', () => lookUps.waiting);
  const authenticate = authenticator(lookUps, cache);
  const count = requestCounter(quota, quotaPolicy(config));
  const holdIfTooMany = uncountedRefusals();

  app.addHook('onRequest', async (request, reply) => {
    const { state } = request;
    // The results are rarely promises, and awaiting anything else would only delay the request.
    const refusal = shedLoad(request);
    if (refusal) await refusal;
    const answer = authenticate(request);
    const found = answer instanceof Promise ? await answer : answer;
    state.keyCheck = next(state.keyCheck, found).check;
    if (!hasScopeFor(state, request.routeOptions.config.operation)) throw new Problem('integration_scope_forbidden');
    const windows = await count(found.key, reply);
    state.keyCheck = next(state.keyCheck, { kind: 'counted', windows }).check;
  });

  app.setErrorHandler(refuse);

  async function refuse(problem: unknown, request: FastifyRequest, reply: FastifyReply): Promise<never> {
    const { state } = request;
    const { key, windows } = state.keyCheck;
    const { check, does } = next(state.keyCheck, { kind: problemEvent(problem) });
    state.keyCheck = check;
    if (does.includes('lookUp')) {
      const outcome = await lookUps.find(senderToCheck(state), true).catch((refusal) => refusal);
      return refuse(outcome instanceof Error ? outcome : problem, request, reply);
    }
    if (key && does.includes('forget')) cache.delete(textOfHash(key.secretSha256));
    if (key && windows && does.includes('refund')) {
      removeQuotaHeaders(reply);
      // A failed refund leaves the request counted.
      await quota.refund(key.caller, windows).catch(() => {});
    }
    if (does.includes('hold')) await holdIfTooMany(request);
    throw problem;
  }
}
