import { describe, expect, test, vi } from 'vitest';
import {
  ExchangeBatcher,
  NoResponse,
  type Result,
  type Share,
  TooManyPending,
} from '../../gateway/core/exchange-batcher.ts';
import { times } from '../support/builders.ts';
import { expectNoTimerLeft } from '../support/own-timers.ts';

/** The timeout of a request; milliseconds. No other timer of the process has this length. */
const TIMEOUT_MS = 5003;

/** The maximum number of pending requests. */
const MAX_PENDING_REQUESTS = 2048;

/** The other side of one call, controlled by the test. */
class OtherSide {
  /** The messages read so far. */
  readonly messages: string[][] = [];
  /** Whether the batcher has ended the request. */
  hasAll = false;
  readonly #signal: AbortSignal;
  readonly #incoming: AsyncIterable<string[]>;
  readonly #outgoing: (readonly Result<string>[])[] = [];
  #end: { readonly error?: unknown } | undefined;
  #wake = () => {};

  constructor(messages: AsyncIterable<string[]>, signal: AbortSignal) {
    this.#incoming = messages;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.end(new Error('cut off')));
  }

  /** Whether the batcher has cut it off. */
  get isCutOff(): boolean {
    return this.#signal.aborted;
  }

  /** Starts to read messages. */
  async read(): Promise<void> {
    for await (const message of this.#incoming) this.messages.push(message);
    this.hasAll = true;
  }

  /** The requests read so far, in order. */
  get requests(): string[] {
    return this.messages.flat();
  }

  /** Sends results for requests by their indices in the call. */
  answer(...indexes: readonly number[]): void {
    const { requests } = this;
    this.send(indexes.map((index) => ({ index, answer: `answer to ${requests[index]}` })));
  }

  send(results: readonly Result<string>[]): void {
    this.#outgoing.push(results);
    this.#wake();
  }

  /** Ends the call after the results sent so far, optionally with an error. */
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
 * A batcher, and the other side of each of its calls in the order in which they started.
 *
 * @param reads whether the other side reads the first call from its start
 * @param maxSentWeight how much the batcher sends before there are results
 */
function controlled({ reads = true, maxSentWeight }: { reads?: boolean; maxSentWeight?: number } = {}) {
  const calls: OtherSide[] = [];
  const batcher = new ExchangeBatcher<string, string>(
    (messages, signal) => {
      const call = new OtherSide(messages, signal);
      if (calls.push(call) > 1 || reads) call.read();
      return call.results();
    },
    TIMEOUT_MS,
    maxSentWeight,
  );
  const submit = (request: string, share?: Share) => {
    const answer = batcher.send(request, share);
    // Awaited later, or not at all.
    answer.catch(() => {});
    return answer;
  };
  const call = (index: number) => calls[index] as OtherSide;
  return { calls, call, submit, pendingOf: (group: string) => batcher.pendingOf(group) };
}

/** Waits for the end of this turn of the event loop and the next ones. */
async function turn(): Promise<void> {
  for (const _ of times(3, () => 0)) await new Promise(setImmediate);
}

/** A batcher whose call has started and has had one result. */
async function begun(options: { maxSentWeight?: number } = {}) {
  const all = controlled(options);
  const first = all.submit('first');
  await turn();
  all.call(0).answer(0);
  await first;
  return all;
}

const NO_RESPONSE = { constructor: NoResponse };

expectNoTimerLeft(TIMEOUT_MS);

describe('a batcher with a bound on what is sent and has no result', () => {
  // @proves bounds-18
  test('sends no more before there are results, and groups take turns meanwhile', async () => {
    const { call, submit, pendingOf } = await begun({ maxSentWeight: 100 });
    const submitAll = (group: string, weight: number, count: number) =>
      times(count, (index) => submit(`${group}${index}`, { group, weight }));
    const filling = submit('filling', { group: 'x', weight: 100 });
    await turn();

    const waiting = [...submitAll('a', 10, 200), ...submitAll('b', 10, 2)];
    await turn();
    expect(call(0).requests).toEqual(['first', 'filling']);
    expect([pendingOf('a'), pendingOf('b'), pendingOf('c')]).toEqual([200, 2, 0]);
    call(0).answer(1);
    await filling;
    await turn();

    // The last request of a message may exceed the bound.
    expect(call(0).messages.map(({ length }) => length)).toEqual([1, 1, 10]);
    expect(call(0).requests.slice(2, 7)).toEqual(['a0', 'b0', 'a1', 'b1', 'a2']);
    while (call(0).requests.length < 204) {
      call(0).answer(...times(call(0).requests.length, (index) => index).slice(2));
      await turn();
    }
    call(0).answer(...times(204, (index) => index).slice(2));
    await Promise.all(waiting);
    expect(pendingOf('a')).toBe(0);
  });

  test('goes on when what was sent gets no result in time', async () => {
    const { call, submit } = await begun({ maxSentWeight: 1 });
    const lost = submit('lost', { group: 'a', weight: 1 });
    await turn();
    const next = submit('next', { group: 'b', weight: 1 });

    vi.advanceTimersByTime(TIMEOUT_MS - 1);
    const late = submit('late', { group: 'b', weight: 1 });
    vi.advanceTimersByTime(1);
    await expect(lost).rejects.toMatchObject(NO_RESPONSE);
    await expect(next).rejects.toMatchObject(NO_RESPONSE);
    await turn();

    expect(call(0).requests).toEqual(['first', 'lost']);
    expect(call(1).requests).toEqual(['late']);
    call(1).answer(0);
    expect(await late).toBe('answer to late');
  });
});

describe('batching', () => {
  test('requests of one turn share messages of at most 32', async () => {
    const { call, submit } = await begun();

    const names = times(150, (index) => `No. ${index}`);
    const answers = names.map((name) => submit(name));
    await turn();

    expect(
      call(0)
        .messages.slice(1)
        .map(({ length }) => length),
    ).toEqual([32, 32, 32, 32, 22]);
    expect(call(0).requests.slice(1)).toEqual(names);
    // The results come in another order, some together.
    for (let index = 150; index > 0; index -= 3) call(0).answer(index, index - 2, index - 1);
    expect(await Promise.all(answers)).toEqual(names.map((name) => `answer to ${name}`));
  });
});

// @proves exchange-1
describe('deadlines', () => {
  // @proves bounds-19
  test('a request without a result in time fails, and others get theirs', async () => {
    const { call, submit } = await begun();
    const slow = submit('slow');
    await turn();
    vi.advanceTimersByTime(TIMEOUT_MS - 1);
    const later = submit('later');
    await turn();

    vi.advanceTimersByTime(1);
    await expect(slow).rejects.toMatchObject(NO_RESPONSE);
    call(0).answer(2);
    expect(await later).toBe('answer to later');
  });

  // @proves exchange-10
  test.each([undefined, 100])(
    'a call without a result meanwhile is left to what it has, and ends with that: bound of what is sent %s',
    async (maxSentWeight) => {
      const { calls, call, submit } = await begun(maxSentWeight === undefined ? {} : { maxSentWeight });
      const share = { group: 'a', weight: 40 };
      const slow = submit('slow', share);
      await turn();
      vi.advanceTimersByTime(TIMEOUT_MS - 1);
      const meanwhile = [submit('one', share), submit('two', share)];
      await turn();
      const unsent = [submit('three', share), submit('four', share)];
      vi.advanceTimersByTime(1);
      await expect(slow).rejects.toMatchObject(NO_RESPONSE);
      const next = submit('next', share);
      await turn();

      expect(calls).toHaveLength(2);
      expect(call(1).requests.at(-1)).toBe('next');
      call(0).answer(2);
      expect(await meanwhile[0]).toBe('answer to one');
      call(1).answer(...call(1).requests.keys());
      await next;
      expect(call(0).isCutOff).toBe(false);
      vi.advanceTimersByTime(TIMEOUT_MS - 1);
      await Promise.allSettled([...meanwhile, ...unsent]);
      await turn();
      expect([call(0).isCutOff, call(0).hasAll]).toEqual([true, true]);
      expect(call(1).isCutOff).toBe(false);
    },
  );

  test('a call goes on that has had a result meanwhile', async () => {
    const { calls, call, submit } = await begun();
    const slow = submit('slow');
    const other = submit('other');
    await turn();
    call(0).answer(2);
    await other;
    vi.advanceTimersByTime(TIMEOUT_MS);
    await expect(slow).rejects.toMatchObject(NO_RESPONSE);
    const next = submit('next');
    await turn();
    call(0).answer(3);
    expect(await next).toBe('answer to next');
    expect(calls).toHaveLength(1);
  });

  test('a request that was not sent in time is not sent at all', async () => {
    const { call, submit } = controlled({ reads: false });
    const late = times(100, (index) => submit(`late ${index}`));
    vi.advanceTimersByTime(TIMEOUT_MS);
    for (const each of late) await expect(each).rejects.toMatchObject(NO_RESPONSE);
    const inTime = submit('in time');

    call(0).read();
    await turn();

    expect(call(0).messages).toEqual([['in time']]);
    call(0).answer(0);
    expect(await inTime).toBe('answer to in time');
  });
});

// @proves exchange-9
describe('too many pending', () => {
  // @proves bounds-17
  test('are refused immediately until there is room again', async () => {
    const { call, submit } = await begun();
    const answers = times(MAX_PENDING_REQUESTS, (index) => submit(`No. ${index}`));
    await expect(submit('one too many')).rejects.toThrow(TooManyPending);
    await turn();
    await expect(submit('still')).rejects.toThrow(TooManyPending);

    call(0).answer(1);
    await answers[0];
    const next = submit('next');
    await expect(submit('again')).rejects.toThrow(TooManyPending);
    await turn();
    call(0).answer(...times(MAX_PENDING_REQUESTS, (index) => 2 + index));

    expect(await next).toBe('answer to next');
    expect(await Promise.all(answers)).toEqual(answers.map((_, index) => `answer to No. ${index}`));
    expect(call(0).requests).not.toContain('one too many');
  });

  test.each<[string, (call: OtherSide) => void]>([
    ['deadlines', () => vi.advanceTimersByTime(TIMEOUT_MS)],
    ['a call that fails', (call) => call.end(new Error('cut off'))],
    ['refusals', (call) => call.send(times(MAX_PENDING_REQUESTS, (at) => ({ index: 1 + at, error: new Error('no') })))],
  ])('make room one by one by %s', async (_, end) => {
    const { calls, submit } = await begun();
    for (const endRound of [end, (call: OtherSide) => call.answer(...call.requests.keys())]) {
      const answers = times(MAX_PENDING_REQUESTS, (index) => submit(`${index}`));
      await expect(submit('one too many')).rejects.toThrow();
      await turn();
      endRound(calls.at(-1) as OtherSide);
      const [outcome] = await Promise.allSettled(answers);
      expect(outcome?.status).toBe(endRound === end ? 'rejected' : 'fulfilled');
    }
  });
});

describe('a call that the other side ends', () => {
  test('is replaced by another one with all requests that have no result and all later ones', async () => {
    const { calls, call, submit } = await begun();
    const [one, two, three] = [submit('one'), submit('two'), submit('three')];
    await turn();
    call(0).answer(2);
    call(0).end();
    const four = submit('four');
    await turn();

    expect(calls).toHaveLength(2);
    expect(call(1).requests.toSorted()).toEqual(['four', 'one', 'three']);
    call(1).answer(0, 1, 2);
    expect(await Promise.all([one, two, three, four])).toEqual(
      ['one', 'two', 'three', 'four'].map((name) => `answer to ${name}`),
    );
  });
});
