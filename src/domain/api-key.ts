import { DAY_MS } from '../../common/units.ts';

/** What a key can allow. */
export const API_KEY_SCOPES = ['leads.read', 'leads.create'] as const;
export type ApiKeyScope = (typeof API_KEY_SCOPES)[number];

/** How many keys of a studio may be neither revoked nor expired. @rule 8.api-keys */
export const LIVE_KEYS_PER_STUDIO = 20;

/** A live key of a studio holds one of these, any other its own id: that is the limit. */
export const KEY_SLOTS: readonly string[] = Array.from({ length: LIVE_KEYS_PER_STUDIO }, (_, slot) => String(slot));

/** How far ahead a new key's expiry may be. @rule 8.key-validity */
export const MAX_VALIDITY_DAYS = 366;

/** A key's record; the secret itself is nowhere. */
export interface ApiKey {
  /** UUID in lower case. */
  readonly id: string;
  readonly studioId: string;
  /** The issuer: who created the key, or replaced it last. */
  readonly memberId: string;
  readonly name: string;
  readonly scopes: readonly ApiKeyScope[];
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly revokedAt: Date | null;
  /** SHA-256 of the secret; 32 bytes. */
  readonly secretSha256: Uint8Array;
  /** The last four characters of the secret. */
  readonly secretHint: string;
  /** When it last opened something, at most a minute behind; null: never. */
  readonly lastUsedAt: Date | null;
  /** How many requests it may make in a window; null: as many as the gateways are set to. */
  readonly quotaLimit: number | null;
}

/**
 * Whether a key opens anything at a moment. It is dead from the very millisecond of its expiry.
 *
 * @rule 3.2.expired 3.2.revoked
 */
export const isLive = (key: ApiKey, now: Date): boolean => key.revokedAt === null && key.expiresAt > now;

/** What is wrong with a new key's expiry. */
export function expiryFault(expiresAt: Date, now: Date): string | undefined {
  if (Number.isNaN(expiresAt.getTime())) return 'must be a point in time';
  if (expiresAt <= now) return 'must be in the future';
  return expiresAt.getTime() > now.getTime() + MAX_VALIDITY_DAYS * DAY_MS
    ? `must be at most ${MAX_VALIDITY_DAYS} days ahead`
    : undefined;
}

/** How many characters a hint has. */
export const HINT_LENGTH = 4;

/** The part of a secret that people may go on seeing. */
export const hintOf = (secret: string): string => secret.slice(-HINT_LENGTH);
