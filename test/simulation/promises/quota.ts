import { type EventOf, type Span, when } from '../history.ts';
import type { Count } from '../redis/redis-deployment.ts';
import { ANSWERED_WITHIN_MS } from '../scenarios/requests.ts';
import type { Simulation } from '../simulation.ts';
import type { World } from '../world.ts';

/** The quota of each key, and of all keys of a studio together. */
export interface Quota {
  readonly limit: number;
  /** Differs from `limit`, so that responses show whose quota they are about. */
  readonly studioLimit?: number;
  readonly windowSeconds: number;
}

/** The maximum difference between two estimates of the end of a window, which responses give in whole seconds; milliseconds. */
const ESTIMATES_DIFFER_MS = 1300;

/** By how much `retry-after`, in whole seconds, may exceed the rest of the window; milliseconds. */
const MAX_BEYOND_MS = 1050;

/** The maximum duration of a request whose time of counting can be estimated; milliseconds. */
const QUICK_MS = 300;

type Request = EventOf<'request'>;

/** The parts of a simulation that show what the quotas did. */
type Observed = Pick<Simulation, 'history' | 'keyBySecret'> & { readonly world: Pick<World, 'counts'> };

/** Compares admitted and refused requests of each key and studio with the limits in the responses. */
export function quotaViolations(sim: Observed, quota: Quota): string[] {
  const lost = sim.history.of('disturbance').filter(({ loses }) => loses.includes('counts'));
  const isLostIn = (span: Span) => lost.some((each) => each.span.begin < span.end && span.begin < each.span.end);
  const requests = sim.history.of('request');
  const counts = sim.world.counts && Map.groupBy(sim.world.counts, ({ apiKeyId }) => apiKeyId);
  const byKey = Map.groupBy(requests, ({ secret }) => sim.keyBySecret.get(secret) ?? '');
  const aboutKeys = [...byKey].flatMap(([key, all]) => {
    const counted = counts?.get(key) ?? [];
    const miscounted = counts ? [...uncounted(all.filter(isCounted), counted), ...countedTwice(all, counted)] : [];
    return [...compareWindows(all, quota.limit), ...miscounted].map((violation) => `key ${key}: ${violation}`);
  });
  const byStudio = Map.groupBy(requests, ({ studioId }) => studioId);
  const aboutStudios = [...byStudio].flatMap(([studioId, all]) =>
    compareWindows(all, quota.studioLimit).map((violation) => `the keys of ${studioId}: ${violation}`),
  );
  return [...aboutKeys, ...aboutStudios];

  /** Compares the responses about windows with a limit. */
  function compareWindows(all: readonly Request[], limit: number | undefined): string[] {
    const shown = all.filter(({ answer }) => answer?.headers.get('ratelimit-policy')?.includes(`;q=${limit};`));
    const refused = shown.filter(({ answer }) => answer?.status === 429);
    const counted = shown.filter(isCounted);
    return [
      ...(limit ? causeless(sim, all, refused, [limit, quota.windowSeconds], isLostIn) : []),
      ...endedEarly(all.filter(isCounted), refused, isLostIn),
      ...beyondWindow(counted, refused, isLostIn),
      ...(limit ? tooMany(counted, limit, quota.windowSeconds, isLostIn) : []),
    ];
  }
}

const isCounted = ({ answer }: Request): boolean => answer?.status !== 429 && !!answer?.headers.has('ratelimit');

/** Returns served requests that were not counted while they were in flight. Each count is for one request. */
function uncounted(served: readonly Request[], counts: readonly Count[]): string[] {
  const free = new Set(counts);
  // In the order of their ends, each takes the first possible count. That finds one for all, if any assignment does.
  return served
    .toSorted((a, b) => a.span.end - b.span.end)
    .flatMap(({ span }) => {
      const own = [...free].find(({ atMs }) => atMs > span.begin && atMs < span.end);
      if (own) free.delete(own);
      return own ? [] : [`${when(span)}: a request was served, and not counted`];
    });
}

/** Returns the latest time at which a request is counted: a suspended server may still count an abandoned one. */
const countedByMs = ({ answer, span }: Request): number =>
  span.end + (answer && answer.status !== 503 ? 0 : ANSWERED_WITHIN_MS);

/** Returns counts for which there is no request, because one was counted twice. */
function countedTwice(sent: readonly Request[], counts: readonly Count[]): string[] {
  const free = new Set(sent.toSorted((a, b) => countedByMs(a) - countedByMs(b)));
  return counts.flatMap(({ atMs }) => {
    const own = free.values().find((request) => request.span.begin < atMs && atMs < countedByMs(request));
    if (own) free.delete(own);
    return own ? [] : [`${when({ begin: atMs, end: atMs })}: a request was counted that nobody sent`];
  });
}

/** Returns refusals before which the limit was not used up: within one window, and the second by which refusals may outlast it. */
function causeless(
  { history }: Observed,
  all: readonly Request[],
  refused: readonly Request[],
  [limit, windowSeconds]: readonly [number, number],
  isLostIn: (span: Span) => boolean,
): string[] {
  const malformed = history.of('other').filter(({ party }) => party === 'website');
  const spans = [
    ...all.map((request) => ({ begin: request.span.begin, end: countedByMs(request) })),
    ...malformed.map((each) => each.span),
  ];
  return refused.flatMap(({ span }) => {
    const since = span.begin - windowSeconds * 1000 - 1000;
    const sent = spans.filter(({ begin, end }) => begin < span.end && end > since);
    // When the clock of Redis is set back, a window begins again with the next request.
    const before = Math.max(0, ...all.map((each) => each.span.end).filter((end) => end <= since));
    const isExcused = isLostIn({ begin: Math.min(before, since - windowSeconds * 1000), end: span.end });
    return sent.length > limit || isExcused
      ? []
      : [`was refused at ${when(span)} after ${sent.length} of ${limit} requests`];
  });
}

/** Returns how much of the window is left according to a response; milliseconds. */
const leftMs = ({ answer }: Request): number =>
  1000 * Number(/t=(\d+)/.exec(answer?.headers.get('ratelimit') ?? '')?.[1]);

/** Returns the time until which a request was refused; milliseconds. */
const refusedUntilMs = ({ answer, span }: Request): number =>
  span.begin + 1000 * Number(answer?.headers.get('retry-after'));

const formatRefusal = (refusal: Request): string =>
  `was refused at ${when(refusal.span)} for ${Math.round(refusedUntilMs(refusal) - refusal.span.begin)} ms`;

/** Returns refusals after which a request was admitted before `retry-after` had passed, whatever window its response shows. */
function endedEarly(counted: readonly Request[], refused: readonly Request[], isLostIn: (span: Span) => boolean) {
  return refused.flatMap((refusal) => {
    const { begin, end } = refusal.span;
    const untilMs = refusedUntilMs(refusal);
    const early = counted.find(
      ({ span }) => span.begin > end && span.end < untilMs && !isLostIn({ begin, end: span.end }),
    );
    return early ? [`${formatRefusal(refusal)}, and admitted at ${when(early.span)}`] : [];
  });
}

/** Returns refusals with a `retry-after` beyond the rest of their window, according to earlier responses that show that window. */
function beyondWindow(shown: readonly Request[], refused: readonly Request[], isLostIn: (span: Span) => boolean) {
  return refused.flatMap((refusal) => {
    const { begin, end } = refusal.span;
    const beyond = shown.find(({ span, ...request }) => {
      const endMs = leftMs({ span, ...request });
      // The header has whole seconds, so the window may end up to one second earlier.
      const isOfSame = span.begin < begin && end < span.begin + endMs - 1000;
      const isBeyond = refusedUntilMs(refusal) > span.end + endMs + MAX_BEYOND_MS;
      return isOfSame && isBeyond && !isLostIn({ begin: span.begin, end });
    });
    return beyond
      ? [`${formatRefusal(refusal)}, beyond the window of ${when(beyond.span)}, which ends in ${leftMs(beyond)} ms`]
      : [];
  });
}

/** Returns windows in which more requests were admitted than the quota allows. */
function tooMany(
  counted: readonly Request[],
  limit: number,
  windowSeconds: number,
  isLostIn: (span: Span) => boolean,
): string[] {
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
