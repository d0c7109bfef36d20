import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { Answer } from '../api.ts';
import type { Check } from '../check.ts';
import { expectRefusalIn, expectValidProblem } from '../expectations.ts';

/** The check gives up if this many requests do not exhaust the quota. */
const MAX_REQUESTS = 20_000;

const BATCH_SIZE = 50;

/**
 * How long before the end of Retry-After to send requests; milliseconds. Retry-After is rounded up to whole seconds. So the first request
 * comes before the end of the window. The second one often comes after it, and must still be refused.
 */
const EARLY_MS = [1100, 200];

/** The check that exhausts the key's quota, and waits until it is available again. */
export const QUOTA_CHECKS: readonly Check[] = [
  {
    title: 'too many requests are refused until the time to wait is over, and then admitted',
    rules: ['7.integration_rate_limited', '7.1', '8.retry-after'],
    async run(api) {
      const send = () => api.list('limit=1', { returns429: true });
      let sentAt = 0;
      let refused: Answer | undefined;
      for (let count = 0; !refused && count < MAX_REQUESTS; count += BATCH_SIZE) {
        sentAt = performance.now();
        const answers = await Promise.all(Array.from({ length: BATCH_SIZE }, send));
        refused = answers.find(({ status }) => status !== 200);
      }
      assert(refused, `${MAX_REQUESTS} requests did not exhaust the quota`);
      let seconds = secondsToWait(refused);
      for (const earlyMs of EARLY_MS) {
        const endsAt = sentAt + seconds * 1000;
        if (endsAt - earlyMs < performance.now()) continue;
        await wait(endsAt - earlyMs - performance.now());
        sentAt = performance.now();
        const again = await send();
        // A late response may have been decided after the window's end.
        if (performance.now() >= endsAt) break;
        assert.equal(again.status, 429, `a request was admitted ${earlyMs} ms before the time to wait was over`);
        seconds = secondsToWait(again);
      }
      await wait(seconds * 1000);
      assert.equal((await send()).status, 200, 'a request was refused after the time to wait');
    },
  },
];

function secondsToWait(answer: Answer): number {
  expectValidProblem(expectRefusalIn(answer, 429, 'integration_rate_limited'), 429);
  const value = answer.headers.get('retry-after') ?? 'none';
  assert.match(value, /^[1-9]\d*$/, `Retry-After is ${value}`);
  return Number(value);
}
