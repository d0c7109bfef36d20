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

type Request = EventOf<'request'>;

/** Compares the requests that the quota admitted and refused with the limits in the responses of each key. */
export function quotaViolations(sim: Simulation, quota: Quota): string[] {
  const lost = sim.history.of('disturbance').filter(({ loses }) => loses.includes('counts'));
  const isLostIn = (span: Span) => lost.some((each) => each.span.begin < span.end && span.begin < each.span.end);
  const byKey = Map.groupBy(sim.history.of('request'), ({ secret }) => sim.keyBySecret.get(secret) ?? '');
  return [...byKey].flatMap(([key, requests]) => {
    const counted = requests.filter(({ answer }) => answer?.status !== 429 && answer?.headers.has('ratelimit'));
    const refused = requests.filter(({ answer }) => answer?.status === 429);
    return [...atOddTimes(counted, refused, isLostIn), ...tooMany(counted, quota, isLostIn)].map(
      (violation) => `key ${key}: ${violation}`,
    );
  });
}

/** The number of seconds that a response says are left of the window. */
const leftMs = ({ answer }: Request): number =>
  1000 * Number(/t=(\d+)/.exec(answer?.headers.get('ratelimit') ?? '')?.[1]);

/** Requests that were admitted before `retry-after` had passed, and refusals with one beyond the rest of the window. */
function atOddTimes(counted: readonly Request[], refused: readonly Request[], isLostIn: (span: Span) => boolean) {
  return refused.flatMap(({ answer, span: { begin, end } }) => {
    const untilMs = begin + 1000 * Number(answer?.headers.get('retry-after'));
    const early = counted.find(
      ({ span }) => span.begin > end && span.end < untilMs && !isLostIn({ begin, end: span.end }),
    );
    const beyond = counted.find(({ span, ...request }) => {
      const endMs = leftMs({ span, ...request });
      // The header has whole seconds, so the window may end up to one second earlier.
      const isOfSame = span.begin < begin && end < span.begin + endMs - 1000;
      return isOfSame && untilMs > span.end + endMs + MAX_BEYOND_MS && !isLostIn({ begin: span.begin, end });
    });
    const what = `was refused at ${when({ begin, end })} for ${Math.round(untilMs - begin)} ms`;
    return [
      ...(early ? [`${what}, and admitted at ${when(early.span)}`] : []),
      ...(beyond ? [`${what}, beyond the window of ${when(beyond.span)}, which ends in ${leftMs(beyond)} ms`] : []),
    ];
  });
}

/** Windows in which more requests were admitted than the quota allows. */
function tooMany(counted: readonly Request[], { limit, windowSeconds }: Quota, isLostIn: (span: Span) => boolean) {
  const ends = counted
    .filter(({ span }) => span.end - span.begin < QUICK_MS)
    .map((request) => ({ end: request.span.end + leftMs(request), span: request.span }))
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
    if (window.length <= limit || isLostIn({ begin, end })) return [];
    return [
      `${window.length} are admitted with a limit of ${limit}: ${window.map(({ span }) => when(span)).join(', ')}`,
    ];
  });
}
