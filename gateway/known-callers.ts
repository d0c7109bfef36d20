import type { AuthenticateApiKeyResponse } from '../proto/gen/leadintake/v1/api_key_pb.ts';

/** How many are known at most; whoever came first is forgotten first. */
const MOST_KNOWN = 10_000;

/**
 * Whose keys came before: what of a key never changes, namely its id, its studio and its scopes. Whether the key is still
 * good can change at any moment, and nothing here tells.
 */
export class KnownCallers {
  readonly #callers = new Map<string, AuthenticateApiKeyResponse>();

  get(secretSha256: Uint8Array): AuthenticateApiKeyResponse | undefined {
    return this.#callers.get(nameOf(secretSha256));
  }

  know(secretSha256: Uint8Array, caller: AuthenticateApiKeyResponse): void {
    if (this.#callers.size >= MOST_KNOWN) {
      for (const first of this.#callers.keys()) {
        this.#callers.delete(first);
        break;
      }
    }
    this.#callers.set(nameOf(secretSha256), caller);
  }

  forget(secretSha256: Uint8Array): void {
    this.#callers.delete(nameOf(secretSha256));
  }
}

const nameOf = (secretSha256: Uint8Array): string => Buffer.from(secretSha256).toString('latin1');
