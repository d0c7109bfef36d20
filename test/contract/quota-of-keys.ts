import type { Quota, QuotaDecision } from '../../gateway/admission/quota/quota-port.ts';

/** The limit of requests in a window. */
export interface KeyPolicy {
  readonly limit: number;
  readonly windowSeconds: number;
}

/** A quota of keys whose studios have none, so that the id of a key is enough. */
export interface QuotaOfKeys extends Pick<Quota, 'fault' | 'close'> {
  consume(apiKeyId: string, patienceMs?: number): Promise<QuotaDecision>;
  refund(apiKeyId: string, windows: readonly number[]): Promise<void>;
}

/** Wraps a quota so that each key is the only one of its studio. */
export const quotaOfKeys = (quota: Quota, limit: number): QuotaOfKeys => ({
  consume: (apiKeyId, patienceMs) => quota.consume(bearerOf(apiKeyId), { key: limit, studio: undefined }, patienceMs),
  refund: (apiKeyId, windows) => quota.refund(bearerOf(apiKeyId), windows),
  fault: () => quota.fault(),
  close: () => quota.close(),
});

/** The bearer of a key that is the only one of its studio. */
export const bearerOf = (apiKeyId: string) => ({ apiKeyId, studioId: `studio-of-${apiKeyId}` });
