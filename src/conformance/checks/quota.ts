import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { Answer } from '../api.ts';
import type { Check } from '../check.ts';
import { checkProblem, refusalOf } from '../expectations.ts';

/** After how many requests a quota counts as one that cannot be used up. */
const MOST_REQUESTS = 20_000;

const TOGETHER = 50;

/** What happens to who asks too often. Uses up the key's quota, and waits until it is there again. */
export const QUOTA_CHECKS: readonly Check[] = [
  {
    title: 'too many requests are refused with the time to wait, again to who does not wait, and no more after it',
    rules: ['7 integration_rate_limited', '7 rule 1', '8 Retry-After'],
    async run(api) {
      const ask = () => api.list('limit=1', { takes429: true });
      let refused: Answer | undefined;
      for (let sent = 0; !refused && sent < MOST_REQUESTS; sent += TOGETHER) {
        const answers = await Promise.all(Array.from({ length: TOGETHER }, ask));
        refused = answers.find(({ status }) => status !== 200);
      }
      assert(refused, `${MOST_REQUESTS} requests were not too many`);
      const seconds = secondsToWait(refused);
      if (seconds > 1) secondsToWait(await ask());
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
