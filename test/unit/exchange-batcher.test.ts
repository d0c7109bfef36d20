import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createOtlpTracer } from '../../common/otlp-tracer.ts';
import { type BatchItem, ExchangeBatcher, NoResponse, type Result } from '../../gateway/exchange-batcher.ts';
import { times } from '../support/builders.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';

/** How long a request may take; milliseconds. */
const TIMEOUT_MS = 5000;

/** How many requests may be pending. */
const MAX_PENDING_REQUESTS = 2048;

/** How many requests go over one call. */
const MAX_IN_CALL = 1_000_000;

/** The other side of one call: it does what the test says. */
class OtherSide {
  /** What it has read, message by message. */
  readonly messages: (readonly BatchItem<string>[])[] = [];
  /** Whether the collector has said that nothing more comes. */
  hasAll = false;
  readonly #incoming: AsyncIterable<readonly BatchItem<string>[]>;
  readonly #outgoing: (readonly Result<string>[])[] = [];
  #end: { readonly error?: unknown } | undefined;
  #wake = () => {};

  constructor(messages: AsyncIterable<readonly BatchItem<string>[]>) {
    this.#incoming = messages;
  }

  /** Begins to read whatever comes. */
  async read(): Promise<void> {
    for await (const message of this.#incoming) this.messages.push(message);
    this.hasAll = true;
  }

  /** What it has read, in order. */
  get requests(): string[] {
    return this.messages.flat().map(({ request }) => request);
  }

  /** Answers requests by their place in the call; each with its own text, unless told otherwise. */
  answer(...indexes: readonly number[]): void {
    const { requests } = this;
    this.send(indexes.map((index) => ({ index, answer: `answer to ${requests[index]}` })));
  }

  send(results: readonly Result<string>[]): void {
    this.#outgoing.push(results);
    this.#wake();
  }

  /** Ends the call, after what it has sent; with an error if there is one. */
  end(error?: unknown): void {
    this.#end = error === undefined ? {} : { error };
    this.#wake();
  }

  async *results(): AsyncGenerator<readonly Result<string>[]> {
    for (;;) {
      const results = this.#outgoing.shift();
      if (results) yield results;
      else if (this.#end) break;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
    if ('error' in this.#end) throw this.#end.error;
  }
}

/**
 * A collector, and the other side of each of its calls in the order in which they began.
 *
 * @param reads whether the first call is read from its beginning
 * @param lingerMs how long it gathers while a message has no result
 */
function controlled({ reads = true, lingerMs }: { reads?: boolean; lingerMs?: number } = {}) {
  const calls: OtherSide[] = [];
  const batcher = new ExchangeBatcher<string, string>(
    (messages) => {
      const call = new OtherSide(messages);
      if (calls.push(call) > 1 || reads) call.read();
      return call.results();
    },
    { timeoutMs: TIMEOUT_MS, maxPerMessage: 64, lingerMs },
  );
  const ask = (request: string, sharedAs?: string) => {
    const answer = batcher.send(request, `id of ${request}`, sharedAs);
    // Looked at later, or not at all.
    answer.catch(() => {});
    return answer;
  };
  const call = (index: number) => calls[index] as OtherSide;
  return { calls, call, ask };
}

/** Ends a turn of the event loop, and what follows from it in the next ones. */
async function turn(): Promise<void> {
  for (const _ of times(3, () => 0)) await new Promise(setImmediate);
}

/** A collector whose call is begun: it has answered one request. */
async function begun(options: { lingerMs?: number } = {}) {
  const all = controlled(options);
  const first = all.ask('first');
  await turn();
  all.call(0).answer(0);
  await first;
  return all;
}

const UNANSWERED = { constructor: NoResponse };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  // Whatever was asked is answered or refused, and waits for nothing.
  const left = vi.getTimerCount();
  vi.useRealTimers();
  expect(left).toBe(0);
});

describe('what goes together', () => {
  test('a single request is sent immediately, with its id for the log', async () => {
    const { call, calls, ask } = await begun();

    const answer = ask('one');
    await turn();

    expect(calls).toHaveLength(1);
    expect(call(0).messages.slice(1)).toEqual([[{ request: 'one', requestId: 'id of one' }]]);
    call(0).answer(1);
    expect(await answer).toBe('answer to one');
  });

  test('requests of one turn share messages of at most 64', async () => {
    const { call, ask } = await begun();

    const names = times(150, (index) => `No. ${index}`);
    const answers = names.map((name) => ask(name));
    await turn();

    expect(
      call(0)
        .messages.slice(1)
        .map(({ length }) => length),
    ).toEqual([64, 64, 22]);
    expect(call(0).requests.slice(1)).toEqual(names);
    // In any order, some together.
    for (let index = 150; index > 0; index -= 3) call(0).answer(index, index - 2, index - 1);
    expect(await Promise.all(answers)).toEqual(names.map((name) => `answer to ${name}`));
  });

  test('so do requests made before there is a call', async () => {
    const { call, calls, ask } = controlled();
    const answers = ['one', 'two', 'three'].map((name) => ask(name));
    await turn();

    expect(calls).toHaveLength(1);
    expect(call(0).requests).toEqual(['one', 'two', 'three']);
    call(0).answer(2, 1, 0);
    expect(await Promise.all(answers)).toEqual(['answer to one', 'answer to two', 'answer to three']);
  });

  test('a request of the next turn does not wait for pending ones', async () => {
    const { call, ask } = await begun();
    const slow = ask('slow');
    await turn();

    const fast = ask('fast');
    await turn();
    expect(call(0).requests).toEqual(['first', 'slow', 'fast']);
    call(0).answer(2);
    expect(await fast).toBe('answer to fast');

    call(0).answer(1);
    expect(await slow).toBe('answer to slow');
  });

  test('a request that fails does not affect others, and gets the error of the other side', async () => {
    const { call, ask } = await begun();
    const [bad, good] = [ask('bad'), ask('good')];
    await turn();

    call(0).send([
      { index: 1, error: new Error('refused') },
      { index: 2, answer: 'fine' },
    ]);

    await expect(bad).rejects.toThrow('refused');
    await expect(good).resolves.toBe('fine');
  });

  test('requests made while the other side does not read are sent in full messages once it does', async () => {
    const { call, ask } = controlled({ reads: false });
    const answers: Promise<string>[] = [];
    for (const index of times(130, (each) => each)) {
      answers.push(ask(`No. ${index}`));
      if (index % 20 === 0) await turn();
    }

    call(0).read();
    await turn();

    expect(call(0).messages.map(({ length }) => length)).toEqual([64, 64, 2]);
    call(0).answer(...times(130, (index) => index));
    expect(await Promise.all(answers)).toEqual(times(130, (index) => `answer to No. ${index}`));
  });
});

describe('gathering', () => {
  const LINGER_MS = 5;

  test('a single request does not wait, whatever was sent before', async () => {
    const { call, ask } = await begun({ lingerMs: LINGER_MS });
    const one = ask('one');
    await turn();
    call(0).answer(1);
    await one;

    const two = ask('two');
    await turn();
    expect(call(0).requests).toEqual(['first', 'one', 'two']);
    call(0).answer(2);
    expect(await two).toBe('answer to two');
  });

  test('requests made before the last message has a result are sent together at its first result', async () => {
    const { call, ask } = await begun({ lingerMs: LINGER_MS });
    const [one, slow] = [ask('one'), ask('slow')];
    await turn();
    const later = ['three', 'four'].map((name) => ask(name));
    await turn();
    const last = ask('five');
    await turn();
    expect(call(0).messages).toHaveLength(2);

    call(0).answer(1);
    await one;
    await turn();

    expect(
      call(0)
        .messages.slice(2)
        .map((message) => message.map(({ request }) => request)),
    ).toEqual([['three', 'four', 'five']]);
    call(0).answer(2, 3, 4, 5);
    expect(await Promise.all([slow, ...later, last])).toHaveLength(4);
  });

  test('they are sent without a result after the linger time', async () => {
    const { call, ask } = await begun({ lingerMs: LINGER_MS });
    const slow = ask('slow');
    await turn();
    const next = ask('next');
    await turn();
    vi.advanceTimersByTime(LINGER_MS - 1);
    await turn();
    expect(call(0).requests).toEqual(['first', 'slow']);

    vi.advanceTimersByTime(1);
    await turn();

    expect(call(0).requests).toEqual(['first', 'slow', 'next']);
    call(0).answer(2);
    expect(await next).toBe('answer to next');
    call(0).answer(1);
    await slow;
  });

  test('a full message does not wait', async () => {
    const { call, ask } = await begun({ lingerMs: LINGER_MS });
    const answers = [ask('one')];
    await turn();
    for (const index of times(63, (each) => each)) answers.push(ask(`No. ${index}`));
    await turn();
    expect(call(0).messages).toHaveLength(2);

    answers.push(ask('the last'));
    await turn();

    expect(call(0).messages.map(({ length }) => length)).toEqual([1, 1, 64]);
    call(0).answer(...times(65, (index) => 1 + index));
    await Promise.all(answers);
  });

  test('what is gathered when the call ends is sent over the next one', async () => {
    const { call, ask } = await begun({ lingerMs: LINGER_MS });
    const one = ask('one');
    await turn();
    const two = ask('two');
    await turn();

    call(0).end(new Error('cut off'));
    await expect(one).rejects.toThrow('cut off');
    await turn();

    expect(call(1).requests).toEqual(['two']);
    call(1).answer(0);
    expect(await two).toBe('answer to two');
  });

  test('a request can share another that is gathered and not yet sent', async () => {
    const { call, ask } = await begun({ lingerMs: LINGER_MS });
    const other = ask('other');
    await turn();
    const early = ask('early', 'name');
    await turn();
    const late = ask('late', 'name');
    await turn();
    call(0).answer(1);
    await other;
    await turn();

    expect(call(0).requests).toEqual(['first', 'other', 'early']);
    call(0).answer(2);
    expect(await Promise.all([early, late])).toEqual(['answer to early', 'answer to early']);
  });
});

describe('sharing', () => {
  test('requests of one name share one request and its result as long as it is not sent', async () => {
    const { call, ask } = await begun();
    const together = [ask('one', 'name'), ask('another', 'name'), ask('third', 'name')];
    const different = ask('one', 'other name');
    const unnamed = ask('one');
    await turn();

    expect(call(0).requests.slice(1)).toEqual(['one', 'one', 'one']);
    call(0).send([
      { index: 1, answer: 'shared' },
      { index: 2, answer: 'different' },
      { index: 3, answer: 'unnamed' },
    ]);
    expect(await Promise.all([...together, different, unnamed])).toEqual([
      'shared',
      'shared',
      'shared',
      'different',
      'unnamed',
    ]);
  });

  test('a request made after it was sent is separate', async () => {
    const { call, ask } = await begun();
    const before = ask('before', 'name');
    await turn();

    const after = ask('after', 'name');
    await turn();
    expect(call(0).requests).toEqual(['first', 'before', 'after']);

    // The answer of the one that was sent before is not that of the one that came after.
    call(0).answer(1);
    expect(await before).toBe('answer to before');
    call(0).answer(2);
    expect(await after).toBe('answer to after');
  });

  test('a request that is sent again is not shared either', async () => {
    const { call, ask } = await begun();
    const seenNot = ask('old', 'name');
    await turn();
    call(0).end();
    const later = ask('new', 'name');
    await turn();

    expect(call(1).requests.toSorted()).toEqual(['new', 'old']);
    call(1).answer(0, 1);
    expect([await seenNot, await later]).toEqual(['answer to old', 'answer to new']);
  });

  test('a failure is shared like a result, and not cached', async () => {
    const { call, ask } = await begun();
    const together = [ask('one', 'name'), ask('two', 'name')];
    await turn();
    call(0).send([{ index: 1, error: new Error('refused') }]);
    for (const each of together) await expect(each).rejects.toThrow('refused');

    const again = ask('three', 'name');
    await turn();
    call(0).answer(2);
    expect(await again).toBe('answer to three');
  });

  test('nor is a timeout before it was sent', async () => {
    const { call, ask } = controlled({ reads: false });
    const old = ask('old', 'name');
    vi.advanceTimersByTime(TIMEOUT_MS);
    await expect(old).rejects.toMatchObject(UNANSWERED);

    const again = ask('new', 'name');
    call(0).read();
    await turn();
    expect(call(0).requests).toEqual(['new']);
    call(0).answer(0);
    expect(await again).toBe('answer to new');
  });

  test('a shared request counts once among the pending', async () => {
    const { call, ask } = await begun();
    const shared = times(3 * MAX_PENDING_REQUESTS, () => ask('one', 'name'));
    const others = times(MAX_PENDING_REQUESTS - 1, (index) => ask(`No. ${index}`));
    await turn();

    call(0).answer(...times(MAX_PENDING_REQUESTS, (index) => 1 + index));
    expect(new Set(await Promise.all(shared))).toEqual(new Set(['answer to one']));
    await Promise.all(others);
  });
});

test('a shared request continues the first sampled trace, and the others link to it', async () => {
  vi.useRealTimers();
  const receiver = await startOtlpReceiver();
  onTestFinished(() => receiver.stop());
  const tracer = createOtlpTracer('test', receiver.url);
  const goneOnWith: (string | undefined)[] = [];
  let index = 0;
  const batcher = new ExchangeBatcher<string, string>(
    async function* (messages) {
      for await (const message of messages) {
        goneOnWith.push(...message.map(({ span }) => span?.traceparent));
        yield message.map(() => ({ index: index++, answer: 'shared' }));
      }
    },
    { timeoutMs: TIMEOUT_MS, maxPerMessage: 64 },
  );
  // Who opens the call is sent at once, and shares with nobody.
  await batcher.send('first', 'id');
  const notKept = tracer.begin('not kept', `00-${'1'.repeat(32)}-${'2'.repeat(16)}-00`);
  const kept = ['first', 'second', 'third'].map((name) => tracer.begin(name, undefined));
  await Promise.all([notKept, ...kept].map((span) => batcher.send('one', 'id', 'name', span)));
  for (const span of [notKept, ...kept]) span.end({ failed: false });
  await tracer.close();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });

  expect(goneOnWith).toEqual([undefined, kept[0]?.traceparent]);
  const [first, ...others] = receiver.spans.map(({ name, traceId, spanId }) => ({ name, id: { traceId, spanId } }));
  expect([first?.name, ...others.map(({ name }) => name)]).toEqual(['first', 'second', 'third']);
  expect(receiver.spans.map(({ links }) => links)).toEqual([others.map(({ id }) => id), [first?.id], [first?.id]]);
});

describe('deadlines', () => {
  test('a request without a result in time fails, and others get theirs', async () => {
    const { call, ask } = await begun();
    const slow = ask('slow');
    await turn();
    vi.advanceTimersByTime(TIMEOUT_MS - 1);
    const later = ask('later');
    await turn();

    vi.advanceTimersByTime(1);
    await expect(slow).rejects.toMatchObject(UNANSWERED);
    call(0).answer(2);
    expect(await later).toBe('answer to later');
  });

  test('its late result goes to no other request, and the call continues', async () => {
    const { call, calls, ask } = await begun();
    const slow = ask('slow');
    await turn();
    vi.advanceTimersByTime(TIMEOUT_MS);
    await expect(slow).rejects.toMatchObject(UNANSWERED);

    const next = ask('next');
    await turn();
    call(0).answer(1);
    await turn();
    call(0).answer(2);

    expect(await next).toBe('answer to next');
    await expect(slow).rejects.toMatchObject(UNANSWERED);
    expect(calls).toHaveLength(1);
  });

  test('a request that was not sent in time is not sent at all', async () => {
    const { call, ask } = controlled({ reads: false });
    const late = times(100, (index) => ask(`late ${index}`));
    vi.advanceTimersByTime(TIMEOUT_MS);
    for (const each of late) await expect(each).rejects.toMatchObject(UNANSWERED);
    const inTime = ask('in time');

    call(0).read();
    await turn();

    expect(call(0).messages).toEqual([[{ request: 'in time', requestId: 'id of in time' }]]);
    call(0).answer(0);
    expect(await inTime).toBe('answer to in time');
  });
});

describe('an unexpected result', () => {
  test.each<[string, number]>([
    ['of a request that was never sent', 7],
    ['of one that is answered already', 0],
    ['of a place that is none', -1],
  ])('%s is ignored', async (_, index) => {
    const { call, calls, ask } = await begun();
    const answer = ask('one');
    await turn();

    call(0).send([{ index, answer: 'wrong' }]);
    call(0).send([
      { index, error: new Error('wrong') },
      { index: 1, answer: 'right' },
      { index: 1, answer: 'twice' },
    ]);

    expect(await answer).toBe('right');
    await turn();
    expect(calls).toHaveLength(1);
  });
});

describe('too many pending', () => {
  test('are refused immediately until there is room again', async () => {
    const { call, ask } = await begun();
    const answers = times(MAX_PENDING_REQUESTS, (index) => ask(`No. ${index}`));
    await expect(ask('one too many')).rejects.toMatchObject(UNANSWERED);
    await turn();
    await expect(ask('still')).rejects.toMatchObject(UNANSWERED);

    call(0).answer(1);
    await answers[0];
    const next = ask('next');
    await expect(ask('again')).rejects.toMatchObject(UNANSWERED);
    await turn();
    call(0).answer(...times(MAX_PENDING_REQUESTS, (index) => 2 + index));

    expect(await next).toBe('answer to next');
    expect(await Promise.all(answers)).toEqual(answers.map((_, index) => `answer to No. ${index}`));
    expect(call(0).requests).not.toContain('one too many');
  });

  test.each<[string, (call: OtherSide) => void]>([
    ['deadlines', () => vi.advanceTimersByTime(TIMEOUT_MS)],
    ['a call that fails', (call) => call.end(new Error('cut off'))],
    [
      'refusals',
      (call) => call.send(times(MAX_PENDING_REQUESTS, (index) => ({ index: 1 + index, error: new Error('refused') }))),
    ],
  ])('make room one by one by %s', async (_, end) => {
    const { calls, call, ask } = await begun();
    for (const round of times(3, (each) => each)) {
      const answers = times(MAX_PENDING_REQUESTS, (index) => ask(`${round} ${index}`));
      await expect(ask('one too many')).rejects.toThrow();
      await turn();
      const current = calls.at(-1) as OtherSide;
      if (round === 0) end(current);
      else current.answer(...times(current.requests.length, (index) => index));
      const outcomes = await Promise.allSettled(answers);
      expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set([round === 0 ? 'rejected' : 'fulfilled']));
    }
    expect(call(0).requests).toHaveLength(calls.length === 1 ? 1 + 3 * MAX_PENDING_REQUESTS : 1 + MAX_PENDING_REQUESTS);
  });
});

describe('a call that fails', () => {
  test('fails what it carried with its error, and what was only gathered is sent over the next one', async () => {
    const { calls, call, ask } = await begun();
    const carried = [ask('one'), ask('two')];
    await turn();
    const failure = new Error('cut off');

    call(0).end(failure);
    const gathered = ask('three');
    for (const each of carried) await expect(each).rejects.toBe(failure);
    await turn();

    expect(calls).toHaveLength(2);
    expect(call(1).requests).toEqual(['three']);
    call(1).answer(0);
    expect(await gathered).toBe('answer to three');
    expect(call(0).hasAll).toBe(true);
  });

  test('keeps the results that came before', async () => {
    const { call, ask } = await begun();
    const [one, two] = [ask('one'), ask('two')];
    await turn();

    call(0).answer(1);
    call(0).end(new Error('cut off'));

    expect(await one).toBe('answer to one');
    await expect(two).rejects.toThrow('cut off');
  });

  test('before it has carried anything fails all that waits for it, and the next request starts another', async () => {
    let isAway = true;
    let begins = 0;
    const batcher = new ExchangeBatcher<string, string>(
      async function* (messages) {
        begins += 1;
        if (isAway) throw new Error(`away ${begins}`);
        for await (const message of messages) yield message.map(({ request }, index) => ({ index, answer: request }));
      },
      { timeoutMs: TIMEOUT_MS, maxPerMessage: 64 },
    );

    const refused = await Promise.allSettled(times(100, (index) => batcher.send(`${index}`, 'id')));
    expect(new Set(refused.map((each) => each.status === 'rejected' && each.reason.message))).toEqual(
      new Set(['away 1']),
    );
    await expect(batcher.send('again', 'id')).rejects.toThrow('away 2');

    isAway = false;
    expect(await batcher.send('at last', 'id')).toBe('at last');
    expect(begins).toBe(3);
  });

  test('repeatedly fails each request once, and no later ones', async () => {
    const { calls, ask } = controlled();
    for (const round of times(20, (each) => each)) {
      const answer = ask(`${round}`);
      await turn();
      calls.at(-1)?.end(new Error(`cut off ${round}`));
      await expect(answer).rejects.toThrow(`cut off ${round}`);
    }
    expect(calls).toHaveLength(20);
    expect(calls.map(({ requests }) => requests)).toEqual(times(20, (round) => [`${round}`]));
  });
});

describe('a call that the other side ends', () => {
  test('when idle is replaced at the next request', async () => {
    const { calls, call, ask } = await begun();
    call(0).end();
    await turn();
    expect(call(0).hasAll).toBe(true);
    expect(calls).toHaveLength(1);

    const answer = ask('next');
    await turn();
    call(1).answer(0);
    expect(await answer).toBe('answer to next');
  });

  test('did not process what has no result: that is sent over another one, with all that came since', async () => {
    const { calls, call, ask } = await begun();
    const [one, two, three] = [ask('one'), ask('two'), ask('three')];
    await turn();
    call(0).answer(2);
    call(0).end();
    const four = ask('four');
    await turn();

    expect(calls).toHaveLength(2);
    expect(call(1).requests.toSorted()).toEqual(['four', 'one', 'three']);
    call(1).answer(0, 1, 2);
    expect(await Promise.all([one, two, three, four])).toEqual(
      ['one', 'two', 'three', 'four'].map((name) => `answer to ${name}`),
    );
  });

  test('three times is not retried: what it never processed fails', async () => {
    const { calls, call, ask } = await begun();
    const answer = ask('one');
    for (const attempt of times(3, (each) => each)) {
      await turn();
      expect(call(attempt).requests.at(-1)).toBe('one');
      call(attempt).end();
    }

    await expect(answer).rejects.toMatchObject(UNANSWERED);
    await turn();
    expect(calls).toHaveLength(3);
  });

  test('does not get a timed-out request again', async () => {
    const { calls, call, ask } = await begun();
    const answer = ask('one');
    await turn();
    vi.advanceTimersByTime(TIMEOUT_MS);
    await expect(answer).rejects.toMatchObject(UNANSWERED);

    call(0).end();
    await turn();

    expect(calls.slice(1).flatMap(({ requests }) => requests)).toEqual([]);
    for (const each of calls) each.end();
    await turn();
  });

  test('before it has read anything fails what waits for it', async () => {
    const batcher = new ExchangeBatcher<string, string>(async function* () {}, {
      timeoutMs: TIMEOUT_MS,
      maxPerMessage: 64,
    });

    await expect(batcher.send('one', 'id')).rejects.toMatchObject(UNANSWERED);
    await expect(batcher.send('two', 'id')).rejects.toMatchObject(UNANSWERED);
  });
});

test('a call is replaced before it has carried too much, and no request is lost or gets the result of another', async () => {
  vi.useRealTimers();
  const carried: number[] = [];
  let open = 0;
  const batcher = new ExchangeBatcher<number, number>(
    async function* (messages) {
      const call = carried.push(0) - 1;
      open += 1;
      for await (const message of messages) {
        const from = carried[call] as number;
        carried[call] = from + message.length;
        yield message.map(({ request }, index) => ({ index: from + index, answer: request * 2 }));
      }
      open -= 1;
    },
    { timeoutMs: TIMEOUT_MS, maxPerMessage: 64 },
  );
  const count = MAX_IN_CALL + 100_000;
  let wrong = 0;

  for (let asked = 0; asked < count; asked += 2000) {
    const answers = await Promise.all(times(2000, (index) => batcher.send(asked + index, 'id')));
    wrong += answers.filter((answer, index) => answer !== 2 * (asked + index)).length;
  }

  expect(wrong).toBe(0);
  expect(carried).toHaveLength(2);
  expect(carried[0]).toBeGreaterThanOrEqual(MAX_IN_CALL);
  expect(carried[0]).toBeLessThan(MAX_IN_CALL + 100);
  expect((carried[0] ?? 0) + (carried[1] ?? 0)).toBe(count);
  await turn();
  expect(open).toBe(1);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
}, 60_000);
