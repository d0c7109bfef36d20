/*
 * The states of a call, and the events that change them:
 *
 *   Opening   sends → Serving, ends → Lost, fails → Lost
 *   Serving   stalls → Draining, ends → Lost, fails → Lost
 *   Draining  empties → Lost, ends → Lost, fails → Lost
 *   Lost
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { Condition } from '../../common/condition.ts';
import { isUnprocessed, MAX_ATTEMPTS } from '../../common/core-connection.ts';
import { BrokenInvariant } from '../../common/invariants.ts';
import type { ExchangeItemSchema, ExchangeResult } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import type { Exchange } from './exchange-calls.ts';

/** The maximum number of requests in a message: enough to share its cost. */
const MAX_PER_MESSAGE = 32;

/** The maximum number of pending requests. Further ones are rejected. */
export const MAX_PENDING_REQUESTS = 2048;

/** Reports that a request got no response: it timed out, or the core accepts no requests. */
export class NoResponse extends Error {}

/** Reports that a request was not begun. */
export class TooManyPending extends Error {}

export type Item = MessageInitShape<typeof ExchangeItemSchema>;

/** The cost of a request, and its group, such as a studio. Groups take turns. */
export interface Share {
  readonly group: string;
  readonly weight: number;
}

/** A request without a response, which waits in a queue or was sent on a call. */
interface Request {
  readonly item: Item;
  readonly share: Share;
  readonly timer: NodeJS.Timeout;
  readonly resolve: (result: ExchangeResult) => void;
  readonly reject: (error: unknown) => void;
  attempts: number;
  sent: { readonly call: Call; readonly index: number } | undefined;
}

interface Call {
  state: CallState;
  readonly cutOff: AbortController;
  /** Notified when there may be requests to send, or the call is lost. */
  readonly changed: Condition;
}

interface Serving {
  readonly kind: 'Serving';
  /** Requests without a result, by their index among all requests of the call. */
  readonly sent: Map<number, Request>;
  sentCount: number;
  sentWeight: number;
  /** How many requests were sent before the last result arrived. */
  sentBeforeResult: number;
}

export type CallState =
  /** Nothing was sent yet. */
  | { readonly kind: 'Opening' }
  | Serving
  /** The call takes no more requests, but these may still get results. */
  | { readonly kind: 'Draining'; readonly sent: Serving['sent'] }
  | { readonly kind: 'Lost' };

/**
 * - `sends`: requests are sent
 * - `stalls`: a request is late, and no result has arrived since it was sent
 * - `empties`: the last request without a result is settled
 * - `ends`: the core accepts no more requests, and has not processed the unanswered ones
 * - `fails`: the call is cut off or refused, and the outcome of its requests is unknown
 */
export type CallEvent = 'sends' | 'stalls' | 'empties' | 'ends' | 'fails';

const stay = <State>(state: State) => state;
const serve = (): CallState => ({ kind: 'Serving', sent: new Map(), sentCount: 0, sentWeight: 0, sentBeforeResult: 0 });
const drain = ({ sent }: Serving): CallState => ({ kind: 'Draining', sent });
const lose = (): CallState => ({ kind: 'Lost' });

const TRANSITIONS = {
  Opening: { sends: serve, stalls: stay, empties: stay, ends: lose, fails: lose },
  Serving: { sends: stay, stalls: drain, empties: stay, ends: lose, fails: lose },
  Draining: { sends: stay, stalls: stay, empties: lose, ends: lose, fails: lose },
  Lost: { sends: stay, stalls: stay, empties: stay, ends: stay, fails: stay },
} satisfies { [State in CallState as State['kind']]: Record<CallEvent, (state: State) => CallState> };

export const next = (state: CallState, event: CallEvent): CallState =>
  (TRANSITIONS[state.kind][event] as (state: CallState) => CallState)(state);

interface Options {
  readonly timeoutMs: number;
  /** While unanswered requests have this weight together, further ones wait in their queues. */
  readonly maxSentWeight?: number | undefined;
  /** Called with the number of requests in each message. */
  readonly onMessage?: (size: number) => void;
}

/**
 * Sends requests over one long-lived call, because opening a call costs far more than a request. Requests that arrive in one turn of the
 * event loop share a message. Each gets its own result, and no request waits for others to fill a message.
 */
export class ExchangeBatcher {
  readonly #exchange: Exchange;
  readonly #options: Options;
  /** Queued requests, by group. Insertion order is the order of turns. */
  readonly #queues = new Map<string, Set<Request>>();
  /** The newest call, the only one that may take requests. */
  #call: Call | undefined;
  #pending = 0;
  readonly #pendingByGroup = new Map<string, number>();

  constructor(exchange: Exchange, options: Options) {
    this.#exchange = exchange;
    this.#options = options;
  }

  /** The number of requests without a response. */
  get pending(): number {
    return this.#pending;
  }

  /** Returns the number of a group's requests without a response. */
  countPending(group: string): number {
    return this.#pendingByGroup.get(group) ?? 0;
  }

  /** @throws TooManyPending, NoResponse, or the error of the call */
  send(item: Item, share: Share = { group: '', weight: 0 }): Promise<ExchangeResult> {
    // Load shedding does not suffice: many may come at once, for example after a shared key look-up.
    if (this.#pending >= MAX_PENDING_REQUESTS) return Promise.reject(new TooManyPending());
    const { promise, resolve, reject } = Promise.withResolvers<ExchangeResult>();
    const timer = setTimeout(() => this.#giveUp(request), this.#options.timeoutMs);
    const request: Request = { item, share, timer, resolve, reject, attempts: 0, sent: undefined };
    this.#count(share, 1);
    this.#enqueue(request);
    this.#flush();
    return promise;
  }

  /** Settles a late request. */
  #giveUp(request: Request): void {
    const { call, index = 0 } = request.sent ?? {};
    // A balancer may keep a call whose core has vanished, and route the next call to another core.
    const hasStalled = call?.state.kind === 'Serving' && index >= call.state.sentBeforeResult;
    if (hasStalled) call.state = next(call.state, 'stalls');
    this.#settle(request, new NoResponse(`no response within ${this.#options.timeoutMs} ms`));
    // In the next turn of the event loop, because requests that came together are late together.
    setImmediate(() => this.#flush());
  }

  /** Settles a request with its result or, without one, with the error. */
  #settle(request: Request, error: unknown, result?: ExchangeResult): void {
    clearTimeout(request.timer);
    const isCounted = this.#count(request.share, -1);
    if (!request.sent) this.#dequeue(request);
    const { call, index = 0 } = request.sent ?? {};
    if (call && 'sent' in call.state && call.state.sent.delete(index)) {
      if (call.state.kind === 'Serving') call.state.sentWeight -= request.share.weight;
      // Queued requests may have waited for this one.
      if (this.#queues.size > 0) call.changed.notify();
      if (call.state.sent.size === 0) call.state = next(call.state, 'empties');
      if (call.state.kind === 'Lost') call.cutOff.abort();
    }
    // Rejected instead of thrown, because a timer may have called this.
    if (!isCounted) request.reject(new BrokenInvariant('pending_not_negative'));
    else if (result) request.resolve(result);
    else request.reject(error);
  }

  /** Adjusts the counts of pending requests. Returns whether they are still valid, so not below 0. */
  #count({ group }: Share, sign: 1 | -1): boolean {
    this.#pending += sign;
    const count = this.countPending(group) + sign;
    if (count > 0) this.#pendingByGroup.set(group, count);
    else this.#pendingByGroup.delete(group);
    return this.#pending >= 0 && count >= 0;
  }

  #enqueue(request: Request): void {
    const { group } = request.share;
    request.sent = undefined;
    this.#queues.set(group, (this.#queues.get(group) ?? new Set()).add(request));
  }

  #dequeue(request: Request): void {
    const { group } = request.share;
    const queue = this.#queues.get(group);
    if (queue?.delete(request) && queue.size === 0) this.#queues.delete(group);
  }

  /** Sends the queued requests, over a new call if the last one takes none. */
  #flush(): void {
    if (this.#queues.size === 0) return;
    if (this.#call?.state.kind !== 'Opening' && this.#call?.state.kind !== 'Serving') {
      this.#call = { state: { kind: 'Opening' }, cutOff: new AbortController(), changed: new Condition(setImmediate) };
      this.#run(this.#call);
    }
    this.#call.changed.notify();
  }

  async #run(call: Call): Promise<void> {
    let event: CallEvent = 'ends';
    let error: unknown = new NoResponse('the core accepts no requests');
    try {
      for await (const { results } of this.#exchange(this.#messages(call), call.cutOff.signal)) {
        if (call.state.kind === 'Serving') call.state.sentBeforeResult = call.state.sentCount;
        for (const result of results) {
          const request = 'sent' in call.state && call.state.sent.get(result.index);
          if (request) this.#settle(request, undefined, result);
        }
      }
    } catch (thrown) {
      if (!isUnprocessed(thrown)) [event, error] = ['fails', thrown];
    }
    const { state } = call;
    call.state = next(state, event);
    call.changed.notify();
    if ('sent' in state) {
      for (const request of state.sent.values()) {
        if (event === 'ends' && request.attempts < MAX_ATTEMPTS) this.#enqueue(request);
        else this.#settle(request, error);
      }
    } else if (state.kind === 'Opening') {
      // A new call would fail for the queued requests, too.
      for (const queue of this.#queues.values()) for (const request of queue) this.#settle(request, error);
    }
    this.#flush();
  }

  /** Yields the queued requests in messages until the call is lost. */
  async *#messages(call: Call): AsyncGenerator<{ items: Item[] }> {
    while (call.state.kind !== 'Lost') {
      const items = this.#nextItems(call);
      if (items.length === 0) await call.changed.wait();
      else {
        this.#options.onMessage?.(items.length);
        yield { items };
      }
    }
  }

  /** Takes requests from the queues for a message, one of each group in turn. */
  #nextItems(call: Call): Item[] {
    const { maxSentWeight = Number.POSITIVE_INFINITY } = this.#options;
    const items: Item[] = [];
    const state = next(call.state, 'sends');
    if (state.kind !== 'Serving') return items;
    for (const [group, queue] of this.#queues) {
      if (items.length === MAX_PER_MESSAGE || state.sentWeight >= maxSentWeight) break;
      call.state = state;
      const request = queue.values().next().value as Request;
      this.#dequeue(request);
      // Moves the group behind all others.
      if (this.#queues.delete(group)) this.#queues.set(group, queue);
      request.attempts += 1;
      request.sent = { call, index: state.sentCount };
      state.sent.set(state.sentCount, request);
      state.sentCount += 1;
      state.sentWeight += request.share.weight;
      items.push(request.item);
    }
    return items;
  }
}
