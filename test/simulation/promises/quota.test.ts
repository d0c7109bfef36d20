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

const latency = fc.integer({ min: 1, max: 100 });

/** A request: the time since the one before, its key, and the latencies of request and response; milliseconds. */
const call = fc.record({
  afterMs: fc.oneof(fc.nat(30), fc.nat(2000)),
  key: fc.nat(KEYS - 1),
  thereMs: latency,
  backMs: latency,
});
const calls = fc.array(call, { minLength: 10, maxLength: 60 });
type Call = typeof call extends fc.Arbitrary<infer Value> ? Value : never;

/** Turns a decision into that of a faulty quota. */
type Distort = (decision: QuotaDecision) => QuotaDecision;

/** Sends requests with several keys of a studio to a quota in memory; returns the promises that the responses break. */
async function findViolations(requests: readonly Call[], distort: Distort = (decision) => decision) {
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
    const sent = { party: 'website', studioId: STUDIO_ID, secret: next.key, url: '', answer: toAnswer(decision) };
    history.add({ kind: 'request', operation, ...sent, span });
  }
  const keyBySecret = new Map(requests.map(({ key }) => [`key ${key}`, `key ${key}`]));
  return quotaViolations({ history, keyBySecret, world: {} }, QUOTA);
}

/** Returns the response that a gateway gives after a decision, with the headers of the window. */
function toAnswer({ admitted, limit, remaining, resetSeconds }: QuotaDecision): RestAnswer {
  const headers = new Headers({
    'ratelimit-policy': `"default";q=${limit};w=${QUOTA.windowSeconds}`,
    ratelimit: `"default";r=${remaining};t=${resetSeconds}`,
  });
  if (!admitted) headers.set('retry-after', `${resetSeconds}`);
  return { status: admitted ? 404 : 429, code: undefined, text: '', headers };
}

test('a correct quota breaks no promise, whichever window a response shows', async () => {
  await fc.assert(
    fc.asyncProperty(calls, async (requests) => {
      expect(await findViolations(requests)).toEqual([]);
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

test.each(FAULTS)('a quota that %s breaks a promise', async (_, distort, broken) => {
  const found = await Promise.all(fc.sample(calls, RUNS / 10).map((requests) => findViolations(requests, distort)));
  expect(found.flat().join('\n')).toMatch(broken);
});
