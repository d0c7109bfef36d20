import { assert } from '../../common/invariants.ts';
import { isLive, mayManageKeys } from '../domain/api-key.ts';
import type { Clock } from '../domain/new-id.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { ApiKeyStore, Credential } from '../store/store.ts';
import type { Dependencies } from './dependencies.ts';
import { keyUseNoter } from './note-key-use.ts';

/**
 * Authenticates the bearer of an API key.
 *
 * @param secretSha256 the hash of the secret. The hash is looked up, so no secret is compared byte by byte
 * @param sourceId a lead source to read in the same step; a UUID in lower case
 * @param studios the studios whose keys are valid here; undefined: all
 * @throws Refusal INVALID_REQUEST, then in this order KEY_INVALID, STUDIO_SUSPENDED, ISSUER_FORBIDDEN
 * @rule 5.8 5.10 5.11 7.order
 */
export async function authenticateApiKey(
  { store, clock }: { readonly store: Pick<ApiKeyStore, 'findCredential'>; readonly clock: Clock },
  { secretSha256, sourceId, studios }: AuthenticationRequest,
): Promise<Credential> {
  const faults = new Faults();
  if (secretSha256.length !== 32) faults.note('secretSha256', 'must be 32 bytes long');
  faults.refuseIfAny();

  const credential = await store.findCredential(secretSha256, sourceId);
  if (!credential || studios?.has(credential.studio.id) === false) throw keyInvalid();
  const { key, studio } = credential;
  assert(key.studioId === studio.id && !Buffer.compare(key.secretSha256, secretSha256), 'credential_of_secret');
  const refusal = refusalOfCredential(credential, clock());
  if (refusal) throw refusal;
  return credential;
}

/** Returns why a credential is not valid at a time; undefined: it is. */
export function refusalOfCredential({ key, studio, issuerRole }: Credential, now: Date): Refusal | undefined {
  if (!isLive(key, now)) return keyInvalid();
  if (studio.status !== 'active') return new Refusal('STUDIO_SUSPENDED', 'The studio is suspended.');
  if (mayManageKeys(issuerRole)) return undefined;
  return new Refusal('ISSUER_FORBIDDEN', 'The issuer of the key is no longer an owner or an admin of the studio.');
}

const keyInvalid = () => new Refusal('KEY_INVALID', 'The key is unknown, replaced, revoked or expired.');

interface AuthenticationRequest {
  readonly secretSha256: Uint8Array;
  readonly sourceId?: string | undefined;
  readonly studios?: ReadonlySet<string> | undefined;
}

/** Does what `authenticateApiKey` does, and records the key's last use. */
export type BearerAuthenticator = (
  secretSha256: Uint8Array,
  sourceId?: string,
  studios?: ReadonlySet<string>,
) => Promise<Credential>;

export function bearerAuthenticator(deps: Pick<Dependencies, 'store' | 'clock'>): BearerAuthenticator {
  const noteUse = keyUseNoter(deps.store);
  return async (secretSha256, sourceId, studios) => {
    const credential = await authenticateApiKey(deps, { secretSha256, sourceId, studios });
    noteUse(credential.key, deps.clock());
    return credential;
  };
}
