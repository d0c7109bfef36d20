import type { FastifyInstance, FastifyRequest } from 'fastify';
import { hashKeySecret, isKeySecret } from '../../common/rules/key-secret.ts';
import { ApiKeyScope, type AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import type { Bearer, CoreClient } from '../core-client.ts';
import type { KnownCallers } from '../known-callers.ts';
import { Problem } from '../problems.ts';

/**
 * Finds out who calls, and whether the key allows the operation. Whether the key is good, the core says for every request,
 * so a replaced or revoked one is dead at once: for a key that is not known, before anything else; for a known one,
 * together with what the request asks for, which saves a way to the core and back (`check-key-of-refused.ts` sees to requests that
 * do not get there).
 *
 * @rule 3.2.replaced 5.2 5.3 5.7 5.8 5.9
 */
export function authenticate(app: FastifyInstance, core: CoreClient, known: KnownCallers): void {
  app.addHook('onRequest', async (request) => {
    const secret = secretOf(request);
    // A text that no key can be is refused here: guessing costs the core nothing.
    if (secret === undefined || !isKeySecret(secret)) throw new Problem('integration_key_invalid');
    request.secretSha256 = hashKeySecret(secret);
    const caller = known.get(request.secretSha256);
    request.caller = caller ?? (await core.authenticate(checked(request)));
    if (!caller) known.know(request.secretSha256, request.caller);
    const { scope } = request.routeOptions.config;
    if (scope === undefined || !request.caller.scopes.includes(scope)) throw new Problem('integration_scope_forbidden');
  });
}

/** The bearer of a request's key, for a question by which the core also says whether that is good. */
export function checked(request: FastifyRequest): Bearer {
  request.isKeyChecked = true;
  return { secretSha256: request.secretSha256, requestId: request.id };
}

/** What an operation needs of a key. */
export const SCOPES = { read: ApiKeyScope.LEADS_READ, create: ApiKeyScope.LEADS_CREATE } as const;

// @rule 5.1 5.5 5.header
function secretOf(request: FastifyRequest): string | undefined {
  // Node would quietly take the first of several.
  const [authorization, ...more] = request.raw.headersDistinct.authorization ?? [];
  if (authorization === undefined || more.length > 0) return undefined;
  return /^Bearer +(\S+)$/i.exec(authorization)?.[1];
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The hash of the key's secret; there once that can be one. */
    secretSha256: Uint8Array;
    /** Whose key the request carries; there once the key is known, be it good or not. */
    caller: AuthenticateApiKeyResponse;
    /** Whether the core has said whether the key is good, or will with its answer. */
    isKeyChecked: boolean;
  }
  interface FastifyContextConfig {
    /** The scope that the route needs. */
    scope?: ApiKeyScope;
  }
}
