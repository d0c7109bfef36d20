import { hashKeySecret, secretsIn } from '../../common/rules/key-secret.ts';
import { type ApiKey, hintOf } from '../domain/api-key.ts';
import type { Clock } from '../domain/clock.ts';
import type { Studio } from '../domain/studio.ts';
import type { ApiKeyStore } from '../store/store.ts';
import { refusalOfCredential } from './authenticate-api-key.ts';

/** What a secret that somebody has found opens. */
export type FoundSecret = KnownSecret | UnknownSecret;

/** A secret that is a key's now. */
interface KnownSecret {
  /** How it ends, as the key's record tells it: the secret itself is not repeated. */
  readonly secretHint: string;
  readonly key: ApiKey;
  readonly studio: Studio;
  /** Whether it opens anything now. */
  readonly isGood: boolean;
}

/** A secret that is no key's: it was never one's here, or was replaced. */
interface UnknownSecret {
  readonly secretHint: string;
  readonly key: null;
}

/**
 * Finds out whose keys the secrets in a text are: one that was copied, or a whole file in which some may be.
 *
 * @returns each secret once, in the order of the text; and how many look like one and were changed, by their checksum
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
    found.push({ secretHint, key, studio, isGood: refusalOfCredential(credential, clock()) === undefined });
  }
  return { found, misspelt };
}
