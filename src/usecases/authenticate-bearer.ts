import type { ApiKey } from '../domain/api-key.ts';
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
): (secretSha256: Uint8Array) => Promise<ApiKey> {
  const noteUse = keyUseNoter(deps.store);
  return async (secretSha256) => {
    const key = await authenticateApiKey(deps, { secretSha256 });
    noteUse(key, deps.clock());
    return key;
  };
}
