import { expect } from 'vitest';
import type { QuotaDecision } from '../../gateway/quota/quota-port.ts';
import type { KeyPolicy } from './quota-of-keys.ts';

/** A decision, made at some moment between two; milliseconds. */
export interface Decided {
  readonly sentAt: number;
  readonly gotAt: number;
  readonly decision: QuotaDecision;
}

/** What two clocks that count whole milliseconds may differ by; milliseconds. */
const SLACK_MS = 2;

/**
 * Holds what one key was answered, one request after the other, against what it was told: nobody is let in before a time
 * that was told within the window, nobody is refused after all that was told, and never for a second more than the window.
 * A decision was made at a moment that is known only so well; nothing is held against it that may have been otherwise.
 */
export function expectTrueToItsWord({ limit, windowSeconds }: KeyPolicy, log: readonly Decided[]): void {
  const windowMs = windowSeconds * 1000;
  let admitted = 0;
  /** Between which moments the window ends. */
  let end = { earliest: Number.NEGATIVE_INFINITY, latest: Number.NEGATIVE_INFINITY };
  /** Until when the key must be refused, and until when it may be. */
  let refused = { surely: Number.NEGATIVE_INFINITY, atMost: Number.NEGATIVE_INFINITY };

  for (const [index, { sentAt, gotAt, decision }] of log.entries()) {
    const where = `decision ${index}, the last of ${JSON.stringify(log.slice(Math.max(0, index - 9), index + 1))}`;
    const { resetSeconds, remaining } = decision;
    const toldMs = resetSeconds * 1000;

    if (!decision.admitted) {
      expect(admitted, where).toBe(limit);
      expect(remaining, where).toBe(0);
      expect(sentAt, `${where}: refused for too long`).toBeLessThanOrEqual(refused.atMost + SLACK_MS);
      const isSurelyWithin = gotAt + SLACK_MS < end.earliest;
      const isPerhapsWithin = sentAt - SLACK_MS < end.latest;
      if (isSurelyWithin) refused.surely = Math.max(refused.surely, sentAt + toldMs - SLACK_MS);
      if (isPerhapsWithin) refused.atMost = Math.max(refused.atMost, Math.min(gotAt + toldMs, end.latest + 1000));
      else expect(resetSeconds, where).toBe(1);
    } else if (gotAt >= refused.surely && gotAt >= end.earliest - SLACK_MS && remaining === limit - 1) {
      admitted = 1;
      end = { earliest: sentAt + windowMs, latest: gotAt + windowMs };
      refused = { surely: Number.NEGATIVE_INFINITY, atMost: end.latest };
    } else {
      admitted += 1;
      expect(admitted, `${where}: let in too early`).toBeLessThanOrEqual(limit);
      expect(remaining, where).toBe(limit - admitted);
      expect(sentAt, `${where}: let in to a window that is over`).toBeLessThanOrEqual(end.latest + SLACK_MS);
    }

    const leastSeconds = Math.ceil((end.earliest - gotAt - SLACK_MS) / 1000);
    const mostSeconds = Math.ceil((end.latest - sentAt + SLACK_MS) / 1000);
    expect(resetSeconds, where).toBeGreaterThanOrEqual(Math.max(1, leastSeconds));
    expect(resetSeconds, where).toBeLessThanOrEqual(Math.min(windowSeconds, Math.max(1, mostSeconds)));
  }
}
