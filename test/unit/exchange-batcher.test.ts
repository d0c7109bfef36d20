import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import {
  type CallEvent,
  type CallState,
  ExchangeBatcher,
  NoResponse,
  next,
  type Share,
  TooManyPending,
} from '../../gateway/core/exchange-batcher.ts';
import type { Exchange } from '../../gateway/core/exchange-calls.ts';
import { type ExchangeResponse, ExchangeResponseSchema } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { times } from '../support/builders.ts';
import { expectNoTimerLeft } from '../support/own-timers.ts';
import { ROOT } from '../tools/processes.ts';

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
  readonly #incoming: Parameters<Exchange>[0];
  readonly #outgoing: ExchangeResponse[] = [];
  #end: { readonly error?: unknown } | undefined;
  #wake = () => {};

  constructor(...[messages, signal]: Parameters<Exchange>) {
    this.#incoming = messages;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.end(new Error('cut off')));
  }

  /** Whether the batcher has aborted the call. */
  get isCutOff(): boolean {
    return this.#signal.aborted;
  }

  /** Starts to read messages. */
  async read(): Promise<void> {
    for await (const { items = [] } of this.#incoming) this.messages.push(items.map(({ requestId = '' }) => requestId));
    this.hasAll = true;
  }

  /** The requests read so far, in order. */
  get requests(): string[] {
    return this.messages.flat();
  }

  /** Sends results for requests by their indices in the call. */
  answer(...indexes: readonly number[]): void {
    const { requests } = this;
    this.send(indexes.map((index) => ({ index, leadId: `answer to ${requests[index]}` })));
  }

  send(results: NonNullable<MessageInitShape<typeof ExchangeResponseSchema>['results']>): void {
    this.#outgoing.push(create(ExchangeResponseSchema, { results }));
    this.#wake();
  }

  /** Ends the call after the results sent so far, optionally with an error. */
  end(error?: unknown): void {
    this.#end = error === undefined ? {} : { error };
    this.#wake();
  }

  async *results(): AsyncGenerator<ExchangeResponse> {
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
 * Returns a batcher, and the other side of each of its calls in starting order.
 *
 * @param reads whether the other side reads the first call from its start
 * @param maxSentWeight how much the batcher sends before it gets results
 */
function controlled({ reads = true, maxSentWeight }: { reads?: boolean; maxSentWeight?: number } = {}) {
  const calls: OtherSide[] = [];
  const exchange: Exchange = (messages, signal) => {
    const call = new OtherSide(messages, signal);
    if (calls.push(call) > 1 || reads) call.read();
    return call.results();
  };
  const batcher = new ExchangeBatcher(exchange, { timeoutMs: TIMEOUT_MS, maxSentWeight });
  const submit = (requestId: string, share?: Share) => {
    const answer = batcher.send({ requestId }, share).then(({ leadId, outcome }) => {
      if (outcome.case === 'error') throw outcome.value;
      return leadId;
    });
    // Tests await the answer later or not at all.
    answer.catch(() => {});
    return answer;
  };
  const call = (index: number) => calls[index] as OtherSide;
  return { batcher, calls, call, submit, countPending: (group: string) => batcher.countPending(group) };
}

/** Waits until this turn of the event loop and the next two have ended. */
async function turn(): Promise<void> {
  for (const _ of times(3, () => 0)) await new Promise(setImmediate);
}

/** Returns a batcher whose call has started and has had one result. */
async function begun(options: { maxSentWeight?: number } = {}) {
  const all = controlled(options);
  const first = all.submit('first');
  await turn();
  all.call(0).answer(0);
  await first;
  return all;
}

expectNoTimerLeft(TIMEOUT_MS);

describe('a batcher with a bound on the requests in flight', () => {
  // @proves bounds-18
  test('a batcher at its bound sends nothing before results arrive, and then lets groups alternate', async () => {
    const { call, submit, countPending } = await begun({ maxSentWeight: 100 });
    const submitAll = (group: string, weight: number, count: number) =>
      times(count, (index) => submit(`${group}${index}`, { group, weight }));
    const filling = submit('filling', { group: 'x', weight: 100 });
    await turn();

    const waiting = [...submitAll('a', 10, 200), ...submitAll('b', 10, 2)];
    await turn();
    expect(call(0).requests).toEqual(['first', 'filling']);
    expect([countPending('a'), countPending('b'), countPending('c')]).toEqual([200, 2, 0]);
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
    expect(countPending('a')).toBe(0);
  });
});

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
  // The results come in a different order, some together.
  for (let index = 150; index > 0; index -= 3) call(0).answer(index, index - 2, index - 1);
  expect(await Promise.all(answers)).toEqual(names.map((name) => `answer to ${name}`));
});

// @proves crashes-8
describe('too many pending', () => {
  // @proves bounds-17
  test('too many pending requests are refused immediately until there is room again', async () => {
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
});

describe('the states of a call', () => {
  const states: { readonly [State in CallState as State['kind']]: State } = {
    Opening: { kind: 'Opening' },
    Serving: { kind: 'Serving', sent: new Map(), sentCount: 0, sentWeight: 0, sentBeforeResult: 0 },
    Draining: { kind: 'Draining', sent: new Map() },
    Lost: { kind: 'Lost' },
  };
  const events: Record<CallEvent, true> = { sends: true, stalls: true, empties: true, ends: true, fails: true };

  /** With --update, this test writes the diagram. */
  test('the header comment of the batcher shows every event that changes the state of a call', async () => {
    const lines = Object.values(states).map((state) => {
      const changes = (Object.keys(events) as CallEvent[])
        .map((event) => ({ event, to: next(state, event).kind }))
        .filter(({ to }) => to !== state.kind);
      return ` *   ${state.kind.padEnd(9)} ${changes.map(({ event, to }) => `${event} → ${to}`).join(', ')}`.trimEnd();
    });
    const path = join(ROOT, 'gateway/core/exchange-batcher.ts');
    const drawn = readFileSync(path, 'utf8').replace(/( \* {3}\w.*\n)+/, `${lines.join('\n')}\n`);
    await expect(drawn).toMatchFileSnapshot(path);
  });
});

/** The maximum number of times that a request is sent. */
const MAX_ATTEMPTS = 5;

/** The ways in which the other side may end a call. */
const ENDS = ['accepts no more', 'refuses it unprocessed', 'fails'] as const;

/** A request in the model of a batcher. */
interface ModelRequest extends Share {
  readonly name: string;
  readonly dueAt: number;
  /** The call on which it was sent last, and its index there. */
  sent?: { readonly at: number; readonly index: number } | undefined;
  attempts: number;
  outcome?: unknown;
}

/** Controls both sides of a batcher and predicts its behaviour. */
class Model {
  readonly #all: ReturnType<typeof controlled>;
  readonly #maxSentWeight: number;
  #isRead: boolean;
  readonly #requests: ModelRequest[] = [];
  readonly #calls: { readSoFar: number; sentBeforeResult: number; takesRequests: boolean; isOver: boolean }[] = [];
  readonly #outcomes = new Map<string, unknown>();
  #now = 0;

  constructor(reads: boolean, maxSentWeight: number) {
    this.#all = controlled({ reads, maxSentWeight });
    this.#isRead = reads;
    this.#maxSentWeight = maxSentWeight;
  }

  send(group: string, weight: number): void {
    const name = `No. ${this.#requests.length}`;
    const settle = (outcome: unknown) => {
      expect(this.#outcomes.has(name)).toBe(false);
      this.#outcomes.set(name, outcome);
    };
    this.#requests.push({ name, group, weight, dueAt: this.#now + TIMEOUT_MS, attempts: 0 });
    this.#all.submit(name, { group, weight }).then(settle, settle);
  }

  /** Starts to read the first call. */
  read(): void {
    if (!this.#isRead && this.#all.calls.length > 0) this.#isRead = Boolean(this.#all.call(0).read());
  }

  /** Sends results for some requests of a call, even if these timed out or have a result. */
  answer(pick: number, which: number): void {
    this.#withOpenCall(pick, (at, call) => {
      const indexes = [...call.requests.keys()].filter((index) => (which >> (index % 31)) & 1);
      if (indexes.length === 0) return;
      call.answer(...indexes);
      Object.assign(this.#calls[at] ?? {}, { sentBeforeResult: call.requests.length });
      const answered = this.#pendingOn(at).filter(({ sent }) => indexes.includes(sent?.index ?? -1));
      for (const request of answered) request.outcome = `answer to ${request.name}`;
    });
  }

  end(pick: number, how: (typeof ENDS)[number]): void {
    this.#withOpenCall(pick, (at, call) => {
      const hasBegun = call.requests.length > 0;
      const error = new Error(how === 'fails' ? how : 'Stream closed with error code NGHTTP2_REFUSED_STREAM');
      call.end(how === 'accepts no more' ? undefined : error);
      for (const request of this.#pendingOn(hasBegun ? at : undefined)) {
        request.sent = undefined;
        if (how === 'fails') request.outcome = error;
        else if (!hasBegun || request.attempts === MAX_ATTEMPTS) request.outcome = NoResponse;
      }
      Object.assign(this.#calls[at] ?? {}, { takesRequests: false, isOver: true });
    });
  }

  pass(ms: number): void {
    this.#now += ms;
    vi.advanceTimersByTime(ms);
    for (const request of this.#pending.filter(({ dueAt }) => dueAt <= this.#now)) {
      request.outcome = NoResponse;
      const { at = -1, index = 0 } = request.sent ?? {};
      const call = this.#calls[at];
      if (call && index >= call.sentBeforeResult) call.takesRequests = false;
    }
  }

  async turn(): Promise<void> {
    await turn();
    this.expectAsPredicted();
    const at = this.#calls.findIndex(({ takesRequests }) => takesRequests);
    const sentWeight = this.#pendingOn(at).reduce((sum, { weight }) => sum + weight, 0);
    const mayWait = sentWeight >= this.#maxSentWeight || (at === 0 && !this.#isRead);
    if (!mayWait) expect(this.#pendingOn(undefined)).toEqual([]);
  }

  expectAsPredicted(): void {
    const { batcher, calls, countPending } = this.#all;
    for (const [at, { requests }] of calls.entries()) {
      this.#calls[at] ??= { readSoFar: 0, sentBeforeResult: 0, takesRequests: true, isOver: false };
      const call = this.#calls[at];
      if (!call.takesRequests) expect(requests).toHaveLength(call.readSoFar);
      for (; call.readSoFar < requests.length; call.readSoFar += 1) {
        const request = this.#pendingOn(undefined).find(({ name }) => name === requests[call.readSoFar]);
        Object.assign(request ?? {}, { sent: { at, index: call.readSoFar }, attempts: (request?.attempts ?? 9) + 1 });
        expect(request?.attempts).toBeLessThanOrEqual(MAX_ATTEMPTS);
      }
    }
    for (const [at, call] of this.#calls.entries()) {
      const isDrained = !call.takesRequests && this.#pendingOn(at).length === 0;
      if (!call.isOver) expect(this.#all.call(at).isCutOff).toBe(isDrained);
      call.isOver ||= isDrained;
    }
    expect(this.#calls.filter(({ takesRequests }) => takesRequests).length).toBeLessThanOrEqual(1);
    for (const { name, outcome } of this.#requests) {
      const actual = this.#outcomes.get(name);
      expect(actual instanceof NoResponse ? NoResponse : actual).toBe(outcome);
    }
    expect(batcher.pending).toBe(this.#pending.length);
    for (const own of ['a', 'b'])
      expect(countPending(own)).toBe(this.#pending.filter(({ group }) => group === own).length);
  }

  get #pending(): ModelRequest[] {
    return this.#requests.filter(({ outcome }) => outcome === undefined);
  }

  /** Returns the pending requests that were last sent on a call, or for undefined the unsent ones. */
  #pendingOn(at: number | undefined): ModelRequest[] {
    return this.#pending.filter(({ sent }) => sent?.at === at);
  }

  #withOpenCall(pick: number, act: (at: number, call: OtherSide) => void): void {
    const open = [...this.#calls.keys()].filter((at) => !this.#calls[at]?.isOver);
    const at = open[pick % open.length];
    if (at !== undefined) act(at, this.#all.call(at));
  }
}

// @proves exchange-1 crashes-8 exchange-10 bounds-19
test('a batcher keeps its promises under any sequence of events', async () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.tuple(fc.constant('send'), fc.constantFrom('a', 'b'), fc.nat(3)) },
    { weight: 4, arbitrary: fc.tuple(fc.constant('turn')) },
    { weight: 2, arbitrary: fc.tuple(fc.constant('answer'), fc.nat(), fc.nat()) },
    { weight: 2, arbitrary: fc.tuple(fc.constant('pass'), fc.constantFrom(1, 1000, TIMEOUT_MS / 2)) },
    { weight: 5, arbitrary: fc.tuple(fc.constant('end'), fc.nat(), fc.constantFrom(...ENDS)) },
    fc.tuple(fc.constant('read')),
  );
  const bounds = fc.constantFrom(1, 4, Number.POSITIVE_INFINITY);
  await fc.assert(
    fc.asyncProperty(
      fc.boolean(),
      bounds,
      fc.array(step, { maxLength: 60, size: 'max' }),
      async (reads, maxSentWeight, steps) => {
        const model = new Model(reads, maxSentWeight);
        for (const [name, ...details] of [...steps, ['turn'], ['pass', TIMEOUT_MS], ['turn']]) {
          await (model[name as 'turn'] as (...details: unknown[]) => unknown).apply(model, details);
          // Lets all promises settle.
          for (const _ of times(50, () => 0)) await undefined;
          model.expectAsPredicted();
        }
      },
    ),
    { numRuns: 200 },
  );
});
