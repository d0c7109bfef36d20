import { MAX_ATTEMPTS } from '../../common/core-connection.ts';
import { BrokenInvariant } from '../../common/invariants.ts';

/** The maximum number of requests in a message: enough to share its cost. */
const MAX_PER_MESSAGE = 32;

/** The maximum number of pending requests; further ones are rejected. */
export const MAX_PENDING_REQUESTS = 2048;

type Outcome<Answer> = { readonly answer: Answer } | { readonly error: unknown };

/** The result of a request, which is identified by its index among all requests of the call. */
export type Result<Answer> = { readonly index: number } & Outcome<Answer>;

/**
 * Opens a bidirectional stream of requests and results, until the signal cuts it off. The stream ends without an error when
 * the peer accepts no more requests; the peer has then not processed the requests without a result.
 */
type OpenCall<Request, Answer> = (
  messages: AsyncIterable<Request[]>,
  signal: AbortSignal,
) => AsyncIterable<readonly Result<Answer>[]>;

/** A request got no response: it timed out, or the peer accepts no requests. */
export class NoResponse extends Error {}

/** A request was not begun. */
export class TooManyPending extends Error {}

/** The caller on whose behalf a request is sent, which takes turns with others, and what the request costs. */
export interface Share {
  readonly group: string;
  readonly weight: number;
}

const NO_SHARE: Share = { group: '', weight: 0 };

/** A request without a response. */
interface PendingRequest<Request, Answer> {
  readonly request: Request;
  readonly share: Share;
  readonly settle: (outcome: Outcome<Answer>) => void;
  isSettled: boolean;
  attempts: number;
  /** The call on which it was sent last, its index there, and how many results that had had. */
  call: Call<Request, Answer> | undefined;
  index: number;
  resultsBefore: number;
}

/** An open call. */
interface Call<Request, Answer> {
  /** The requests that were sent on it and have no result, by their index among all. */
  readonly sent: Map<number, PendingRequest<Request, Answer>>;
  sentCount: number;
  sentWeight: number;
  resultCount: number;
  isOver: boolean;
  readonly cut: AbortController;
  /** Makes the call check whether there is a message to send, or it is over. */
  wake: () => void;
}

/**
 * Sends requests over one long-lived call, because opening a call costs many times what a request costs. Requests that
 * arrive in one turn of the event loop share a message. Each promise settles as soon as its own result arrives, and a
 * single request does not wait for others.
 */
export class ExchangeBatcher<Request, Answer> {
  readonly #open: OpenCall<Request, Answer>;
  readonly #timeoutMs: number;
  readonly #maxSentWeight: number;
  /** Requests that are not sent yet, by group. Insertion order is the order of turns. */
  readonly #queues = new Map<string, PendingRequest<Request, Answer>[]>();
  #call: Call<Request, Answer> | undefined;
  #pending = 0;
  /** The number of pending requests of each group. */
  readonly #pendingOf = new Map<string, number>();

  /**
   * @param timeoutMs the timeout of a request
   * @param maxSentWeight the weight of sent requests without a result from which no further one is sent: those wait here,
   *   where their groups take turns. Without it, requests are sent in the order of their arrival
   */
  constructor(open: OpenCall<Request, Answer>, timeoutMs: number, maxSentWeight = Number.POSITIVE_INFINITY) {
    this.#open = open;
    this.#timeoutMs = timeoutMs;
    this.#maxSentWeight = maxSentWeight;
  }

  /** The number of requests without a response. */
  get pending(): number {
    return this.#pending;
  }

  /** The number of a group's requests without a response. */
  pendingOf(group: string): number {
    return this.#pendingOf.get(group) ?? 0;
  }

  /** @throws TooManyPending, NoResponse, or the error of the request or the call */
  send(request: Request, share: Share = NO_SHARE): Promise<Answer> {
    // Many may come at once, such as those that have shared the look-up of their key.
    if (this.#pending >= MAX_PENDING_REQUESTS) return Promise.reject(new TooManyPending());
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const settle = (outcome: Outcome<Answer>) => {
      if (pending.isSettled) return;
      pending.isSettled = true;
      clearTimeout(timer);
      const isCounted = this.#count(share, -1);
      if (pending.call) this.#forget(pending.call, pending);
      // Not thrown: it may be the timer that settles.
      if (!isCounted) reject(new BrokenInvariant('pending_not_negative'));
      else if ('answer' in outcome) resolve(outcome.answer);
      else reject(outcome.error);
    };
    const late = () => {
      // What stands between may keep a call whose core has vanished, and lead the next one to another core.
      if (pending.call?.resultCount === pending.resultsBefore && this.#call === pending.call) this.#call = undefined;
      settle({ error: new NoResponse(`no response within ${this.#timeoutMs} ms`) });
      // In another turn: what came together is late together.
      setImmediate(() => this.#queues.size > 0 && this.#flush());
    };
    const timer = setTimeout(late, this.#timeoutMs);
    const pending: PendingRequest<Request, Answer> = {
      request,
      share,
      settle,
      isSettled: false,
      attempts: 0,
      call: undefined,
      index: 0,
      resultsBefore: 0,
    };
    this.#count(share, 1);
    this.#push(pending);
    this.#flush();
    return promise;
  }

  /** Returns whether no count fell below 0. */
  #count({ group }: Share, sign: 1 | -1): boolean {
    this.#pending += sign;
    const own = this.pendingOf(group) + sign;
    if (own > 0) this.#pendingOf.set(group, own);
    else this.#pendingOf.delete(group);
    return this.#pending >= 0 && own >= 0;
  }

  #push(pending: PendingRequest<Request, Answer>): void {
    const { group } = pending.share;
    const queue = this.#queues.get(group);
    if (queue) queue.push(pending);
    else this.#queues.set(group, [pending]);
  }

  /** Takes the first request of the group whose turn it is. */
  #shift(): PendingRequest<Request, Answer> | undefined {
    for (const [group, queue] of this.#queues) {
      const pending = queue.shift();
      this.#queues.delete(group);
      if (queue.length > 0) this.#queues.set(group, queue);
      return pending;
    }
    return undefined;
  }

  #flush(): void {
    if (!this.#call) {
      this.#call = {
        sent: new Map(),
        sentCount: 0,
        sentWeight: 0,
        resultCount: 0,
        isOver: false,
        cut: new AbortController(),
        wake: () => {},
      };
      this.#exchange(this.#call);
    }
    this.#call.wake();
  }

  /** Takes a settled request from its call. One that is no longer used ends with its last request. */
  #forget(call: Call<Request, Answer>, { share, index }: PendingRequest<Request, Answer>): void {
    call.sent.delete(index);
    call.sentWeight -= share.weight;
    if (call !== this.#call && call.sent.size === 0) call.cut.abort();
    // It may be what further ones have waited for.
    else if (share.weight > 0) call.wake();
  }

  async #exchange(call: Call<Request, Answer>): Promise<void> {
    try {
      for await (const results of this.#open(this.#messages(call), call.cut.signal)) {
        call.resultCount += results.length;
        for (const result of results) call.sent.get(result.index)?.settle(result);
      }
      if (call.sentCount === 0) throw new NoResponse('the peer accepts no requests');
      for (const pending of call.sent.values()) {
        if (pending.attempts < MAX_ATTEMPTS) this.#push(pending);
        else pending.settle({ error: new NoResponse(`the peer accepted no request in ${MAX_ATTEMPTS} attempts`) });
      }
    } catch (error) {
      // When the call could not even begin, another attempt would fail for the queued requests too.
      const failed = call.sentCount > 0 ? [...call.sent.values()] : [...this.#queues.values()].flat();
      if (call.sentCount === 0) this.#queues.clear();
      for (const pending of failed) pending.settle({ error });
    }
    if (this.#call === call) this.#call = undefined;
    call.isOver = true;
    call.wake();
    if (this.#queues.size > 0) this.#flush();
  }

  /** Yields the queued requests in messages until the call is over. */
  async *#messages(call: Call<Request, Answer>): AsyncGenerator<Request[]> {
    while (!call.isOver) {
      const message = this.#nextMessage(call);
      if (message.length > 0) yield message;
      else {
        await new Promise<void>((resolve) => {
          call.wake = () => {
            call.wake = () => {};
            setImmediate(resolve);
          };
        });
      }
    }
  }

  #nextMessage(call: Call<Request, Answer>): Request[] {
    const message: Request[] = [];
    while (this.#call === call && message.length < MAX_PER_MESSAGE && call.sentWeight < this.#maxSentWeight) {
      const pending = this.#shift();
      if (!pending) break;
      if (pending.isSettled) continue;
      pending.attempts += 1;
      pending.call = call;
      pending.index = call.sentCount;
      pending.resultsBefore = call.resultCount;
      call.sent.set(pending.index, pending);
      call.sentCount += 1;
      call.sentWeight += pending.share.weight;
      message.push(pending.request);
    }
    return message;
  }
}
