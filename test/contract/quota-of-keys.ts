import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { QUOTA_TIMEOUT_MS } from '../../common/deadlines.ts';
import {
  MAX_HOLD_MS,
  type Quota,
  type QuotaCaller,
  type QuotaDecision,
} from '../../gateway/admission/quota/quota-port.ts';
import type { RedisClient } from '../../gateway/admission/quota/redis-client.ts';
import { windowNames } from '../../gateway/admission/quota/redis-window.ts';

/** The limit of requests in a window. */
export interface KeyPolicy {
  readonly limit: number;
  readonly windowSeconds: number;
}

/** A quota for keys whose studios have no limit, so that the key's id is enough. */
export interface QuotaOfKeys extends Pick<Quota, 'fault' | 'close'> {
  consume(apiKeyId: string, patienceMs?: number): Promise<QuotaDecision>;
  refund(apiKeyId: string, windows: readonly number[]): Promise<void>;
}

/** Wraps a quota so that each key is the only one of its studio. */
export const quotaOfKeys = (quota: Quota, limit: number): QuotaOfKeys => ({
  consume: (apiKeyId, patienceMs) => quota.consume(aBearer(apiKeyId), { key: limit, studio: undefined }, patienceMs),
  refund: (apiKeyId, windows) => quota.refund(aBearer(apiKeyId), windows),
  fault: () => quota.fault(),
  close: () => quota.close(),
});

/** Returns the bearer of a key that is the only one of its studio. */
export const aBearer = (apiKeyId: string) => ({ apiKeyId, studioId: `studio-of-${apiKeyId}` });

/** A decision and the times before and after it; milliseconds. */
export interface Decided {
  readonly sentAt: number;
  readonly gotAt: number;
  readonly decision: QuotaDecision;
}

/** The tolerance between two clocks with whole milliseconds; milliseconds. */
const SLACK_MS = 2;

/**
 * Expects the decisions on consecutive requests of a key to agree with the times announced before. No request is admitted
 * earlier than announced, or told to wait for less. No refusal comes after its window, or lasts more than a second longer.
 * A decision fails only if it is wrong at each time between `sentAt` and `gotAt`.
 */
export function expectConsistentTimes({ limit, windowSeconds }: KeyPolicy, log: readonly Decided[]): void {
  const windowMs = windowSeconds * 1000;
  let admitted = 0;
  /** The earliest and the latest time at which the window can end. */
  let end = { earliest: Number.NEGATIVE_INFINITY, latest: Number.NEGATIVE_INFINITY };
  /** The key must be refused until the first time, and may be until the second. */
  let refused = { surely: Number.NEGATIVE_INFINITY, atMost: Number.NEGATIVE_INFINITY };

  for (const [index, { sentAt, gotAt, decision }] of log.entries()) {
    const where = `decision ${index}, the last of ${JSON.stringify(log.slice(Math.max(0, index - 9), index + 1))}`;
    const { resetSeconds, remaining, waitMs } = decision;
    const announcedMs = resetSeconds * 1000;

    if (!decision.admitted) {
      expect(admitted, where).toBe(limit);
      expect(remaining, where).toBe(0);
      if (waitMs > 0) {
        expect(waitMs, where).toBeLessThan(MAX_HOLD_MS);
        expect(gotAt + waitMs, `${where}: waits too little`).toBeGreaterThanOrEqual(refused.surely - SLACK_MS);
        expect(gotAt + waitMs, `${where}: waits too little`).toBeGreaterThanOrEqual(end.earliest - SLACK_MS);
        expect(sentAt + waitMs, `${where}: waits too long`).toBeLessThanOrEqual(refused.atMost + SLACK_MS);
        continue;
      }
      expect(sentAt, `${where}: refused after its window`).toBeLessThanOrEqual(end.latest + SLACK_MS);
      refused.surely = Math.max(refused.surely, sentAt + announcedMs - SLACK_MS);
      refused.atMost = Math.max(refused.atMost, Math.min(gotAt + announcedMs, end.latest + 1000));
    } else if (gotAt >= refused.surely && gotAt >= end.earliest - SLACK_MS && remaining === limit - 1) {
      admitted = 1;
      end = { earliest: sentAt + windowMs, latest: gotAt + windowMs };
      refused = { surely: Number.NEGATIVE_INFINITY, atMost: end.latest };
    } else {
      admitted += 1;
      expect(admitted, `${where}: admitted too early`).toBeLessThanOrEqual(limit);
      expect(remaining, where).toBe(limit - admitted);
      expect(sentAt, `${where}: admitted to a window that has ended`).toBeLessThanOrEqual(end.latest + SLACK_MS);
    }

    const leastSeconds = Math.ceil((end.earliest - gotAt - SLACK_MS) / 1000);
    const mostSeconds = Math.ceil((end.latest - sentAt + SLACK_MS) / 1000);
    expect(resetSeconds, where).toBeGreaterThanOrEqual(Math.max(1, leastSeconds));
    expect(resetSeconds, where).toBeLessThanOrEqual(Math.min(windowSeconds, Math.max(1, mostSeconds)));
  }
}

/**
 * Runs an action that must end within the time that the port promises. Measures that as the quota does, by several timers in a
 * row, because a busy machine delays each of them.
 *
 * @throws AssertionError if it ends later
 */
export async function inTime<T>(action: () => Promise<T>): Promise<T> {
  const later = async () => {
    for (let slice = 0; slice < 6; slice += 1) await sleep(QUOTA_TIMEOUT_MS / 6);
    expect.fail(`later than ${QUOTA_TIMEOUT_MS} ms`);
  };
  return Promise.race([action(), later()]);
}

/** Brings the expiry of entries nearer, which is all that passing time does to them. */
export const PASS = `
for _, key in ipairs(KEYS) do
  local expires = redis.call('PEXPIRETIME', key)
  if expires > 0 then redis.call('PEXPIREAT', key, expires - ARGV[1]) end
end`;

/** Lets time pass for an API key and its studio in Redis, without waiting; whole milliseconds. */
export async function passInRedis(redis: RedisClient, bearer: QuotaCaller, ms: number): Promise<void> {
  const names = windowNames(bearer, redis.isCluster).flatMap(({ counter, refusal }) => [counter, refusal]);
  await redis.eval(PASS, names.length, ...names, ms);
}
