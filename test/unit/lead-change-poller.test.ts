import { expect, onTestFinished, test } from 'vitest';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { LeadChangePoller } from '../../src/usecases/lead-change-poller.ts';
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
  const looks = new LeadChangePoller(store);

  const first = await looks.now();
  const all = await Promise.all(times(1000, () => looks.next()));
  for (const look of all) expect(look).toBe(first);
  await create();
  const second = await looks.now();
  expect(second).not.toBe(first);
  expect(second.changes).toHaveLength(2);
  expect(await looks.now()).toBe(second);
});
