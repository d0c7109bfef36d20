import type { FastifyReply, FastifyRequest } from 'fastify';
import { hashKeySecret, isKeySecret } from '../../common/rules/key-secret.ts';
import type { AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { hasScopeFor } from '../core/bearer.ts';
import type { CoreClient } from '../core/core-client.ts';
import { Problem } from '../problems.ts';
import type { PresentedKey } from '../request-state.ts';
import type { ApiKeyCache } from './api-key-cache.ts';
import { unknownKeys } from './unknown-keys.ts';

/**
 * Identifies the caller. The core validates the key on every request, so a replaced or revoked one stops working
 * immediately: a key that is not cached before anything else; a cached one together with the operation, which saves a
 * round trip (`check-key-before-refusal.ts` handles requests that are refused before).
 *
 * @returns a function that throws, or rejects with, the Problem for the caller
 * @rule 3.2.replaced 5.2 5.7 5.8
 */
export function authenticator(
  core: CoreClient,
  cache: ApiKeyCache,
): (request: FastifyRequest, reply: FastifyReply) => PresentedKey | Promise<PresentedKey> {
  const lookUpUnknown = unknownKeys();
  return (request, reply) => {
    const secret = secretOf(request);
    // A malformed key is refused here, so guesses cost the core nothing.
    if (secret === undefined || !isKeySecret(secret)) throw new Problem('integration_key_invalid');
    const secretSha256 = hashKeySecret(secret);
    const caller = cache.get(secretSha256);
    return caller
      ? { secretSha256, caller, isChecked: false, countedIn: undefined }
      : lookUp(secretSha256, request, reply);
  };

  async function lookUp(secretSha256: Uint8Array, request: FastifyRequest, reply: FastifyReply): Promise<PresentedKey> {
    const ask = () => core.authenticate({ secretSha256, requestId: request.id });
    const caller = await (cache.wasValid(secretSha256) ? ask() : lookUpUnknown(secretSha256, request, reply, ask));
    cache.set(secretSha256, caller);
    return { secretSha256, caller, isChecked: true, countedIn: undefined };
  }
}

/** @rule 5.3 5.9 */
export function refuseUnlessAllowed(request: FastifyRequest, caller: AuthenticateApiKeyResponse): void {
  if (!hasScopeFor(caller, request.routeOptions.config.operation)) throw new Problem('integration_scope_forbidden');
}

// @rule 5.1 5.5 5.header
function secretOf(request: FastifyRequest): string | undefined {
  // Of several headers, Node silently uses the first.
  const [authorization, ...more] = request.raw.headersDistinct.authorization ?? [];
  if (authorization === undefined || more.length > 0) return undefined;
  return /^Bearer +(\S+)$/i.exec(authorization)?.[1];
}
