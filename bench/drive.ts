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
  const callers = Array.from({ length: pace.connections }, () => new Caller());
  const idle = new Set<Caller>();
  const tally = new Tally();
  const { promise: over, resolve: finish, reject: giveUp } = Promise.withResolvers<void>();
  let isRunning = false;

  const open = async (caller: Caller): Promise<void> => {
    caller.connection = await openConnection(url, {
      onAnswer(status) {
        const now = performance.now();
        if (status === requests.status) tally.answered(caller.due, now);
        else tally.failed(`status ${status}`);
        goOn(caller, now);
      },
      onEnd(reason) {
        if (!isRunning) {
          giveUp(new Error(reason));
          return;
        }
        tally.failed(reason);
        idle.delete(caller);
        open(caller).then(() => goOn(caller, performance.now()), giveUp);
      },
    });
  };
  /** Sends a caller's next request when one is due, and lets it rest otherwise. */
  const goOn = (caller: Caller, now: number): void => {
    const due = nextDue(now);
    if (due <= now) {
      idle.delete(caller);
      sent += 1;
      caller.due = due;
      caller.connection?.send(requests.next());
      return;
    }
    idle.add(caller);
    if (due === NEVER && idle.size === callers.length) finish();
  };

  await Promise.race([Promise.all(callers.map(open)), over]);
  isRunning = true;
  let sent = 0;
  const start = performance.now();
  const end = start + pace.durationMs;
  const nextDue = (now: number): number => {
    const due = pace.ratePerSecond === undefined ? now : start + (sent / pace.ratePerSecond) * 1000;
    return due < end ? due : NEVER;
  };
  /** In an open loop: lets those who rest go on when requests become due. */
  const wakeUp = (): void => {
    const now = performance.now();
    for (const caller of idle) {
      if (nextDue(now) > now) break;
      goOn(caller, now);
    }
    // The timer's grain adds up to a millisecond to a latency; a tighter loop would take the processor from what is measured.
    const due = nextDue(now);
    if (due !== NEVER) alarm = setTimeout(wakeUp, Math.max(1, Math.ceil(due - now)));
  };
  let alarm: NodeJS.Timeout | undefined;
  for (const caller of callers) goOn(caller, start);
  if (pace.ratePerSecond !== undefined) wakeUp();
  const patience = setTimeout(finish, pace.durationMs + LAST_ANSWERS_MS);
  try {
    await over;
  } finally {
    isRunning = false;
    clearTimeout(alarm);
    clearTimeout(patience);
    for (const caller of callers) {
      if (!idle.has(caller)) tally.failed('not answered');
      caller.connection?.close();
    }
  }
  return tally.result(start, end);
}

/** A connection, and the moment at which its request was due. */
class Caller {
  connection: Connection | undefined;
  due = 0;
}
