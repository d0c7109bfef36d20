import { assert } from '../../common/invariants.ts';
import { hashKeySecret, secretsIn, toHint } from '../../common/rules/key-secret.ts';
import { type ApiKey, isLive, mayManageKeys } from '../domain/api-key.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { Studio } from '../domain/studio.ts';
import type { ApiKeyStore, Credential } from '../store/port/api-keys.ts';
import type { Changing } from './dependencies.ts';

/**
 * Authenticates the bearer of an API key, and records the key's last use.
 *
 * @param secretSha256 the hash of the secret. A lookup by hash compares no secret byte by byte
 * @param sourceId a lead source to read in the same step; a UUID in lower case
 * @param studios the studios whose keys are valid here; undefined: all
 * @throws Refusal INVALID_REQUEST, then in this order KEY_INVALID, STUDIO_SUSPENDED, ISSUER_FORBIDDEN
 * @rule 5.8 5.10 5.11 7.order
 */
export type BearerAuthenticator = (
  secretSha256: Uint8Array,
  sourceId?: string,
  studios?: ReadonlySet<string>,
) => Promise<Credential>;

export function bearerAuthenticator({ store, clock }: Changing): BearerAuthenticator {
  const noteUse = keyUseRecorder(store.recordApiKeyUse);
  return async (secretSha256, sourceId, studios) => {
    const faults = new Faults();
    if (secretSha256.length !== 32) faults.note('secretSha256', 'must be 32 bytes long');
    faults.refuseIfAny();

    const credential = await store.findCredential(secretSha256, sourceId);
    if (!credential || studios?.has(credential.studio.id) === false) throw new Refusal('KEY_INVALID');
    const { key, studio } = credential;
    assert(key.studioId === studio.id && !Buffer.compare(key.secretSha256, secretSha256), 'credential_of_secret');
    const now = clock();
    const refusal = refusalOfCredential(credential, now);
    if (refusal) throw refusal;
    noteUse(key, now);
    return credential;
  };
}

/** Returns why a credential is not valid at a time; undefined: it is. */
function refusalOfCredential({ key, studio, issuerRole }: Credential, now: Date): Refusal | undefined {
  if (!isLive(key, now)) return new Refusal('KEY_INVALID');
  if (studio.status !== 'active') return new Refusal('STUDIO_SUSPENDED');
  return mayManageKeys(issuerRole) ? undefined : new Refusal('ISSUER_FORBIDDEN');
}

/** The minimum interval between two writes of a key's last use; milliseconds. */
const WRITE_INTERVAL_MS = 60_000;

/**
 * Returns a function that records the last use of keys, each at most once a minute. It works in the background, so
 * requests neither wait for the write nor fail with it.
 */
export function keyUseRecorder(recordUse: ApiKeyStore['recordApiKeyUse']): (key: ApiKey, now: Date) => void {
  /** The keys whose use was written, or attempted, in the current interval. */
  const noted = new Set<string>();
  let began = 0;
  return ({ id, studioId, lastUsedAt }, now) => {
    const time = now.getTime();
    if (lastUsedAt !== null && isWithinInterval(lastUsedAt.getTime(), time)) return;
    if (!isWithinInterval(began, time)) {
      noted.clear();
      began = time;
    }
    if (noted.has(id)) return;
    noted.add(id);
    const unlessSince = new Date(time - WRITE_INTERVAL_MS);
    recordUse({ studioId, keyId: id, now, unlessSince }).catch(() => {});
  };
}

/** Whether an interval that has begun is still running. A start in the future means that a clock was set back. */
const isWithinInterval = (began: number, time: number): boolean => time >= began && time - began < WRITE_INTERVAL_MS;

/** A secret found in a text. `isValid`: it authenticates now. */
export type FoundSecret = { readonly secretHint: string } & (
  | { readonly key: ApiKey; readonly studio: Studio; readonly isValid: boolean }
  /** The secret was replaced, or was never issued here. */
  | { readonly key: null }
);

/**
 * Finds the keys of all secrets in a text. The text may be a single secret or a whole file, in pieces cut anywhere.
 *
 * @returns each secret once, in the order of the text; and the number of look-alikes with a wrong checksum
 */
export async function findLeakedKeys(
  { store, clock }: Changing,
  pieces: AsyncIterable<string>,
): Promise<{ readonly found: FoundSecret[]; readonly misspelt: number }> {
  const { secrets, misspelt } = await secretsIn(pieces);
  const found: FoundSecret[] = [];
  for (const secret of secrets) {
    const secretHint = toHint(secret);
    const credential = await store.findCredential(hashKeySecret(secret));
    const { key, studio } = credential ?? {};
    const isValid = credential !== null && refusalOfCredential(credential, clock()) === undefined;
    found.push(key && studio ? { secretHint, key, studio, isValid } : { secretHint, key: null });
  }
  return { found, misspelt };
}
