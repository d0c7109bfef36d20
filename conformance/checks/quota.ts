import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { Answer } from '../api.ts';
import type { Check } from '../check.ts';
import { checkProblem, refusalOf } from '../expectations.ts';

/** After how many requests a quota counts as one that cannot be used up. */
const MAX_REQUESTS = 20_000;

const TOGETHER = 50;

/**
 * So long before the time that was told, somebody asks again; milliseconds. The first is surely before the end of the
 * window, whose rest is told rounded up to whole seconds; the second often is after it, and must be refused all the same.
 */
const TOO_EARLY_MS = [1100, 200];

/** What happens to who asks too often. Uses up the key's quota, and waits until it is there again. */
export const QUOTA_CHECKS: readonly Check[] = [
  {
    title: 'too many requests are refused with the time to wait, again to who does not wait, and no more after it',
    rules: ['7.integration_rate_limited', '7.1', '8.retry-after'],
    async run(api) {
      const ask = () => api.list('limit=1', { takes429: true });
      let askedAt = 0;
      let refused: Answer | undefined;
      for (let sent = 0; !refused && sent < MAX_REQUESTS; sent += TOGETHER) {
        askedAt = performance.now();
        const answers = await Promise.all(Array.from({ length: TOGETHER }, ask));
        refused = answers.find(({ status }) => status !== 200);
      }
      assert(refused, `${MAX_REQUESTS} requests were not too many`);
      let seconds = secondsToWait(refused);
      for (const earlyMs of TOO_EARLY_MS) {
        const endsAt = askedAt + seconds * 1000;
        if (endsAt - earlyMs < performance.now()) continue;
        await wait(endsAt - earlyMs - performance.now());
        askedAt = performance.now();
        const again = await ask();
        // What takes so long may have been decided after that time.
        if (performance.now() >= endsAt) break;
        assert.equal(again.status, 429, `let in ${earlyMs} ms before the time that was told`);
        seconds = secondsToWait(again);
      }
      await wait(seconds * 1000);
      assert.equal((await ask()).status, 200, 'refused after the time to wait');
    },
  },
];

function secondsToWait(answer: Answer): number {
  checkProblem(refusalOf(answer, 429, 'integration_rate_limited'), 429);
  const value = answer.headers.get('retry-after') ?? 'none';
  assert.match(value, /^[1-9]\d*$/, `the time to wait is ${value}`);
  return Number(value);
}
