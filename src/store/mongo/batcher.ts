/** The maximum number of different requests in a batch. */
const MAX_BATCH_SIZE = 64;

/** The maximum number of concurrent batches. Meanwhile requests accumulate, so batches grow with the load. */
const MAX_BATCHES_IN_FLIGHT = 4;

interface PendingRequest<Request, Result, Caller> {
  readonly request: Request;
  readonly deadline: AbortSignal;
  readonly caller: Caller | undefined;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** Equal requests, which share one result. */
type EqualRequests<Request, Result, Caller> = [
  PendingRequest<Request, Result, Caller>,
  ...PendingRequest<Request, Result, Caller>[],
];

/** @param callers one for each submitted request, equal ones included */
type Perform<Request, Result, Caller> = (
  requests: readonly Request[],
  callers: readonly (Caller | undefined)[],
) => Promise<readonly Result[]>;

/**
 * Combines concurrent requests into one database command, because a command costs many times as much as a document.
 * Equal requests are sent once, however many there are. A single request is not delayed. A batch reads only after all
 * of its requests arrived.
 */
export class Batcher<Request, Result, Caller = undefined> {
  readonly #perform: Perform<Request, Result, Caller>;
  readonly #caller: () => Caller | undefined;
  readonly #keyOf: (request: Request) => unknown;
  /** By key, in the order of arrival of the first equal request. */
  readonly #pending = new Map<unknown, EqualRequests<Request, Result, Caller>>();
  #inFlight = 0;
  #isScheduled = false;

  /**
   * @param perform returns a result for each request, in order; if it rejects, all requests do
   * @param caller returns the current caller
   * @param keyOf returns the same key for equal requests; default: no requests are equal
   */
  constructor(
    perform: Perform<Request, Result, Caller>,
    caller: () => Caller | undefined = () => undefined,
    keyOf: (request: Request) => unknown = (request) => request,
  ) {
    this.#perform = perform;
    this.#caller = caller;
    this.#keyOf = keyOf;
  }

  /** @param deadline the request is not sent after it */
  submit(request: Request, deadline: AbortSignal): Promise<Result> {
    return new Promise((resolve, reject) => {
      const key = this.#keyOf(request);
      const pending = { request, deadline, caller: this.#caller(), resolve, reject };
      const equal = this.#pending.get(key);
      if (equal) equal.push(pending);
      else this.#pending.set(key, [pending]);
      this.#schedule();
    });
  }

  /** Sends a batch at the end of the event loop's turn, so that all requests of the turn are combined. */
  #schedule(): void {
    if (this.#isScheduled || this.#pending.size === 0 || this.#inFlight >= MAX_BATCHES_IN_FLIGHT) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      const batch = this.#nextBatch();
      if (batch.length > 0) this.#send(batch);
      this.#schedule();
    });
  }

  /** Removes the next batch from the pending requests, and rejects those past their deadline. */
  #nextBatch(): EqualRequests<Request, Result, Caller>[] {
    const batch: EqualRequests<Request, Result, Caller>[] = [];
    for (const [key, equal] of this.#pending) {
      if (batch.length === MAX_BATCH_SIZE) break;
      this.#pending.delete(key);
      for (const { deadline, reject } of equal) if (deadline.aborted) reject(deadline.reason);
      const [first, ...others] = equal.filter(({ deadline }) => !deadline.aborted);
      if (first) batch.push([first, ...others]);
    }
    return batch;
  }

  async #send(batch: readonly EqualRequests<Request, Result, Caller>[]): Promise<void> {
    this.#inFlight += 1;
    try {
      const results = await this.#perform(
        batch.map(([{ request }]) => request),
        batch.flat().map(({ caller }) => caller),
      );
      for (const [index, equal] of batch.entries()) for (const { resolve } of equal) resolve(results[index] as Result);
    } catch (error) {
      for (const { reject } of batch.flat()) reject(error);
    }
    this.#inFlight -= 1;
    this.#schedule();
  }
}
