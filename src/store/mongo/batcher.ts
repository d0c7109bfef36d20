/** How many different requests go into one batch. */
const MAX_IN_BATCH = 64;

/** How many batches are under way at once. While that many are, what comes gathers: under load batches grow by themselves. */
const BATCHES_AT_ONCE = 4;

interface Waiting<Request, Answer, Caller> {
  readonly request: Request;
  readonly deadline: AbortSignal;
  readonly caller: Caller | undefined;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Those that are to get the same answer. */
type Sharing<Request, Answer, Caller> = [Waiting<Request, Answer, Caller>, ...Waiting<Request, Answer, Caller>[]];

/** @param callers who made the requests */
type Perform<Request, Answer, Caller> = (
  requests: readonly Request[],
  callers: readonly (Caller | undefined)[],
) => Promise<readonly Answer[]>;

/**
 * Lets requests that come together go to the database together: a command costs it many times what a document costs. Those
 * that are the same go as one, so that a herd costs no more than one of it. A lone request waits for nobody; and what a batch
 * reads, it reads after everybody in it came.
 */
export class Batcher<Request, Answer, Caller = undefined> {
  readonly #perform: Perform<Request, Answer, Caller>;
  readonly #caller: () => Caller | undefined;
  readonly #nameOf: (request: Request) => unknown;
  /** By their names, in the order in which the first of each came. */
  readonly #waiting = new Map<unknown, Sharing<Request, Answer, Caller>>();
  #underWay = 0;
  #isScheduled = false;

  /**
   * @param perform gives an answer for each request, in their order; when it fails, they all do
   * @param caller tells who makes a request
   * @param nameOf gives the same for requests that are to get the same answer; unless told, each is one of its own
   */
  constructor(
    perform: Perform<Request, Answer, Caller>,
    caller: () => Caller | undefined = () => undefined,
    nameOf: (request: Request) => unknown = (request) => request,
  ) {
    this.#perform = perform;
    this.#caller = caller;
    this.#nameOf = nameOf;
  }

  /** @param deadline after it, the request is not begun */
  ask(request: Request, deadline: AbortSignal): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const name = this.#nameOf(request);
      const waiting = { request, deadline, caller: this.#caller(), resolve, reject };
      const sharing = this.#waiting.get(name);
      if (sharing) sharing.push(waiting);
      else this.#waiting.set(name, [waiting]);
      this.#schedule();
    });
  }

  /** At the end of the turn of the event loop, so that all who come in it go together. */
  #schedule(): void {
    if (this.#isScheduled || this.#waiting.size === 0 || this.#underWay >= BATCHES_AT_ONCE) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      const batch = this.#nextBatch();
      if (batch.length > 0) this.#begin(batch);
      this.#schedule();
    });
  }

  /** Takes as many different requests as go together, and all that are the same as one of these. */
  #nextBatch(): Sharing<Request, Answer, Caller>[] {
    const batch: Sharing<Request, Answer, Caller>[] = [];
    for (const [name, sharing] of this.#waiting) {
      if (batch.length === MAX_IN_BATCH) break;
      this.#waiting.delete(name);
      for (const { deadline, reject } of sharing) if (deadline.aborted) reject(deadline.reason);
      const [first, ...others] = sharing.filter(({ deadline }) => !deadline.aborted);
      if (first) batch.push([first, ...others]);
    }
    return batch;
  }

  async #begin(batch: readonly Sharing<Request, Answer, Caller>[]): Promise<void> {
    this.#underWay += 1;
    try {
      const answers = await this.#perform(
        batch.map(([{ request }]) => request),
        batch.flat().map(({ caller }) => caller),
      );
      for (const [index, sharing] of batch.entries())
        for (const { resolve } of sharing) resolve(answers[index] as Answer);
    } catch (error) {
      for (const { reject } of batch.flat()) reject(error);
    }
    this.#underWay -= 1;
    this.#schedule();
  }
}
