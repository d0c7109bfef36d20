import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createMemoryQuota } from '../../../gateway/admission/quota/memory-quota.ts';
import { MAX_HOLD_MS, type QuotaDecision } from '../../../gateway/admission/quota/quota-port.ts';
import { STUDIO_ID } from '../../support/builders.ts';
import { History, type RestAnswer } from '../history.ts';
import { quotaViolations } from './quota.ts';

const QUOTA = { limit: 5, studioLimit: 4, windowSeconds: 3 };
const LIMITS = { key: QUOTA.limit, studio: QUOTA.studioLimit };
const KEYS = 3;
const RUNS = 3000;

const way = fc.integer({ min: 1, max: 100 });

/** A request: the time since the one before, its key, and how long it and its response are on their way; milliseconds. */
const call = fc.record({
  afterMs: fc.oneof(fc.nat(30), fc.nat(2000)),
  key: fc.nat(KEYS - 1),
  thereMs: way,
  backMs: way,
});
const calls = fc.array(call, { minLength: 10, maxLength: 60 });
type Call = typeof call extends fc.Arbitrary<infer Value> ? Value : never;

/** Makes of a decision what a faulty quota would have decided. */
type Distort = (decision: QuotaDecision) => QuotaDecision;

/** Makes requests of several keys of a studio to a quota in memory; returns the promises that the responses break. */
async function violationsAfter(requests: readonly Call[], distort: Distort = (decision) => decision) {
  let nowMs = 0;
  const quota = createMemoryQuota(QUOTA.windowSeconds, () => nowMs);
  const history = new History();
  let begin = 0;
  const waiting = requests.map(({ afterMs, key, thereMs, backMs }) => {
    begin += afterMs;
    return { begin, key: `key ${key}`, countedAt: begin + thereMs, patienceMs: MAX_HOLD_MS, backMs };
  });
  for (;;) {
    const next = waiting.toSorted((one, other) => one.countedAt - other.countedAt)[0];
    if (!next) break;
    nowMs = next.countedAt;
    const caller = { apiKeyId: next.key, studioId: STUDIO_ID };
    const decision = distort(await quota.consume(caller, LIMITS, next.patienceMs));
    next.countedAt += decision.waitMs;
    next.patienceMs -= decision.waitMs;
    if (decision.waitMs > 0) continue;
    waiting.splice(waiting.indexOf(next), 1);
    const span = { begin: next.begin, end: nowMs + next.backMs };
    const operation = { name: 'get', leadId: 'unknown' } as const;
    const told = { party: 'website', studioId: STUDIO_ID, secret: next.key, url: '', answer: answerOf(decision) };
    history.add({ kind: 'request', operation, ...told, span });
  }
  const keyBySecret = new Map(requests.map(({ key }) => [`key ${key}`, `key ${key}`]));
  return quotaViolations({ history, keyBySecret, world: {} }, QUOTA);
}

/** Returns the response to a request, with the headers of its window. */
function answerOf({ admitted, limit, remaining, resetSeconds }: QuotaDecision): RestAnswer {
  const headers = new Headers({
    'ratelimit-policy': `"default";q=${limit};w=${QUOTA.windowSeconds}`,
    ratelimit: `"default";r=${remaining};t=${resetSeconds}`,
  });
  if (!admitted) headers.set('retry-after', `${resetSeconds}`);
  return { status: admitted ? 404 : 429, code: undefined, text: '', headers };
}

test('responses of a quota that keeps its promises break none, whichever window each shows', async () => {
  await fc.assert(
    fc.asyncProperty(calls, async (requests) => {
      expect(await violationsAfter(requests)).toEqual([]);
    }),
    { numRuns: RUNS },
  );
});

/** Faults of quotas, with the promise that each breaks. */
const FAULTS: readonly [name: string, distort: Distort, broken: RegExp][] = [
  [
    'refuses for too long',
    (decision) => ({ ...decision, resetSeconds: decision.resetSeconds + (decision.admitted ? 0 : 2) }),
    /beyond the window/,
  ],
  ['admits refused requests', (decision) => ({ ...decision, admitted: true, waitMs: 0 }), /are admitted with a limit/],
  ['refuses early', (decision) => ({ ...decision, admitted: decision.remaining > 2 }), /was refused .* after \d of/],
];

test.each(FAULTS)('responses of a quota that %s break a promise', async (_, distort, broken) => {
  const found = await Promise.all(fc.sample(calls, RUNS / 10).map((requests) => violationsAfter(requests, distort)));
  expect(found.flat().join('\n')).toMatch(broken);
});
