import { type EventOf, type Span, when } from '../history.ts';
import type { Life } from '../life.ts';

/** What each key may ask for. */
export interface Quota {
  readonly limit: number;
  readonly windowSeconds: number;
}

/** By how much two estimates of the end of one window may differ; milliseconds. They are told in whole seconds. */
const ESTIMATES_DIFFER_MS = 1300;

/** By how much somebody may be told to wait longer than a window lasts, which is told in whole seconds; milliseconds. */
const MAX_BEYOND_MS = 1050;

/** From an answer that took longer it cannot be told when it was counted; milliseconds. */
const QUICK_MS = 300;

/** Holds what was let in and what was refused for the quota against what each key was told. */
export function brokenOfQuota(life: Life, { limit, windowSeconds }: Quota): string[] {
  const lost = life.history.of('disturbance').filter(({ loses }) => loses.includes('counts'));
  const isLostIn = (span: Span) => lost.some((each) => each.span.begin < span.end && span.begin < each.span.end);
  const byKey = Map.groupBy(life.history.of('request'), ({ secret }) => life.keyBySecret.get(secret) ?? '');
  return [...byKey].flatMap(([key, requests]) => [
    ...early(requests, isLostIn).map((told) => `key ${key}: ${told}`),
    ...tooLong(requests, isLostIn).map((told) => `key ${key}: ${told}`),
    ...tooMany(requests, limit, windowSeconds, isLostIn).map((told) => `key ${key}: ${told}`),
  ]);
}

const leftSeconds = ({ answer }: EventOf<'request'>): number =>
  Number(/t=(\d+)/.exec(answer?.headers.get('ratelimit') ?? '')?.[1]);

const left = ({ answer }: EventOf<'request'>): string =>
  /r=(\d+)/.exec(answer?.headers.get('ratelimit') ?? '')?.[1] ?? '?';

const isCounted = ({ answer }: EventOf<'request'>): boolean =>
  answer?.status !== 429 && !!answer?.headers.has('ratelimit');

/** Who came before the time that was told, and was let in. A second may be told where less is left of the window. */
function early(requests: readonly EventOf<'request'>[], isLostIn: (span: Span) => boolean): string[] {
  const counted = requests.filter(isCounted);
  return requests.flatMap((refused) => {
    const seconds = Number(refused.answer?.headers.get('retry-after'));
    if (refused.answer?.status !== 429 || seconds < 2) return [];
    const until = refused.span.begin + seconds * 1000;
    const tooSoon = counted.find(
      ({ span }) =>
        span.begin > refused.span.end && span.end < until && !isLostIn({ begin: refused.span.begin, end: span.end }),
    );
    if (!tooSoon) return [];
    const after = Math.round(tooSoon.span.end - refused.span.begin);
    return [`was told to wait for ${seconds} s, and let in after ${after} ms`];
  });
}

/** Who was told to wait for longer than is left of the window, by what somebody was told who had been let in in it. */
function tooLong(requests: readonly EventOf<'request'>[], isLostIn: (span: Span) => boolean): string[] {
  const counted = requests.filter(isCounted);
  return requests.flatMap(({ answer, span }) => {
    const seconds = Number(answer?.headers.get('retry-after'));
    if (answer?.status !== 429) return [];
    const before = counted.find((each) => {
      const leftMs = leftSeconds(each) * 1000;
      // Told in whole seconds, the end of its window may be a second earlier.
      const isOfSame = each.span.begin < span.begin && span.end < each.span.begin + leftMs - 1000;
      const isBeyond = span.begin + seconds * 1000 > each.span.end + leftMs + MAX_BEYOND_MS;
      return isOfSame && isBeyond && !isLostIn({ begin: each.span.begin, end: span.end });
    });
    if (!before) return [];
    const left = Math.round(before.span.end + leftSeconds(before) * 1000 - span.begin);
    return [`was told to wait for ${seconds} s, where at most ${left} ms were left of the window`];
  });
}

/** More in one window than the quota has. */
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
          `${window.length} are let in where ${limit} may be: ${window.map(({ span, left }) => `${when(span)} (${left} left)`).join(', ')}`,
        ];
  });
}
