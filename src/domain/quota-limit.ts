/** The most that a quota of its own may allow; no quota is below 1. */
export const MAX_QUOTA_LIMIT = 1_000_000_000;

/** How many requests a key, or all keys of a studio together, may make in a window. */
export const isQuotaLimit = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_QUOTA_LIMIT;

/** What is wrong with a quota that is to be put. */
export const quotaLimitFault = (limit: number): string | undefined =>
  isQuotaLimit(limit) ? undefined : `must be 1 to ${MAX_QUOTA_LIMIT}`;

/** A quota as the audit tells it; null: there is none of its own. */
export const quotaLimitText = (limit: number | null): string | null => (limit === null ? null : String(limit));
