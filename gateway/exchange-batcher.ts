import type { Span } from '../common/tracing.ts';
import { FairQueue } from './fair-queue.ts';
import { InFlightRequests } from './in-flight-requests.ts';

/** The maximum number of requests on one call; then another call begins. */
const MAX_IN_CALL = 1_000_000;

/** The maximum number of pending requests; further ones are rejected. */
export const MAX_PENDING_REQUESTS = 2048;

/** The maximum number of times that a request is sent when cores end the call without processing it. */
const MAX_ATTEMPTS = 3;

/** A request, and its id in the logs of both sides. */
export interface BatchItem<Request> {
  readonly request: Request;
  readonly requestId: string;
  /** The span of the request, if it is traced. */
  readonly span?: Span | undefined;
}

/** The result of a request, which is identified by its index among all requests of the call. */
export type Result<Answer> = { readonly index: number } & ({ readonly answer: Answer } | { readonly error: unknown });

/**
 * Opens a bidirectional stream of requests and results. The stream ends without an error when the peer accepts no more
 * requests; the peer has then not processed the requests without a result.
 */
export type OpenCall<Request, Answer> = (
  messages: AsyncIterable<readonly BatchItem<Request>[]>,
) => AsyncIterable<readonly Result<Answer>[]>;

/** A request got no response: it timed out, too many others are pending, or the peer accepts no requests. */
export class NoResponse extends Error {}

export interface ExchangeBatcherOptions {
  /** The timeout of a request; milliseconds. */
  readonly timeoutMs: number;
  /** The maximum number of requests in a message. */
  readonly maxPerMessage: number;
  /**
   * The maximum time for which requests are gathered while the previous message has no result; milliseconds. Without
   * it, each turn of the event loop sends the requests that arrived in it.
   */
  readonly lingerMs?: number | undefined;
  /**
   * The weight of sent requests without a result from which no further one is sent: those wait here, where their groups
   * take turns. Without it, requests are sent in the order of their arrival.
   */
  readonly maxSentWeight?: number | undefined;
}

/** The caller on whose behalf a request is sent, which takes turns with others, and what the request costs. */
export interface Share {
  readonly group: string;
  readonly weight: number;
}

const NO_SHARE: Share = { group: '', weight: 0 };

/**
 * Sends requests over one long-lived call, because opening a call costs many times what a request costs. Requests that
 * arrive in one turn of the event loop share a message. Each promise settles as soon as its own result arrives, and a
 * single request does not wait for others.
 */
export class ExchangeBatcher<Request, Answer> {
  readonly #open: OpenCall<Request, Answer>;
  readonly #options: ExchangeBatcherOptions;
  /** Requests that are not sent yet. */
  readonly #queue = new FairQueue<PendingRequest<Request, Answer>>();
  /** The call that takes requests from the queue. */
  #call: Call<Request, Answer> | undefined;
  #pending = 0;
  /** The weight of the pending requests of each group, and of those that are sent. */
  readonly #weights = new Map<string, number>();
  #sentWeight = 0;

  constructor(open: OpenCall<Request, Answer>, options: ExchangeBatcherOptions) {
    this.#open = open;
    this.#options = options;
  }

  /** The number of requests without a response. */
  get pending(): number {
    return this.#pending;
  }

  /** The weight of a group's requests without a response. */
  weightOf(group: string): number {
    return this.#weights.get(group) ?? 0;
  }

  /** @throws NoResponse, or the error of the request or the call */
  send(item: BatchItem<Request>, share: Share = NO_SHARE): Promise<Answer> {
    if (this.#pending >= MAX_PENDING_REQUESTS) {
      return Promise.reject(new NoResponse(`too many requests: ${MAX_PENDING_REQUESTS} are pending`));
    }
    this.#pending += 1;
    const { timeoutMs } = this.#options;
    const pending = new PendingRequest<Request, Answer>(item, share, timeoutMs, () => {
      this.#pending -= 1;
      this.#addWeight(pending, -1);
      if (pending.attempts > 0) this.#addSentWeight(-share.weight);
    });
    this.#addWeight(pending, 1);
    this.#queue.push(pending);
    this.#flush();
    return pending.answer;
  }

  #addWeight({ group, weight }: Share, sign: 1 | -1): void {
    const sum = this.weightOf(group) + sign * weight;
    if (sum > 0) this.#weights.set(group, sum);
    else this.#weights.delete(group);
  }

  #addSentWeight(weight: number): void {
    this.#sentWeight += weight;
    if (weight < 0) this.#call?.wake();
  }

  #flush(): void {
    if (this.#call === undefined) {
      this.#call = { sent: new InFlightRequests(), isOver: false, lingerTimer: undefined, wake: () => {} };
      this.#exchange(this.#call);
    }
    this.#call.wake();
  }

  async #exchange(call: Call<Request, Answer>): Promise<void> {
    try {
      for await (const results of this.#open(this.#messages(call))) {
        this.#stopLingering(call);
        for (const result of results) call.sent.take(result.index)?.settle(result);
      }
      if (call.sent.count === 0) throw new NoResponse('the peer accepts no requests');
      this.#resend(call.sent.pending());
    } catch (error) {
      // When the call could not even begin, another attempt would fail for the queued requests too.
      const failed = call.sent.count > 0 ? call.sent.pending() : this.#queue.take(this.#queue.length);
      for (const pending of failed) pending.settle({ error });
    }
    call.isOver = true;
    this.#stopLingering(call);
    if (this.#call === call) this.#call = undefined;
    if (this.#queue.length > 0) this.#flush();
  }

  /** Yields the queued requests in messages until the call is over or has carried MAX_IN_CALL requests. */
  async *#messages(call: Call<Request, Answer>): AsyncGenerator<readonly BatchItem<Request>[]> {
    const { maxPerMessage, lingerMs, maxSentWeight = Number.POSITIVE_INFINITY } = this.#options;
    const isDue = () =>
      this.#queue.length >= (call.lingerTimer ? maxPerMessage : 1) && this.#sentWeight < maxSentWeight;
    while (call.sent.count < MAX_IN_CALL) {
      if (!isDue()) {
        await new Promise<void>((resolve) => {
          call.wake = () => (call.isOver || isDue()) && setImmediate(resolve);
        });
      }
      if (call.isOver) return;
      const message = this.#queue.take(maxPerMessage).filter((pending) => !pending.isSettled);
      for (const pending of message) {
        if (pending.attempts === 0) this.#addSentWeight(pending.weight);
        pending.attempts += 1;
        call.sent.add(pending);
      }
      if (message.length === 0) continue;
      if (lingerMs !== undefined) {
        clearTimeout(call.lingerTimer);
        call.lingerTimer = setTimeout(() => this.#stopLingering(call), lingerMs);
      }
      yield message.map(({ item }) => item);
    }
    this.#call = undefined;
    if (this.#queue.length > 0) this.#flush();
  }

  #stopLingering(call: Call<Request, Answer>): void {
    clearTimeout(call.lingerTimer);
    call.lingerTimer = undefined;
    call.wake();
  }

  #resend(unprocessed: readonly PendingRequest<Request, Answer>[]): void {
    for (const pending of unprocessed) {
      if (pending.attempts < MAX_ATTEMPTS) this.#queue.push(pending);
      else pending.settle({ error: new NoResponse(`the peer accepted no request in ${MAX_ATTEMPTS} attempts`) });
    }
  }
}

/** An open call. */
interface Call<Request, Answer> {
  /** The requests that were sent on it. */
  readonly sent: InFlightRequests<PendingRequest<Request, Answer>>;
  isOver: boolean;
  /** Fires when the queue is to be sent even without a result; undefined while the batcher does not linger. */
  lingerTimer: NodeJS.Timeout | undefined;
  /** Makes the call check whether a message is due or the call is over. */
  wake: () => unknown;
}

/** A request without a response. */
class PendingRequest<Request, Answer> {
  readonly answer: Promise<Answer>;
  readonly settle: (outcome: { readonly answer: Answer } | { readonly error: unknown }) => void;
  readonly group: string;
  readonly weight: number;
  readonly item: BatchItem<Request>;
  isSettled = false;
  attempts = 0;

  constructor(item: BatchItem<Request>, { group, weight }: Share, timeoutMs: number, onSettled: () => void) {
    this.item = item;
    this.group = group;
    this.weight = weight;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.answer = promise;
    const timer = setTimeout(() => {
      this.settle({ error: new NoResponse(`no response within ${timeoutMs} ms`) });
    }, timeoutMs);
    this.settle = (outcome) => {
      if (this.isSettled) return;
      this.isSettled = true;
      clearTimeout(timer);
      onSettled();
      if ('answer' in outcome) resolve(outcome.answer);
      else reject(outcome.error);
    };
  }
}
