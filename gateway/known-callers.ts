import { textOfHash } from '../common/rules/key-secret.ts';
import type { AuthenticateApiKeyResponse } from '../proto/gen/leadintake/v1/api_key_pb.ts';

/** How many are known at most; whoever came first is forgotten first. */
export const MOST_KNOWN = 50_000;

/**
 * Whose keys came before: what of a key never changes, namely its id, its studio and its scopes. Whether the key is still
 * good can change at any moment, and nothing here tells.
 */
export class KnownCallers {
  readonly #callers = new Map<string, AuthenticateApiKeyResponse>();

  get(secretSha256: Uint8Array): AuthenticateApiKeyResponse | undefined {
    return this.#callers.get(textOfHash(secretSha256));
  }

  know(secretSha256: Uint8Array, caller: AuthenticateApiKeyResponse): void {
    this.#callers.set(textOfHash(secretSha256), caller);
    if (this.#callers.size <= MOST_KNOWN) return;
    const [first = ''] = this.#callers.keys();
    this.#callers.delete(first);
  }

  forget(secretSha256: Uint8Array): void {
    this.#callers.delete(textOfHash(secretSha256));
  }
}
