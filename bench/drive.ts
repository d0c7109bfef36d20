import { type Connection, openConnection } from './connection.ts';
import { type LoadResult, Tally } from './tally.ts';

/** How hard to drive. */
export interface Pace {
  /** Keep-alive connections, each with one request in flight at most. */
  readonly connections: number;
  readonly durationMs: number;
  /**
   * Requests become due at this rate whether or not earlier ones are answered, and their latency counts from then: an
   * open loop, in which waiting cannot hide. Undefined: each connection sends as soon as it has its answer.
   */
  readonly ratePerSecond?: number | undefined;
}

/** The requests to send, and the status that they all must be answered with. */
export interface Requests {
  next(): Buffer;
  readonly status: number;
}

/** How long after its end a load may have requests without an answer; milliseconds. */
const LAST_ANSWERS_MS = 10_000;

const NEVER = Number.POSITIVE_INFINITY;

/** Sends requests to an address for a while, and counts what becomes of them. Rejects when nobody listens there. */
export async function drive(url: URL, requests: Requests, pace: Pace): Promise<LoadResult> {
  const load = new Load(url, requests, pace);
  await load.open();
  return load.run();
}

class Load {
  readonly #url: URL;
  readonly #requests: Requests;
  readonly #pace: Pace;
  readonly #callers: readonly Caller[];
  readonly #idle = new Set<Caller>();
  readonly #tally = new Tally();
  readonly #over = Promise.withResolvers<void>();
  #isRunning = false;
  #sent = 0;
  #start = 0;
  #alarm: NodeJS.Timeout | undefined;

  constructor(url: URL, requests: Requests, pace: Pace) {
    this.#url = url;
    this.#requests = requests;
    this.#pace = pace;
    this.#callers = Array.from({ length: pace.connections }, () => new Caller());
  }

  async open(): Promise<void> {
    await Promise.race([Promise.all(this.#callers.map((caller) => this.#connect(caller))), this.#over.promise]);
  }

  async run(): Promise<LoadResult> {
    this.#isRunning = true;
    this.#start = performance.now();
    for (const caller of this.#callers) this.#goOn(caller, this.#start);
    if (this.#pace.ratePerSecond !== undefined) this.#wakeUp();
    const patience = setTimeout(this.#over.resolve, this.#pace.durationMs + LAST_ANSWERS_MS);
    try {
      await this.#over.promise;
    } finally {
      this.#isRunning = false;
      clearTimeout(this.#alarm);
      clearTimeout(patience);
      for (const caller of this.#callers) {
        if (!this.#idle.has(caller)) this.#tally.failed('not answered');
        caller.connection?.close();
      }
    }
    return this.#tally.result(this.#start, this.#start + this.#pace.durationMs);
  }

  async #connect(caller: Caller): Promise<void> {
    caller.connection = await openConnection(this.#url, {
      onAnswer: (status) => {
        const now = performance.now();
        if (status === this.#requests.status) this.#tally.answered(caller.due, now);
        else this.#tally.failed(`status ${status}`);
        this.#goOn(caller, now);
      },
      onEnd: (reason) => {
        if (!this.#isRunning) {
          this.#over.reject(new Error(reason));
          return;
        }
        this.#tally.failed(reason);
        this.#idle.delete(caller);
        this.#connect(caller).then(() => this.#goOn(caller, performance.now()), this.#over.reject);
      },
    });
  }

  /** Sends a caller's next request when one is due, and lets it rest otherwise. */
  #goOn(caller: Caller, now: number): void {
    const due = this.#nextDue(now);
    if (due <= now) {
      this.#idle.delete(caller);
      this.#sent += 1;
      caller.due = due;
      caller.connection?.send(this.#requests.next());
      return;
    }
    this.#idle.add(caller);
    if (due === NEVER && this.#idle.size === this.#callers.length) this.#over.resolve();
  }

  #nextDue(now: number): number {
    const { ratePerSecond, durationMs } = this.#pace;
    const due = ratePerSecond === undefined ? now : this.#start + (this.#sent / ratePerSecond) * 1000;
    return due < this.#start + durationMs ? due : NEVER;
  }

  /** In an open loop: lets those who rest go on when requests become due. */
  #wakeUp(): void {
    const now = performance.now();
    for (const caller of this.#idle) {
      if (this.#nextDue(now) > now) break;
      this.#goOn(caller, now);
    }
    // The timer's grain adds up to a millisecond to a latency; a tighter loop would take the processor from what is measured.
    const due = this.#nextDue(now);
    if (due !== NEVER) this.#alarm = setTimeout(() => this.#wakeUp(), Math.max(1, Math.ceil(due - now)));
  }
}

/** A connection, and the moment at which its request was due. */
class Caller {
  connection: Connection | undefined;
  due = 0;
}
