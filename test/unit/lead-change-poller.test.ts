import { expect, test } from 'vitest';
import type { LeadChange } from '../../src/domain/lead-change.ts';
import { LeadChangePoller } from '../../src/usecases/change-feed.ts';

test('callers during a poll share one that begins after it, whether it succeeds or fails', async () => {
  const polls: PromiseWithResolvers<LeadChange[]>[] = [];
  const poller = new LeadChangePoller(() => {
    const poll = Promise.withResolvers<LeadChange[]>();
    polls.push(poll);
    return poll.promise;
  });
  const turn = () => new Promise(setImmediate);
  const first = poller.now();
  await turn();
  const later = [poller.now(), poller.now()];
  polls[0]?.reject(new Error('cut off'));
  await expect(first).rejects.toThrow('cut off');
  await turn();
  polls[1]?.resolve([]);

  expect(new Set(await Promise.all(later)).size).toBe(1);
  expect(polls).toHaveLength(2);
});
