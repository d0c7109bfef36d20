import { link, type Span } from '../common/tracing.ts';
import { InFlightRequests } from './in-flight-requests.ts';

/** How many requests go over one call before another is begun. */
const MAX_IN_CALL = 1_000_000;

/** How many requests may be unanswered before more are turned away. */
export const MAX_PENDING_REQUESTS = 2048;

/** How often a request is sent that stopping cores do not look at. */
const MAX_ATTEMPTS = 3;

/** A request, and what its caller names it in the log. */
export interface Asked<Request> {
  readonly request: Request;
  readonly requestId: string;
  /** What it is in its trace. */
  readonly span?: Span | undefined;
}

/** What became of a request, by its place among all requests of the call. */
export type Result<Answer> = { readonly index: number } & ({ readonly answer: Answer } | { readonly error: unknown });

/**
 * Begins a call that takes requests and gives their results for as long as both sides like. It ends without an error when
 * the other side wants no more; then it has not looked at what it did not answer.
 */
export type OpenCall<Request, Answer> = (
  messages: AsyncIterable<readonly Asked<Request>[]>,
) => AsyncIterable<readonly Result<Answer>[]>;

/** A request has no answer: its time is over, or too many others have none. */
export class Unanswered extends Error {}

/** How a collector asks. */
export interface ExchangeBatcherOptions {
  /** How long a request may take; milliseconds. */
  readonly timeoutMs: number;
  /** How many requests go into one message. */
  readonly mostInMessage: number;
  /**
   * How long requests are gathered, at most, while the message before has no result yet; milliseconds. Without it, each turn
   * of the event loop sends what came in it.
   */
  readonly gatherMs?: number | undefined;
}

/**
 * Asks over one long call, because beginning a call costs many times what a request costs. Requests that arrive in one turn
 * of the event loop share a message. Each is answered as soon as its own result is there, and a lone one waits for nobody.
 */
export class ExchangeBatcher<Request, Answer> {
  readonly #open: OpenCall<Request, Answer>;
  readonly #options: ExchangeBatcherOptions;
  /** What is not sent yet. */
  #gathered: Waiting<Request, Answer>[] = [];
  /** What is not sent yet and may be shared. */
  readonly #shared = new Map<string, Waiting<Request, Answer>>();
  /** The call that takes what is gathered. */
  #call: Call<Request, Answer> | undefined;
  #unanswered = 0;

  constructor(open: OpenCall<Request, Answer>, options: ExchangeBatcherOptions) {
    this.#open = open;
    this.#options = options;
  }

  /** How many requests have no answer yet. */
  get unanswered(): number {
    return this.#unanswered;
  }

  /**
   * @param sharedAs the same for requests that may share an answer; all of them came before it is sent
   * @throws Unanswered, or whatever the request or the call failed with
   */
  ask(request: Request, requestId: string, sharedAs?: string, span?: Span): Promise<Answer> {
    const same = sharedAs === undefined ? undefined : this.#shared.get(sharedAs);
    if (same) {
      same.join(span);
      return same.answer;
    }
    if (this.#unanswered >= MAX_PENDING_REQUESTS) {
      return Promise.reject(new Unanswered(`${MAX_PENDING_REQUESTS} requests have no answer yet`));
    }
    this.#unanswered += 1;
    const { timeoutMs } = this.#options;
    const waiting = new Waiting<Request, Answer>({ request, requestId, span }, sharedAs, timeoutMs, () => {
      this.#unanswered -= 1;
      this.#shareNoMore(waiting);
    });
    if (sharedAs !== undefined) this.#shared.set(sharedAs, waiting);
    this.#gathered.push(waiting);
    this.#sendGathered();
    return waiting.answer;
  }

  #sendGathered(): void {
    if (this.#call === undefined) {
      this.#call = { sent: new InFlightRequests(), isOver: false, gathering: undefined, wake: () => {} };
      this.#exchange(this.#call);
    }
    this.#call.wake();
  }

  async #exchange(call: Call<Request, Answer>): Promise<void> {
    try {
      for await (const results of this.#open(this.#messages(call))) {
        this.#stopGathering(call);
        for (const result of results) call.sent.take(result.index)?.settle(result);
      }
      if (call.sent.count === 0) throw new Unanswered('the other side wants no requests');
      this.#sendAgain(call.sent.unanswered());
    } catch (error) {
      // A call that could not even begin would not for those who still wait for it.
      const failed = call.sent.count > 0 ? call.sent.unanswered() : this.#gathered.splice(0);
      for (const waiting of failed) waiting.settle({ error });
    }
    call.isOver = true;
    this.#stopGathering(call);
    if (this.#call === call) this.#call = undefined;
    if (this.#gathered.length > 0) this.#sendGathered();
  }

  /** What is gathered, message by message, until the call is over or has carried enough. */
  async *#messages(call: Call<Request, Answer>): AsyncGenerator<readonly Asked<Request>[]> {
    const { mostInMessage, gatherMs } = this.#options;
    const isDue = () => this.#gathered.length >= (call.gathering ? mostInMessage : 1);
    while (call.sent.count < MAX_IN_CALL) {
      if (!isDue()) {
        await new Promise<void>((resolve) => {
          call.wake = () => (call.isOver || isDue()) && setImmediate(resolve);
        });
      }
      if (call.isOver) return;
      const message = this.#gathered.splice(0, mostInMessage).filter((waiting) => !waiting.isSettled);
      for (const waiting of message) {
        this.#shareNoMore(waiting);
        waiting.attempts += 1;
        call.sent.add(waiting);
      }
      if (message.length === 0) continue;
      if (gatherMs !== undefined) {
        clearTimeout(call.gathering);
        call.gathering = setTimeout(() => this.#stopGathering(call), gatherMs);
      }
      yield message.map(({ asked }) => asked);
    }
    this.#call = undefined;
    if (this.#gathered.length > 0) this.#sendGathered();
  }

  #stopGathering(call: Call<Request, Answer>): void {
    clearTimeout(call.gathering);
    call.gathering = undefined;
    call.wake();
  }

  #shareNoMore(waiting: Waiting<Request, Answer>): void {
    const { sharedAs } = waiting;
    if (sharedAs !== undefined && this.#shared.get(sharedAs) === waiting) this.#shared.delete(sharedAs);
  }

  #sendAgain(unseen: readonly Waiting<Request, Answer>[]): void {
    for (const waiting of unseen) {
      if (waiting.attempts < MAX_ATTEMPTS) this.#gathered.push(waiting);
      else waiting.settle({ error: new Unanswered('the other side wants no more requests') });
    }
  }
}

/** One call under way. */
interface Call<Request, Answer> {
  /** What it carried. */
  readonly sent: InFlightRequests<Waiting<Request, Answer>>;
  isOver: boolean;
  /** Runs out when what is gathered is to go, result or not; undefined when nothing is gathered on purpose. */
  gathering: NodeJS.Timeout | undefined;
  /** Says that more is gathered, that it may go, or that the call is over. */
  wake: () => unknown;
}

/** A request until its answer. */
class Waiting<Request, Answer> {
  readonly answer: Promise<Answer>;
  readonly settle: (outcome: { readonly answer: Answer } | { readonly error: unknown }) => void;
  readonly sharedAs: string | undefined;
  asked: Asked<Request>;
  isSettled = false;
  attempts = 0;

  constructor(asked: Asked<Request>, sharedAs: string | undefined, timeoutMs: number, onSettled: () => void) {
    this.asked = asked;
    this.sharedAs = sharedAs;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.answer = promise;
    const timer = setTimeout(() => {
      this.settle({ error: new Unanswered(`no answer within ${timeoutMs} ms`) });
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

  /** Another shares it. The other side goes on with the first trace that is kept, and the others lead there. */
  join(span: Span | undefined): void {
    if (!span?.isKept) return;
    if (this.asked.span?.isKept) link(this.asked.span, span);
    else this.asked = { ...this.asked, span };
  }
}
