import { makeAnswer, type WholeAnswer } from './answers.ts';
import type { DriverRequest } from './driver-process.ts';
import type { Arrival } from './scripted-server.ts';

/** A request with all of its attempts. `allLeads` makes one for each page, any other call exactly one. */
export interface Exchange {
  readonly arrivals: readonly Arrival[];
  /** The cursor of the page; undefined for the first. */
  readonly cursor: string | undefined;
}

/** Groups the arrivals of a call into exchanges. */
export function groupExchanges({ call, cursor }: DriverRequest, arrivals: readonly Arrival[]): Exchange[] {
  // A check never retries.
  if (call === 'check') return arrivals.map((arrival) => ({ arrivals: [arrival], cursor }));
  return call === 'allLeads' ? groupPages(arrivals, undefined) : [{ arrivals, cursor }];
}

function groupPages(arrivals: readonly Arrival[], cursor: string | undefined): Exchange[] {
  const next = arrivals.findIndex((arrival) => findSuccess(arrival)) + 1;
  if (next === 0 || next === arrivals.length) return [{ arrivals, cursor }];
  const page = findSuccess(arrivals[next - 1]) as { readonly nextCursor: string | null };
  return [
    { arrivals: arrivals.slice(0, next), cursor },
    ...groupPages(arrivals.slice(next), page.nextCursor ?? undefined),
  ];
}

/** Returns the complete response to an attempt; undefined when it was cut or not sent. */
export const wholeAnswerTo = (arrival: Arrival | undefined): WholeAnswer | undefined =>
  arrival?.attempt && arrival.attempt.cutAfterBytes === undefined && arrival.doneAtMs !== undefined
    ? makeAnswer(arrival.attempt)
    : undefined;

/** Returns the response body of a successful attempt; undefined for any other. */
export function findSuccess(arrival: Arrival | undefined): object | undefined {
  const { status = 0, body } = wholeAnswerTo(arrival) ?? {};
  const isSuccess = status < 300 && body instanceof Object && ('lead' in body || 'leads' in body);
  return isSuccess ? body : undefined;
}

/** Returns Retry-After in whole seconds; undefined when it is missing or has another form. */
export function readRetryAfter(answer: WholeAnswer | undefined): number | undefined {
  const value = answer?.headers.get('retry-after') ?? '';
  return /^\d+$/.test(value) ? Number(value) : undefined;
}
