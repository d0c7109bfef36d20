import { type EventOf, type Span, when } from '../history.ts';
import type { Life } from '../life.ts';

/** What each key may ask for. */
export interface Quota {
  readonly limit: number;
  readonly windowSeconds: number;
}

/** By how much two estimates of the end of one window may differ; milliseconds. They are told in whole seconds. */
const ESTIMATES_DIFFER_MS = 1300;

/** From an answer that took longer it cannot be told when it was counted; milliseconds. */
const QUICK_MS = 300;

/** Holds what was let in and what was refused for the quota against what each key was told. */
export function brokenOfQuota(life: Life, { limit, windowSeconds }: Quota): string[] {
  const lost = life.history.of('disturbance').filter(({ loses }) => loses.includes('counts'));
  const isLostIn = (span: Span) => lost.some((each) => each.span.begin < span.end && span.begin < each.span.end);
  const byKey = Map.groupBy(life.history.of('request'), ({ secret }) => life.keyBySecret.get(secret) ?? '');
  return [...byKey].flatMap(([key, requests]) => [
    ...early(requests, isLostIn).map((told) => `key ${key}: ${told}`),
    ...tooMany(requests, limit, windowSeconds, isLostIn).map((told) => `key ${key}: ${told}`),
  ]);
}

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

/** More in one window than the quota has. */
function tooMany(
  requests: readonly EventOf<'request'>[],
  limit: number,
  windowSeconds: number,
  isLostIn: (span: Span) => boolean,
): string[] {
  const ends = requests
    .filter((request) => isCounted(request) && request.span.end - request.span.begin < QUICK_MS)
    .map(({ answer, span }) => {
      const [, leftSeconds] = /t=(\d+)/.exec(answer?.headers.get('ratelimit') ?? '') ?? [];
      return { end: span.end + Number(leftSeconds) * 1000, span };
    })
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
      : [`${window.length} are let in where ${limit} may be: ${window.map(({ span }) => when(span)).join(', ')}`];
  });
}
