import type { FastifyInstance } from 'fastify';
import type { CoreClient } from '../core/core-client.ts';
import type { ApiKeyCache } from './api-key-cache.ts';
import { authenticator, refuseUnlessAllowed } from './authentication.ts';
import { requestCounter } from './count-quota.ts';
import { loadShedding } from './load-shedding.ts';
import type { Quota, QuotaPolicy } from './quota/quota-port.ts';

interface Parts {
  readonly core: CoreClient;
  readonly cache: ApiKeyCache;
  readonly quota: Quota;
  readonly policy: QuotaPolicy;
}

/** Admits callers of the API in the contract's order of checks, before any body is read. @rule 7.order */
export function admitCallers(app: FastifyInstance, { core, cache, quota, policy }: Parts): void {
  const shedLoad = loadShedding(core);
  const authenticate = authenticator(core, cache);
  const count = requestCounter(quota, policy);
  app.addHook('onRequest', async (request, reply) => {
    // Both are rarely promises, and only promises are awaited: each await costs a turn of the event loop.
    const refusal = shedLoad(request);
    if (refusal) await refusal;
    const key = authenticate(request, reply);
    request.state.key = key instanceof Promise ? await key : key;
    refuseUnlessAllowed(request, request.state.key.caller);
    await count(request.state.key, reply);
  });
}
