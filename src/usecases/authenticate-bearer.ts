import type { Credential } from '../store/store.ts';
import { authenticateApiKey } from './authenticate-api-key.ts';
import type { Dependencies } from './dependencies.ts';
import { keyUseNoter } from './note-key-use.ts';

/**
 * Authenticates whoever comes with a key, and notes that it was used.
 *
 * @returns what throws as `authenticateApiKey` does
 */
export function bearerAuthenticator(
  deps: Pick<Dependencies, 'store' | 'clock'>,
): (secretSha256: Uint8Array, sourceId?: string) => Promise<Credential> {
  const noteUse = keyUseNoter(deps.store);
  return async (secretSha256, sourceId) => {
    const credential = await authenticateApiKey(deps, { secretSha256, sourceId });
    noteUse(credential.key, deps.clock());
    return credential;
  };
}
