import { expect, test } from 'vitest';
import { CoalescedReads } from '../../common/coalesced-reads.ts';

/** Reads that the test ends. */
function controlledReads() {
  const reads = new CoalescedReads();
  const begun: PromiseWithResolvers<string>[] = [];
  const read = (name = 'a name') =>
    reads.read(name, () => {
      const answer = Promise.withResolvers<string>();
      begun.push(answer);
      return answer.promise;
    });
  return { begun, read };
}

test('a caller during an equal read gets the result of a later one', async () => {
  const { begun, read } = controlledReads();
  const first = read();
  const later = [read(), read(), read()];
  expect(begun).toHaveLength(1);

  begun[0]?.resolve('before');
  expect(await first).toBe('before');
  await Promise.resolve();
  expect(begun).toHaveLength(2);
  begun[1]?.resolve('after');

  expect(await Promise.all(later)).toEqual(['after', 'after', 'after']);
});

test('a read starts immediately when none is in flight', async () => {
  const { begun, read } = controlledReads();
  const first = read();
  begun[0]?.resolve('one');
  await first;

  read();

  expect(begun).toHaveLength(2);
});

test('a read that fails rejects the callers that share it and no others', async () => {
  const { begun, read } = controlledReads();
  const first = read();
  const second = read();

  begun[0]?.reject(new Error('cut off'));
  await expect(first).rejects.toThrow('cut off');
  await Promise.resolve();
  begun[1]?.resolve('fine');

  expect(await second).toBe('fine');
});

test('reads with different names are independent', async () => {
  const { begun, read } = controlledReads();

  read('one');
  read('another');

  expect(begun).toHaveLength(2);
});
