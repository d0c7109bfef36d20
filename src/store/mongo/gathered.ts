/** How many requests go into one batch. */
const MOST_IN_BATCH = 64;

/** How many batches are under way at once. While that many are, what comes gathers: under load batches grow by themselves. */
const BATCHES_AT_ONCE = 4;

interface Waiting<Request, Answer, Asker> {
  readonly request: Request;
  readonly deadline: AbortSignal;
  readonly asker: Asker | undefined;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** @param askers who made the requests, in their order */
type Perform<Request, Answer, Asker> = (
  requests: readonly Request[],
  askers: readonly (Asker | undefined)[],
) => Promise<readonly Answer[]>;

/**
 * Lets requests that come together go to the database together: a command costs it many times what a document costs. A lone
 * request waits for nobody; and what a batch reads, it reads after everybody in it came.
 */
export class Gathered<Request, Answer, Asker = undefined> {
  readonly #perform: Perform<Request, Answer, Asker>;
  readonly #asker: () => Asker | undefined;
  #waiting: Waiting<Request, Answer, Asker>[] = [];
  #underWay = 0;
  #isScheduled = false;

  /**
   * @param perform gives an answer for each request, in their order; when it fails, they all do
   * @param asker tells who makes a request
   */
  constructor(perform: Perform<Request, Answer, Asker>, asker: () => Asker | undefined = () => undefined) {
    this.#perform = perform;
    this.#asker = asker;
  }

  /** @param deadline after it, the request is not begun */
  ask(request: Request, deadline: AbortSignal): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, deadline, asker: this.#asker(), resolve, reject });
      this.#schedule();
    });
  }

  /** At the end of the turn of the event loop, so that all who come in it go together. */
  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0 || this.#underWay >= BATCHES_AT_ONCE) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      const batch: Waiting<Request, Answer, Asker>[] = [];
      for (const waiting of this.#waiting.splice(0, MOST_IN_BATCH)) {
        if (waiting.deadline.aborted) waiting.reject(waiting.deadline.reason);
        else batch.push(waiting);
      }
      if (batch.length > 0) this.#begin(batch);
      this.#schedule();
    });
  }

  async #begin(batch: readonly Waiting<Request, Answer, Asker>[]): Promise<void> {
    this.#underWay += 1;
    try {
      const answers = await this.#perform(
        batch.map(({ request }) => request),
        batch.map(({ asker }) => asker),
      );
      for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as Answer);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    this.#underWay -= 1;
    this.#schedule();
  }
}
