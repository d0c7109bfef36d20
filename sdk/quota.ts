/** The remaining quota of the key or of its studio, whichever will be used up first. */
export interface Quota {
  /** The number of requests in a window. */
  readonly limit: number;
  /** How many of them are left. */
  readonly remaining: number;
  /** The time until the window ends; seconds. */
  readonly endsInSeconds: number;
}

/** Reads the headers `RateLimit-Policy` and `RateLimit`; undefined when one is missing. */
export function quotaIn(headers: Headers): Quota | undefined {
  const limit = /;\s*q=(\d+)/.exec(headers.get('ratelimit-policy') ?? '')?.[1];
  const left = /;\s*r=(\d+);\s*t=(\d+)/.exec(headers.get('ratelimit') ?? '');
  if (limit === undefined || left === null) return undefined;
  return { limit: Number(limit), remaining: Number(left[1]), endsInSeconds: Number(left[2]) };
}
