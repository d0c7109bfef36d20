import { expect, test } from 'vitest';
import { requestBatcher } from '../../src/store/mongo/collections.ts';
import { times } from '../support/builders.ts';

/** A batch in flight, which the test ends. */
interface Batch {
  readonly requests: readonly number[];
  answer(): void;
  fail(error: Error): void;
}

/** Returns a batcher that answers each request with ten times itself, and its batches. */
function controlledBatches(findName?: (request: number) => unknown) {
  const batches: Batch[] = [];
  const batcher = requestBatcher<number, number>((requests) => {
    const answers = Promise.withResolvers<number[]>();
    batches.push({
      requests,
      answer: () => answers.resolve(requests.map((request) => request * 10)),
      fail: answers.reject,
    });
    return answers.promise;
  }, findName);
  const submit = (request: number, deadline = new AbortController().signal) => batcher.submit(request, deadline);
  return { batches, submit };
}

/** Waits for the end of this turn of the event loop and the next. */
async function turn(): Promise<void> {
  for (const _ of times(2, () => 0)) await new Promise(setImmediate);
}

const numbers = (from: number, to: number) => times(to - from, (index) => from + index);

// @proves exchange-1
test('requests of one turn are sent in batches of at most 64, and each gets its own result', async () => {
  const { batches, submit } = controlledBatches();

  const answers = numbers(0, 150).map((request) => submit(request));
  await turn();
  await turn();

  expect(batches.map(({ requests }) => requests)).toEqual([numbers(0, 64), numbers(64, 128), numbers(128, 150)]);
  // The batches end in reverse order.
  for (const batch of batches.toReversed()) batch.answer();
  expect(await Promise.all(answers)).toEqual(numbers(0, 150).map((request) => request * 10));
});

test('requests beyond four batches in flight are sent when one of them ends', async () => {
  const { batches, submit } = controlledBatches();
  const answers = numbers(0, 1000).map((request) => submit(request));

  for (let ended = 0; ended < 16; ended += 1) {
    await turn();
    await turn();
    expect(batches.length - ended).toBeLessThanOrEqual(4);
    batches[ended]?.answer();
  }

  expect(await Promise.all(answers)).toEqual(numbers(0, 1000).map((request) => request * 10));
  expect(batches.flatMap(({ requests }) => requests)).toEqual(numbers(0, 1000));
});

// @proves exchange-1
test('a request past its deadline is not sent, but others are', async () => {
  const { batches, submit } = controlledBatches();
  const over = new AbortController();
  for (const request of numbers(0, 4)) {
    submit(request);
    await turn();
  }
  const late = submit(50, over.signal);
  const beside = submit(51);
  await turn();

  over.abort(new Error('too late'));
  batches[0]?.answer();

  await expect(late).rejects.toThrow('too late');
  expect(batches.slice(4).map(({ requests }) => requests)).toEqual([[51]]);
  batches[4]?.answer();
  expect(await beside).toBe(510);
});

test('equal requests are sent once, but later ones do not share a result in flight', async () => {
  const { batches, submit } = controlledBatches((request) => request % 100);
  const same = times(1000, () => submit(7));
  const others = numbers(0, 100).map((request) => submit(request));
  await turn();
  await turn();
  const late = submit(107);
  await turn();

  expect(batches.map(({ requests }) => requests)).toEqual([
    [7, ...numbers(0, 7), ...numbers(8, 64)],
    numbers(64, 100),
    [107],
  ]);
  for (const batch of batches) batch.answer();
  expect(new Set(await Promise.all(same))).toEqual(new Set([70]));
  expect(await Promise.all(others)).toEqual(numbers(0, 100).map((request) => request * 10));
  expect(await late).toBe(1070);
});
