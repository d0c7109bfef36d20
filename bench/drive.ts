import { createHistogram } from 'node:perf_hooks';
import { type Connection, openConnection } from './connection.ts';

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

/** What came of it. */
export interface DriveResult {
  /** Answers with the expected status. */
  readonly answered: number;
  /** Everything else, counted by status or reason. */
  readonly failures: Readonly<Record<string, number>>;
  /** From the first request to the last answer. */
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The requests that are sent, and the answer they all must have. */
export interface Requests {
  next(): Buffer;
  readonly status: number;
}

/** How long after its end a load may have requests without an answer; milliseconds. */
const LAST_ANSWERS_MS = 10_000;

/** Sends requests to an address for a while, and counts what is answered. Rejects when nobody listens there. */
export async function drive(url: URL, { next, status }: Requests, pace: Pace): Promise<DriveResult> {
  const { durationMs, ratePerSecond } = pace;
  const latenciesUs = createHistogram();
  const failures: Record<string, number> = {};
  let answered = 0;
  let lastAnswerAt = 0;
  let over = false;
  const { promise: allAnswered, resolve: finish, reject: giveUp } = Promise.withResolvers<void>();

  const idle: Caller[] = [];
  const fail = (reason: string | number) => {
    failures[reason] = (failures[reason] ?? 0) + 1;
  };

  /** A connection with the moment at which its request was due. */
  class Caller {
    dueAt = 0;
    busy = false;
    #connection: Connection | undefined;

    async open(): Promise<void> {
      this.#connection = await openConnection(url, {
        onAnswer: (answer) => {
          this.busy = false;
          lastAnswerAt = performance.now();
          if (answer === status) answered += 1;
          else fail(answer);
          latenciesUs.record(Math.max(1, Math.round((lastAnswerAt - this.dueAt) * 1000)));
          this.goOn(lastAnswerAt);
        },
        onEnd: (reason) => {
          if (over) return;
          if (this.busy) fail(reason);
          this.busy = false;
          this.open().then(() => this.goOn(performance.now()), giveUp);
        },
      });
    }

    close(): void {
      this.#connection?.close();
    }

    /** Sends the next request if it is due, and rests otherwise. */
    goOn(now: number): void {
      const dueAt = nextDue(now);
      if (dueAt <= now) {
        sent += 1;
        this.dueAt = dueAt;
        this.busy = true;
        this.#connection?.send(next());
      } else {
        idle.push(this);
        if (dueAt === NEVER && idle.length === callers.length) finish();
      }
    }
  }

  const callers = Array.from({ length: pace.connections }, () => new Caller());
  await Promise.all(callers.map((caller) => caller.open()));

  let sent = 0;
  const start = performance.now();
  const end = start + durationMs;
  const nextDue = (now: number): number => {
    if (ratePerSecond === undefined) return now < end ? now : NEVER;
    const dueAt = start + (sent / ratePerSecond) * 1000;
    return dueAt < end ? dueAt : NEVER;
  };
  for (const caller of callers) caller.goOn(start);
  const lastAnswers = setTimeout(finish, durationMs + LAST_ANSWERS_MS);
  // The timer's grain adds up to a millisecond to a latency; a tighter loop would take the processor from what is measured.
  const ticks = ratePerSecond && setInterval(() => wakeDue(performance.now()), 1);
  const wakeDue = (now: number) => {
    const rested = idle.splice(0);
    for (const caller of rested) caller.goOn(now);
  };
  try {
    await allAnswered;
  } finally {
    over = true;
    clearTimeout(lastAnswers);
    clearInterval(ticks);
    for (const caller of callers) {
      if (caller.busy) fail('not answered');
      caller.close();
    }
  }
  return {
    answered,
    failures,
    seconds: (lastAnswerAt - start) / 1000,
    p50Ms: latenciesUs.percentile(50) / 1000,
    p99Ms: latenciesUs.percentile(99) / 1000,
  };
}

const NEVER = Number.POSITIVE_INFINITY;
