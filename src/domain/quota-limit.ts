/** The maximum quota of a key or studio; the minimum is 1. */
const MAX_QUOTA_LIMIT = 1_000_000_000;

/** Whether a value is a valid quota: requests per window of a key, or of all keys of a studio together. */
export const isQuotaLimit = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_QUOTA_LIMIT;

/** Returns what is wrong with a quota, if anything. */
export const quotaLimitFault = (limit: number): string | undefined =>
  isQuotaLimit(limit) ? undefined : `must be 1 to ${MAX_QUOTA_LIMIT}`;

/** Returns a quota as the audit log stores it; null: the gateways' default. */
export const quotaLimitText = (limit: number | null): string | null => (limit === null ? null : String(limit));
