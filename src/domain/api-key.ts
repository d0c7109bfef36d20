import { DAY_MS } from '../../common/units.ts';
import type { MemberRole } from './studio.ts';

export const API_KEY_SCOPES = ['leads.read', 'leads.create'] as const;
export type ApiKeyScope = (typeof API_KEY_SCOPES)[number];

/** The maximum number of keys of a studio that are neither revoked nor expired. @rule 8.api-keys */
export const MAX_LIVE_KEYS = 20;

/** A live key holds one of these slots. An expired key keeps its slot until another key needs one. A unique index enforces the limit. */
export const KEY_SLOTS: readonly string[] = Array.from({ length: MAX_LIVE_KEYS }, (_, slot) => String(slot));

/** The maximum validity of a new or replaced key. @rule 8.key-validity */
export const MAX_VALIDITY_DAYS = 366;

/** A key's record. The secret itself is not stored. */
export interface ApiKey {
  /** UUID in lower case. */
  readonly id: string;
  readonly studioId: string;
  /** The issuer: the member who created the key or replaced it last. */
  readonly memberId: string;
  readonly name: string;
  readonly scopes: readonly ApiKeyScope[];
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly revokedAt: Date | null;
  readonly secretSha256: Uint8Array;
  /** The last four characters of the secret. */
  readonly secretHint: string;
  /** The last successful authentication, accurate to a minute; null: never used. */
  readonly lastUsedAt: Date | null;
  /** The maximum number of requests per window; null: the gateways' default. */
  readonly quotaLimit: number | null;
}

/**
 * Whether a key is valid at a time. It becomes invalid in the millisecond of its expiry.
 *
 * @rule 3.2.expired 3.2.revoked
 */
export const isLive = (key: ApiKey, now: Date): boolean => key.revokedAt === null && key.expiresAt > now;

/** A key counts as in use if a request used it within this many days. */
const IN_USE_DAYS = 30;

export const isInUse = ({ lastUsedAt }: ApiKey, now: Date): boolean =>
  lastUsedAt !== null && lastUsedAt.getTime() > now.getTime() - IN_USE_DAYS * DAY_MS;

export function expiryFault(expiresAt: Date, now: Date): string | undefined {
  if (Number.isNaN(expiresAt.getTime())) return 'must be a point in time';
  if (expiresAt <= now) return 'must be in the future';
  return expiresAt.getTime() > now.getTime() + MAX_VALIDITY_DAYS * DAY_MS
    ? `must be at most ${MAX_VALIDITY_DAYS} days ahead`
    : undefined;
}

/** Whether a member may list, issue, replace and revoke keys: owners and admins may. @rule 5.4 5.10 */
export const mayManageKeys = (role: MemberRole | null): boolean => role === 'owner' || role === 'admin';
