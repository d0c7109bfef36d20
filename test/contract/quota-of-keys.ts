import type { Quota, QuotaDecision } from '../../gateway/quota/quota-port.ts';

/** How many requests a key may make in how long a window. */
export interface KeyPolicy {
  readonly limit: number;
  readonly windowSeconds: number;
}

/** A quota as it is for keys whose studios have none: each is asked for by its id alone. */
export interface QuotaOfKeys extends Pick<Quota, 'ready' | 'close'> {
  consume(apiKeyId: string): Promise<QuotaDecision>;
  refund(apiKeyId: string, windows: readonly number[]): Promise<void>;
}

/** Each key is the only one of its studio. */
export const quotaOfKeys = (quota: Quota, limit: number): QuotaOfKeys => ({
  consume: (apiKeyId) => quota.consume(bearerOf(apiKeyId), { key: limit, studio: undefined }),
  refund: (apiKeyId, windows) => quota.refund(bearerOf(apiKeyId), windows),
  ready: () => quota.ready(),
  close: () => quota.close(),
});

/** Who comes with a key that is the only one of its studio. */
export const bearerOf = (apiKeyId: string) => ({ apiKeyId, studioId: `studio-of-${apiKeyId}` });
