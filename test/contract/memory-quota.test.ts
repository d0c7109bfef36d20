import { expect, test } from 'vitest';
import { createMemoryQuota } from '../../gateway/admission/quota/memory-quota.ts';
import { newId } from '../../src/domain/new-id.ts';
import { heapBytes } from '../support/heap.ts';
import { quotaContract } from './quota-contract.ts';
import { quotaOfKeys } from './quota-of-keys.ts';

let passedMs = 0;

quotaContract('memory', {
  open: async (windowSeconds) => createMemoryQuota(windowSeconds, () => Math.floor(performance.now() + passedMs)),
  gateways: 1,
  async pass(_, ms) {
    passedMs += ms;
  },
  redisUrl: () => undefined,
});

// @proves bounds-29
test('expired windows hold no memory: ten windows of keys take no more heap than two', async () => {
  let nowMs = 0;
  const quota = quotaOfKeys(
    createMemoryQuota(60, () => nowMs),
    1,
  );
  const heapAfter = async (windows: number) => {
    for (let window = 0; window < windows; window += 1) {
      for (let key = 0; key < 20_000; key += 1) await quota.consume(newId());
      nowMs += 61_000;
    }
    return heapBytes();
  };

  const two = await heapAfter(2);
  const ten = await heapAfter(8);

  // Eight more windows of 150-byte keys would be four times this margin, which is for other allocations.
  expect(ten - two).toBeLessThan(6_000_000);
});
