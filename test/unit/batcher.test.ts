import { expect, test } from 'vitest';
import { Batcher } from '../../src/store/mongo/batcher.ts';
import { times } from '../support/builders.ts';

/** A batch under way, which ends when the test says so. */
interface Batch {
  readonly requests: readonly number[];
  answer(): void;
  fail(error: Error): void;
}

/** Batcher requests, each answered with ten times itself. */
function controlledBatches(nameOf?: (request: number) => unknown) {
  const batches: Batch[] = [];
  const gathered = new Batcher<number, number>(
    (requests) => {
      const answers = Promise.withResolvers<number[]>();
      batches.push({
        requests,
        answer: () => answers.resolve(requests.map((request) => request * 10)),
        fail: answers.reject,
      });
      return answers.promise;
    },
    undefined,
    nameOf,
  );
  const ask = (request: number, deadline = new AbortController().signal) => gathered.ask(request, deadline);
  return { batches, ask };
}

/** Ends a turn of the event loop, and what follows from it in the next one. */
async function turn(): Promise<void> {
  for (const _ of times(2, () => 0)) await new Promise(setImmediate);
}

const numbers = (from: number, to: number) => times(to - from, (index) => from + index);

test('a lone request goes at the end of its turn', async () => {
  const { batches, ask } = controlledBatches();

  const answer = ask(1);
  await turn();

  expect(batches.map(({ requests }) => requests)).toEqual([[1]]);
  batches[0]?.answer();
  expect(await answer).toBe(10);
});

test('requests of one turn go together, at most 64, and each gets its own answer', async () => {
  const { batches, ask } = controlledBatches();

  const answers = numbers(0, 150).map((request) => ask(request));
  await turn();
  await turn();

  expect(batches.map(({ requests }) => requests)).toEqual([numbers(0, 64), numbers(64, 128), numbers(128, 150)]);
  // In whatever order the batches end.
  for (const batch of batches.toReversed()) batch.answer();
  expect(await Promise.all(answers)).toEqual(numbers(0, 150).map((request) => request * 10));
});

test('who comes later does not wait for a batch under way, until four are', async () => {
  const { batches, ask } = controlledBatches();
  const answers: Promise<number>[] = [];

  for (const request of numbers(0, 10)) {
    answers.push(ask(request));
    await turn();
  }
  expect(batches.map(({ requests }) => requests)).toEqual([[0], [1], [2], [3]]);

  // What has come in the meantime goes together, in place of the one that ended.
  batches[2]?.answer();
  await turn();
  expect(batches.slice(4).map(({ requests }) => requests)).toEqual([numbers(4, 10)]);
  for (const batch of batches) batch.answer();
  expect(await Promise.all(answers)).toEqual(numbers(0, 10).map((request) => request * 10));
});

test('what is left over when four are under way goes as they end', async () => {
  const { batches, ask } = controlledBatches();
  const answers = numbers(0, 1000).map((request) => ask(request));

  for (let ended = 0; ended < 16; ended += 1) {
    await turn();
    await turn();
    expect(batches.length - ended).toBeLessThanOrEqual(4);
    batches[ended]?.answer();
  }

  expect(await Promise.all(answers)).toEqual(numbers(0, 1000).map((request) => request * 10));
  expect(batches.flatMap(({ requests }) => requests)).toEqual(numbers(0, 1000));
});

test('a batch that fails fails those in it, and nobody else', async () => {
  const { batches, ask } = controlledBatches();
  const first = Promise.allSettled(numbers(0, 64).map((request) => ask(request)));
  const second = Promise.all(numbers(64, 128).map((request) => ask(request)));
  await turn();
  await turn();

  batches[0]?.fail(new Error('cut off'));
  batches[1]?.answer();

  expect(new Set((await first).map((outcome) => outcome.status === 'rejected' && outcome.reason.message))).toEqual(
    new Set(['cut off']),
  );
  expect(await second).toEqual(numbers(64, 128).map((request) => request * 10));
});

test('batches that fail make room for others as those do that succeed', async () => {
  const { batches, ask } = controlledBatches();
  for (const round of numbers(0, 10)) {
    const answer = ask(round);
    await turn();
    batches[round]?.fail(new Error('cut off'));
    await expect(answer).rejects.toThrow('cut off');
  }

  for (const request of numbers(10, 15)) {
    ask(request);
    await turn();
  }

  expect(batches.slice(10).map(({ requests }) => requests)).toEqual([[10], [11], [12], [13]]);
});

test('a request whose deadline is over is not begun, and those beside it are', async () => {
  const { batches, ask } = controlledBatches();
  const over = new AbortController();
  for (const request of numbers(0, 4)) {
    ask(request);
    await turn();
  }
  const late = ask(50, over.signal);
  const beside = ask(51);
  await turn();

  over.abort(new Error('too late'));
  batches[0]?.answer();

  await expect(late).rejects.toThrow('too late');
  expect(batches.slice(4).map(({ requests }) => requests)).toEqual([[51]]);
  batches[4]?.answer();
  expect(await beside).toBe(510);
});

test('requests whose deadlines are all over leave nothing behind that would stop the next one', async () => {
  const { batches, ask } = controlledBatches();
  const over = new AbortController();
  over.abort(new Error('too late'));

  const late = await Promise.allSettled(numbers(0, 200).map((request) => ask(request, over.signal)));
  expect(late.every(({ status }) => status === 'rejected')).toBe(true);
  expect(batches).toEqual([]);

  const answer = ask(1);
  await turn();
  batches[0]?.answer();
  expect(await answer).toBe(10);
});

test('a batch knows who asked for each of its requests', async () => {
  let asker: string | undefined;
  const batches: (readonly (string | undefined)[])[] = [];
  const gathered = new Batcher<number, number, string>(
    async (requests, askers) => {
      batches.push(askers);
      return requests;
    },
    () => asker,
  );
  const ask = (of: string | undefined, deadline = new AbortController().signal) => {
    asker = of;
    return gathered.ask(1, deadline).catch(() => {});
  };

  await Promise.all([ask('Ada'), ask('late', AbortSignal.abort()), ask(undefined), ask('Grace'), ask('Ada')]);

  expect(batches).toEqual([['Ada', undefined, 'Grace', 'Ada']]);
});

test('requests that are the same go as one, and nobody who comes later is told what a batch under way reads', async () => {
  const { batches, ask } = controlledBatches((request) => request % 100);
  const herd = times(1000, () => ask(7));
  const others = numbers(0, 100).map((request) => ask(request));
  await turn();
  await turn();
  const late = ask(107);
  await turn();

  expect(batches.map(({ requests }) => requests)).toEqual([
    [7, ...numbers(0, 7), ...numbers(8, 64)],
    numbers(64, 100),
    [107],
  ]);
  for (const batch of batches) batch.answer();
  expect(new Set(await Promise.all(herd))).toEqual(new Set([70]));
  expect(await Promise.all(others)).toEqual(numbers(0, 100).map((request) => request * 10));
  expect(await late).toBe(1070);
});

test('a batch knows who asked, also those whose request went as one with another', async () => {
  let asker = '';
  const known: (readonly (string | undefined)[])[] = [];
  const gathered = new Batcher<number, number, string>(
    async (requests, askers) => {
      known.push(askers);
      return requests;
    },
    () => asker,
    (request) => request,
  );
  const askAs = (name: string, request: number) => {
    asker = name;
    return gathered.ask(request, new AbortController().signal);
  };

  await Promise.all([askAs('Ada', 1), askAs('Grace', 2), askAs('Alan', 1)]);

  expect(known.map((askers) => askers.toSorted())).toEqual([['Ada', 'Alan', 'Grace']]);
});
