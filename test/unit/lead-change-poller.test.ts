import { expect, onTestFinished, test } from 'vitest';
import type { LeadChange } from '../../src/domain/lead-change.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { LeadChangePoller } from '../../src/usecases/change-feed.ts';
import { aLead, aStudio, BY, claimsOf, times } from '../support/builders.ts';

test('polls with equal results return the same object, so that a thousand consumers cost as much as one', async () => {
  const store = openSqliteStore(':memory:');
  onTestFinished(() => store.close());
  await store.putStudio(aStudio(), BY);
  const create = async () => {
    const lead = aLead();
    await store.createLead(lead, claimsOf(lead));
  };
  await create();
  const poller = new LeadChangePoller(store);

  const first = await poller.now();
  const all = await Promise.all(times(1000, () => poller.next()));
  for (const poll of all) expect(poll).toBe(first);
  await create();
  const second = await poller.now();
  expect(second).not.toBe(first);
  expect(second.changes).toHaveLength(2);
  expect(await poller.now()).toBe(second);
});

test('callers during a poll share one that begins after it, whether it succeeds or fails', async () => {
  const polls: PromiseWithResolvers<LeadChange[]>[] = [];
  const poller = new LeadChangePoller({
    listLeadChanges() {
      const poll = Promise.withResolvers<LeadChange[]>();
      polls.push(poll);
      return poll.promise;
    },
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
