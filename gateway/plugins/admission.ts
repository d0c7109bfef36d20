import type { FastifyInstance } from 'fastify';
import type { ApiKeyCache } from '../api-key-cache.ts';
import type { CoreClient } from '../core-client.ts';
import type { Quota, QuotaPolicy } from '../quota/quota-port.ts';
import { authenticator, refuseUnlessAllowed } from './authentication.ts';
import { loadShedding } from './load-shedding.ts';
import { requestCounter } from './quota.ts';

/** What it takes to know who may come in. */
interface Parts {
  readonly core: CoreClient;
  readonly known: ApiKeyCache;
  readonly quota: Quota;
  readonly policy: QuotaPolicy;
}

/** Lets callers of the API in, in the contract's order of checks: before anything of a body is read. @rule 7.order */
export function admitCallers(app: FastifyInstance, { core, known, quota, policy }: Parts): void {
  const turnAwayWhileBusy = loadShedding(core);
  const authenticate = authenticator(core, known);
  const count = requestCounter(quota, policy);
  app.addHook('onRequest', async (request, reply) => {
    // What is a promise only now and then is waited for only then: each wait costs a turn of all requests.
    const wait = turnAwayWhileBusy(request);
    if (wait) await wait;
    const key = authenticate(request);
    request.state.key = key instanceof Promise ? await key : key;
    refuseUnlessAllowed(request, request.state.key.caller);
    await count(request.state.key, reply);
  });
}
