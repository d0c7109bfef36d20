import { type Connection, openConnection } from './connection.ts';
import { type LoadResult, Tally } from './tally.ts';

export interface Pace {
  /** Keep-alive connections, each with at most one request in flight. */
  readonly connections: number;
  readonly durationMs: number;
  /**
   * An open loop: requests become due at this rate whether or not earlier ones have finished, and latency counts from then, so that it
   * includes queueing. Undefined: each connection sends its next request after each response.
   */
  readonly ratePerSecond?: number | undefined;
}

/** The requests to send, and the expected status. */
export interface Requests {
  next(): Buffer;
  readonly status: number;
}

/** How long the last responses may take after the end of a load; milliseconds. */
const LAST_RESPONSES_MS = 10_000;

const NEVER = Number.POSITIVE_INFINITY;

/** Sends requests to an address for some time, and counts the results. Rejects when the connection is refused. */
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
    for (const caller of this.#callers) this.#next(caller, this.#start);
    if (this.#pace.ratePerSecond !== undefined) this.#wakeUp();
    const deadline = setTimeout(this.#over.resolve, this.#pace.durationMs + LAST_RESPONSES_MS);
    try {
      await this.#over.promise;
    } finally {
      this.#isRunning = false;
      clearTimeout(this.#alarm);
      clearTimeout(deadline);
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
        this.#next(caller, now);
      },
      onEnd: (reason) => {
        if (!this.#isRunning) {
          this.#over.reject(new Error(reason));
          return;
        }
        this.#tally.failed(reason);
        this.#idle.delete(caller);
        this.#connect(caller).then(() => this.#next(caller, performance.now()), this.#over.reject);
      },
    });
  }

  /** Sends the caller's next request if one is due; otherwise the caller is idle. */
  #next(caller: Caller, now: number): void {
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

  /** In an open loop: lets idle callers send requests that have become due. */
  #wakeUp(): void {
    const now = performance.now();
    for (const caller of this.#idle) {
      if (this.#nextDue(now) > now) break;
      this.#next(caller, now);
    }
    // The timer adds up to a millisecond to a latency; a busier loop would take processor time from the target.
    const due = this.#nextDue(now);
    if (due !== NEVER) this.#alarm = setTimeout(() => this.#wakeUp(), Math.max(1, Math.ceil(due - now)));
  }
}

/** A connection, and the time at which its request was due. */
class Caller {
  connection: Connection | undefined;
  due = 0;
}
