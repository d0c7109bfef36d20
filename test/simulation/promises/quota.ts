import { type EventOf, type Span, when } from '../history.ts';
import type { Simulation } from '../simulation.ts';

/** The quota of each key. */
export interface Quota {
  readonly limit: number;
  readonly windowSeconds: number;
}

/** The maximum difference between two estimates of the end of one window; milliseconds. Responses state it in whole seconds. */
const ESTIMATES_DIFFER_MS = 1300;

/** By how much `retry-after`, in whole seconds, may exceed the rest of the window; milliseconds. */
const MAX_BEYOND_MS = 1050;

/** The maximum duration of a request whose time of counting can be estimated; milliseconds. */
const QUICK_MS = 300;

/** Compares the requests that the quota admitted and refused with the limits in the responses of each key. */
export function quotaViolations(sim: Simulation, { limit, windowSeconds }: Quota): string[] {
  const lost = sim.history.of('disturbance').filter(({ loses }) => loses.includes('counts'));
  const isLostIn = (span: Span) => lost.some((each) => each.span.begin < span.end && span.begin < each.span.end);
  const byKey = Map.groupBy(sim.history.of('request'), ({ secret }) => sim.keyBySecret.get(secret) ?? '');
  return [...byKey].flatMap(([key, requests]) => [
    ...early(requests, isLostIn).map((violation) => `key ${key}: ${violation}`),
    ...tooLong(requests, isLostIn).map((violation) => `key ${key}: ${violation}`),
    ...tooMany(requests, limit, windowSeconds, isLostIn).map((violation) => `key ${key}: ${violation}`),
  ]);
}

const leftSeconds = ({ answer }: EventOf<'request'>): number =>
  Number(/t=(\d+)/.exec(answer?.headers.get('ratelimit') ?? '')?.[1]);

const left = ({ answer }: EventOf<'request'>): string =>
  /r=(\d+)/.exec(answer?.headers.get('ratelimit') ?? '')?.[1] ?? '?';

const isCounted = ({ answer }: EventOf<'request'>): boolean =>
  answer?.status !== 429 && !!answer?.headers.has('ratelimit');

/** Whether the quota of the key refused it, and not the bound on unknown keys of an address, which a valid key may meet once. */
const isRefused = ({ answer }: EventOf<'request'>): boolean =>
  answer?.status === 429 && !answer.text.includes('unknown keys');

/** Requests that were admitted before `retry-after` had passed. */
function early(requests: readonly EventOf<'request'>[], isLostIn: (span: Span) => boolean): string[] {
  const counted = requests.filter(isCounted);
  return requests.flatMap((refused) => {
    const seconds = Number(refused.answer?.headers.get('retry-after'));
    if (!isRefused(refused)) return [];
    const until = refused.span.begin + seconds * 1000;
    const tooSoon = counted.find(
      ({ span }) =>
        span.begin > refused.span.end && span.end < until && !isLostIn({ begin: refused.span.begin, end: span.end }),
    );
    if (!tooSoon) return [];
    const after = Math.round(tooSoon.span.end - refused.span.begin);
    return [`was refused for ${seconds} s, and admitted after ${after} ms`];
  });
}

/** Refusals whose `retry-after` exceeds the rest of the window, as stated to a request admitted in that window. */
function tooLong(requests: readonly EventOf<'request'>[], isLostIn: (span: Span) => boolean): string[] {
  const counted = requests.filter(isCounted);
  return requests.filter(isRefused).flatMap(({ answer, span }) => {
    const seconds = Number(answer?.headers.get('retry-after'));
    const before = counted.find((each) => {
      const leftMs = leftSeconds(each) * 1000;
      // The header has whole seconds, so the window may end up to one second earlier.
      const isOfSame = each.span.begin < span.begin && span.end < each.span.begin + leftMs - 1000;
      const isBeyond = span.begin + seconds * 1000 > each.span.end + leftMs + MAX_BEYOND_MS;
      return isOfSame && isBeyond && !isLostIn({ begin: each.span.begin, end: span.end });
    });
    if (!before) return [];
    const left = Math.round(before.span.end + leftSeconds(before) * 1000 - span.begin);
    return [`was refused for ${seconds} s, with at most ${left} ms left of the window`];
  });
}

/** Windows in which more requests were admitted than the quota allows. */
function tooMany(
  requests: readonly EventOf<'request'>[],
  limit: number,
  windowSeconds: number,
  isLostIn: (span: Span) => boolean,
): string[] {
  const ends = requests
    .filter((request) => isCounted(request) && request.span.end - request.span.begin < QUICK_MS)
    .map((request) => ({
      end: request.span.end + leftSeconds(request) * 1000,
      span: request.span,
      left: left(request),
    }))
    .toSorted((a, b) => a.end - b.end);
  const windows: (typeof ends)[] = [];
  for (const each of ends) {
    const current = windows.at(-1);
    if (current?.[0] && each.end - current[0].end < ESTIMATES_DIFFER_MS) current.push(each);
    else windows.push([each]);
  }
  return windows.flatMap((window) => {
    const begin = Math.min(...window.map(({ span }) => span.begin)) - windowSeconds * 1000;
    const end = Math.max(...window.map(({ span }) => span.end));
    return window.length <= limit || isLostIn({ begin, end })
      ? []
      : [
          `${window.length} are admitted with a limit of ${limit}: ${window.map(({ span, left }) => `${when(span)} (${left} left)`).join(', ')}`,
        ];
  });
}
