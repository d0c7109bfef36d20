import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ApiKeyScope, type AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { hashKeySecret, isKeySecret } from '../../src/domain/rules/key-secret.ts';
import type { CoreClient } from '../core-client.ts';
import { Problem } from '../problems.ts';

/**
 * Finds out who calls, and whether the key allows the operation. The core is asked for every request: nothing remembers
 * a key, so a replaced or revoked one is dead at once.
 */
export function authenticate(app: FastifyInstance, core: CoreClient): void {
  app.addHook('onRequest', async (request) => {
    const secret = bearerOf(request);
    // A text that no key can be is refused here: guessing costs the core nothing.
    if (secret === undefined || !isKeySecret(secret)) throw new Problem('integration_key_invalid');
    request.caller = await core.authenticate(hashKeySecret(secret), request.id);
    const { scope } = request.routeOptions.config;
    if (scope === undefined || !request.caller.scopes.includes(scope)) throw new Problem('integration_scope_forbidden');
  });
}

/** What an operation needs of a key. */
export const SCOPES = { read: ApiKeyScope.LEADS_READ, create: ApiKeyScope.LEADS_CREATE } as const;

function bearerOf(request: FastifyRequest): string | undefined {
  // Node would quietly take the first of several.
  const [authorization, ...more] = request.raw.headersDistinct.authorization ?? [];
  if (authorization === undefined || more.length > 0) return undefined;
  return /^Bearer +(\S+)$/i.exec(authorization)?.[1];
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Whose key the request carries; there once it is authenticated. */
    caller: AuthenticateApiKeyResponse;
  }
  interface FastifyContextConfig {
    /** The scope that the route needs. */
    scope?: ApiKeyScope;
  }
}
