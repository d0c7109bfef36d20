import type { FastifyRequest } from 'fastify';
import { hashKeySecret, isKeySecret } from '../../common/rules/key-secret.ts';
import { ApiKeyScope, type AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import type { ApiKeyCache } from '../api-key-cache.ts';
import type { Bearer, CoreClient } from '../core-client.ts';
import { Problem } from '../problems.ts';
import type { PresentedKey } from '../request-state.ts';

/**
 * Finds out who calls. Whether the key is good, the core says for every request, so a replaced or revoked one is dead at once:
 * for a key that is not known, before anything else; for a known one, together with what the request asks for, which saves a way
 * to the core and back (`check-key-of-refused.ts` sees to requests that do not get there).
 *
 * @returns what throws, or rejects with, the Problem that the caller is to be told
 * @rule 3.2.replaced 5.2 5.7 5.8
 */
export function authenticator(
  core: CoreClient,
  known: ApiKeyCache,
): (request: FastifyRequest) => PresentedKey | Promise<PresentedKey> {
  return (request) => {
    const secret = secretOf(request);
    // A text that no key can be is refused here: guessing costs the core nothing.
    if (secret === undefined || !isKeySecret(secret)) throw new Problem('integration_key_invalid');
    const secretSha256 = hashKeySecret(secret);
    const caller = known.get(secretSha256);
    return caller ? { secretSha256, caller, isChecked: false, countedIn: undefined } : lookUp(secretSha256, request.id);
  };

  async function lookUp(secretSha256: Uint8Array, requestId: string): Promise<PresentedKey> {
    const caller = await core.authenticate({ secretSha256, requestId });
    known.know(secretSha256, caller);
    return { secretSha256, caller, isChecked: true, countedIn: undefined };
  }
}

/** @rule 5.3 5.9 */
export function refuseUnlessAllowed(request: FastifyRequest, { scopes }: AuthenticateApiKeyResponse): void {
  const { scope } = request.routeOptions.config;
  if (scope === undefined || !scopes.includes(scope)) throw new Problem('integration_scope_forbidden');
}

/** The bearer of a key, for a question by which the core also says whether that is good. */
export function checked(key: PresentedKey, requestId: string): Bearer {
  key.isChecked = true;
  return { secretSha256: key.secretSha256, requestId };
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
