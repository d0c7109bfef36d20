import { textOfHash } from '../../common/rules/key-secret.ts';
import type { AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';

/** The maximum number of entries; the oldest is evicted first. */
export const MAX_CACHED_KEYS = 50_000;

/**
 * Caches what rarely or never changes about an API key: its id, studio and scopes, and the quotas. Because quotas can
 * change, an entry expires after a fixed time, however often it is used. The cache does not say whether a key is still
 * valid; that can change at any moment.
 */
export class ApiKeyCache {
  readonly #entries = new Map<string, { readonly caller: AuthenticateApiKeyResponse; readonly expiresAtMs: number }>();
  readonly #ttlMs: number;
  readonly #clock: () => number;

  /** @param clock milliseconds since any moment; never goes back */
  constructor(ttlMs: number, clock = () => performance.now()) {
    this.#ttlMs = ttlMs;
    this.#clock = clock;
  }

  get(secretSha256: Uint8Array): AuthenticateApiKeyResponse | undefined {
    const entry = this.#entries.get(textOfHash(secretSha256));
    return entry && this.#clock() < entry.expiresAtMs ? entry.caller : undefined;
  }

  /** Whether the key was valid when it was last looked up, however long ago. */
  wasValid(secretSha256: Uint8Array): boolean {
    return this.#entries.has(textOfHash(secretSha256));
  }

  set(secretSha256: Uint8Array, caller: AuthenticateApiKeyResponse): void {
    this.#entries.set(textOfHash(secretSha256), { caller, expiresAtMs: this.#clock() + this.#ttlMs });
    if (this.#entries.size <= MAX_CACHED_KEYS) return;
    const [oldest = ''] = this.#entries.keys();
    this.#entries.delete(oldest);
  }

  delete(secretSha256: Uint8Array): void {
    this.#entries.delete(textOfHash(secretSha256));
  }
}
