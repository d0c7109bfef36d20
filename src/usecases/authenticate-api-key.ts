import { isLive } from '../domain/api-key.ts';
import type { Clock } from '../domain/clock.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import { mayManageKeys } from '../domain/studio.ts';
import type { ApiKeyStore, Credential } from '../store/store.ts';
import type { Dependencies } from './dependencies.ts';
import { keyUseNoter } from './note-key-use.ts';

/**
 * Tells what the bearer of a secret may do now.
 *
 * @param secretSha256 hash of the secret; the hash is looked up, so nothing secret is compared byte by byte
 * @param sourceId what else to read of the key's studio; a UUID in lower case
 * @param studios whose keys count at all; undefined: all
 * @throws Refusal INVALID_REQUEST, then in this order KEY_INVALID, STUDIO_SUSPENDED, ISSUER_FORBIDDEN
 * @rule 5.8 5.10 5.11 7.order
 */
export async function authenticateApiKey(
  { store, clock }: { readonly store: Pick<ApiKeyStore, 'findCredential'>; readonly clock: Clock },
  { secretSha256, sourceId, studios }: Presented,
): Promise<Credential> {
  const faults = new Faults();
  if (secretSha256.length !== 32) faults.note('secretSha256', 'must be 32 bytes long');
  faults.refuseIfAny();

  const credential = await store.findCredential(secretSha256, sourceId);
  if (!credential || studios?.has(credential.studio.id) === false) throw keyInvalid();
  const refusal = refusalOfCredential(credential, clock());
  if (refusal) throw refusal;
  return credential;
}

/** Why a key opens nothing at a moment; undefined: it does. */
export function refusalOfCredential({ key, studio, issuerRole }: Credential, now: Date): Refusal | undefined {
  if (!isLive(key, now)) return keyInvalid();
  if (studio.status !== 'active') return new Refusal('STUDIO_SUSPENDED', 'The studio is suspended.');
  if (mayManageKeys(issuerRole)) return undefined;
  return new Refusal('ISSUER_FORBIDDEN', 'The issuer of the key is no longer an owner or an admin of the studio.');
}

const keyInvalid = () => new Refusal('KEY_INVALID', 'The key is unknown, replaced, revoked or expired.');

interface Presented {
  readonly secretSha256: Uint8Array;
  readonly sourceId?: string | undefined;
  readonly studios?: ReadonlySet<string> | undefined;
}

/** Does what `authenticateApiKey` does, and notes that the key was used. */
export type BearerAuthenticator = (
  secretSha256: Uint8Array,
  sourceId?: string,
  studios?: ReadonlySet<string>,
) => Promise<Credential>;

/** Authenticates whoever comes with a key. */
export function bearerAuthenticator(deps: Pick<Dependencies, 'store' | 'clock'>): BearerAuthenticator {
  const noteUse = keyUseNoter(deps.store);
  return async (secretSha256, sourceId, studios) => {
    const credential = await authenticateApiKey(deps, { secretSha256, sourceId, studios });
    noteUse(credential.key, deps.clock());
    return credential;
  };
}
