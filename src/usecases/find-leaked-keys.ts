import { hashKeySecret, secretsIn } from '../../common/rules/key-secret.ts';
import { type ApiKey, hintOf } from '../domain/api-key.ts';
import type { Clock } from '../domain/new-id.ts';
import type { Studio } from '../domain/studio.ts';
import type { ApiKeyStore } from '../store/store.ts';
import { refusalOfCredential } from './authenticate-api-key.ts';

/** A secret that was found in a text, and its key. */
export type FoundSecret = KnownSecret | UnknownSecret;

/** The current secret of a key. */
interface KnownSecret {
  /** The last characters of the secret, as in the key's record. The secret itself is not repeated. */
  readonly secretHint: string;
  readonly key: ApiKey;
  readonly studio: Studio;
  /** Whether it authenticates requests now. */
  readonly isValid: boolean;
}

/** A secret of no key: it was replaced, or was never issued here. */
interface UnknownSecret {
  readonly secretHint: string;
  readonly key: null;
}

/**
 * Finds the keys of all secrets in a text, which may be one secret or a whole file.
 *
 * @returns each secret once, in the order of the text; and the number of texts like a secret with a wrong checksum
 */
export async function findLeakedKeys(
  { store, clock }: { readonly store: Pick<ApiKeyStore, 'findCredential'>; readonly clock: Clock },
  text: string,
): Promise<{ readonly found: FoundSecret[]; readonly misspelt: number }> {
  const { secrets, misspelt } = secretsIn(text);
  const found: FoundSecret[] = [];
  for (const secret of secrets) {
    const secretHint = hintOf(secret);
    const credential = await store.findCredential(hashKeySecret(secret));
    if (!credential) {
      found.push({ secretHint, key: null });
      continue;
    }
    const { key, studio } = credential;
    found.push({ secretHint, key, studio, isValid: refusalOfCredential(credential, clock()) === undefined });
  }
  return { found, misspelt };
}
