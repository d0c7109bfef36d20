import { createHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { openConnection } from './connection.ts';

export interface Pace {
  /** Each connection has at most one request in flight. */
  readonly connections: number;
  readonly durationMs: number;
  /**
   * The rate of an open loop: requests become due whether or not earlier ones have finished. Latency counts from then, so it includes
   * queueing. Undefined: each connection sends its next request after each response.
   */
  readonly ratePerSecond?: number | undefined;
}

/** The result of a load. */
export interface LoadResult {
  /** The number of expected responses. */
  readonly answered: number;
  /** The numbers of all other results, by kind. */
  readonly failures: Readonly<Record<string, number>>;
  /** The time from the start of the load to its end, or to the last response after that. */
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The requests to send, and the expected statuses. */
interface Requests {
  next(): Buffer;
  readonly expected: readonly number[];
}

/** The time for the last responses after the end of a load. */
const LAST_RESPONSES_MS = 10_000;

/** Sends requests to an address for some time, and counts the results. Rejects when a connection is refused. */
export async function drive(url: URL, requests: Requests, pace: Pace): Promise<LoadResult> {
  const callers = await Promise.all(Array.from({ length: pace.connections }, () => openCaller(url, requests)));
  const closeAll = (reason: string) => {
    for (const { close } of callers) close(reason);
  };
  const deadline = setTimeout(() => closeAll('not answered'), pace.durationMs + LAST_RESPONSES_MS);
  try {
    return await callAtPace(
      callers.map(({ call }) => call),
      pace,
    );
  } finally {
    clearTimeout(deadline);
    closeAll('the load has ended');
  }
}

/** Opens a caller with its own connection, which it replaces when the connection ends. */
async function openCaller(url: URL, requests: Requests) {
  let connection = await openConnection(url);
  return {
    async call(): Promise<string | undefined> {
      try {
        const { status } = await connection.send(requests.next());
        return requests.expected.includes(status) ? undefined : `status ${status}`;
      } catch (error) {
        connection = await openConnection(url);
        return (error as Error).message;
      }
    },
    close: (reason: string) => connection.close(reason),
  };
}

/**
 * Makes calls concurrently, and repeats each until the end of the load.
 *
 * @param calls return the reason of a failure, or undefined
 */
export async function callAtPace(
  calls: readonly (() => Promise<string | undefined>)[],
  { durationMs, ratePerSecond }: Pace,
): Promise<LoadResult> {
  const latenciesUs = createHistogram();
  const failures: Record<string, number> = {};
  const start = performance.now();
  const end = start + durationMs;
  let sent = 0;
  let answered = 0;
  let lastAnswer = end;
  const nextDue = () => {
    if (ratePerSecond === undefined) return performance.now();
    sent += 1;
    return start + ((sent - 1) / ratePerSecond) * 1000;
  };
  const keepCalling = async (call: () => Promise<string | undefined>) => {
    for (let due = nextDue(); due < end; due = nextDue()) {
      // The timer adds up to a millisecond to a latency; a busy loop would take processor time from the target.
      const waitMs = Math.ceil(due - performance.now());
      if (waitMs > 0) await sleep(waitMs);
      const failure = await call();
      if (failure === undefined) {
        const now = performance.now();
        latenciesUs.record(Math.max(1, Math.round((now - due) * 1000)));
        answered += 1;
        lastAnswer = Math.max(lastAnswer, now);
      } else {
        failures[failure] = (failures[failure] ?? 0) + 1;
      }
    }
  };
  await Promise.all(calls.map(keepCalling));
  return {
    answered,
    failures,
    seconds: (lastAnswer - start) / 1000,
    p50Ms: latenciesUs.percentile(50) / 1000,
    p99Ms: latenciesUs.percentile(99) / 1000,
  };
}
