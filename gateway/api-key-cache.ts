import { textOfHash } from '../common/rules/key-secret.ts';
import type { AuthenticateApiKeyResponse } from '../proto/gen/leadintake/v1/api_key_pb.ts';

/** How many are known at most; whoever came first is forgotten first. */
export const MAX_CACHED_KEYS = 50_000;

/**
 * Whose keys came before: what of a key never changes, namely its id, its studio and its scopes; and the quotas, which seldom do.
 * For these it is known for so long only, however much it is used. Whether the key is still good can change at any moment, and
 * nothing here tells.
 */
export class ApiKeyCache {
  readonly #callers = new Map<string, { readonly caller: AuthenticateApiKeyResponse; readonly untilMs: number }>();
  readonly #knownForMs: number;
  readonly #clock: () => number;

  /** @param clock milliseconds since some moment; never goes back */
  constructor(knownForMs: number, clock = () => performance.now()) {
    this.#knownForMs = knownForMs;
    this.#clock = clock;
  }

  get(secretSha256: Uint8Array): AuthenticateApiKeyResponse | undefined {
    const known = this.#callers.get(textOfHash(secretSha256));
    return known && this.#clock() < known.untilMs ? known.caller : undefined;
  }

  know(secretSha256: Uint8Array, caller: AuthenticateApiKeyResponse): void {
    this.#callers.set(textOfHash(secretSha256), { caller, untilMs: this.#clock() + this.#knownForMs });
    if (this.#callers.size <= MAX_CACHED_KEYS) return;
    const [first = ''] = this.#callers.keys();
    this.#callers.delete(first);
  }

  forget(secretSha256: Uint8Array): void {
    this.#callers.delete(textOfHash(secretSha256));
  }
}
