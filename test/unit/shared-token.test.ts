import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Secret } from '../../common/secret.ts';
import { tokenHash } from '../../src/callers-file.ts';
import { Callers } from '../../src/rpc/callers.ts';

const MINUTE_MS = 60_000;
const [A, B, C] = ['token-a-of-the-core', 'token-b-of-the-core', 'token-c-of-the-core'];
const makeSecret = (token: string) => new Secret(token);
const findCaller = (callers: Callers, token: string) =>
  callers.find({ authorization: `Bearer ${token}`, certificateSubject: undefined });
const accepted = (callers: Callers) => [A, B, C].filter((token) => findCaller(callers, token));

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a replaced token works for five minutes, and then its streams end', () => {
  const callers = new Callers(makeSecret(A), undefined);
  const { withdrawn } = findCaller(callers, A) ?? {};
  callers.share(makeSecret(B));
  vi.advanceTimersByTime(5 * MINUTE_MS - 1);
  expect([accepted(callers), withdrawn?.aborted]).toEqual([[A, B], false]);
  vi.advanceTimersByTime(1);
  expect([accepted(callers), withdrawn?.aborted]).toEqual([[B], true]);
});

test('a replaced token that comes back stays valid', () => {
  const callers = new Callers(makeSecret(A), undefined);
  callers.share(makeSecret(B));
  vi.advanceTimersByTime(MINUTE_MS);
  callers.share(makeSecret(A));
  vi.advanceTimersByTime(4 * MINUTE_MS);
  expect(accepted(callers)).toEqual([A, B]);
  vi.advanceTimersByTime(MINUTE_MS);
  expect(accepted(callers)).toEqual([A]);
});

test('a token is valid while it is the newest and five minutes longer, in any order of changes', () => {
  const change = fc.record({ token: fc.constantFrom(A, B, C), afterMinutes: fc.integer({ min: 0, max: 7 }) });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
      const callers = new Callers(makeSecret(A), undefined);
      const validUntil = new Map<string, number>([[A, Number.POSITIVE_INFINITY]]);
      let now = 0;
      let newest: string = A;
      for (const { token, afterMinutes } of changes) {
        now += afterMinutes;
        vi.advanceTimersByTime(afterMinutes * MINUTE_MS);
        expect(accepted(callers)).toEqual([A, B, C].filter((each) => (validUntil.get(each) ?? 0) > now));
        validUntil.set(newest, now + 5).set(token, Number.POSITIVE_INFINITY);
        newest = token;
        callers.share(makeSecret(token));
      }
    }),
  );
});

test('a shared token that the callers file lists has the roles of the file, in either order', () => {
  const entries = { crm: { may: ['crm' as const], tokens: [{ sha256: tokenHash(B) }] } };
  const callers = new Callers(makeSecret(A), entries);
  callers.share(makeSecret(B));
  expect(findCaller(callers, B)?.name).toBe('crm');
  callers.replace({});
  expect(accepted(callers)).toEqual([A]);
  vi.advanceTimersByTime(5 * MINUTE_MS);
  // Even without any valid token, a caller without a token is refused.
  expect([accepted(callers), callers.find({ authorization: undefined, certificateSubject: undefined })]).toEqual([
    [],
    undefined,
  ]);
});

test('a former token that the callers file listed meanwhile is valid again as the newest', () => {
  const callers = new Callers(makeSecret(A), undefined);
  callers.share(makeSecret(B));
  callers.replace({ crm: { may: ['crm'], tokens: [{ sha256: tokenHash(A) }] } });
  callers.replace({});
  callers.share(makeSecret(A));
  vi.advanceTimersByTime(5 * MINUTE_MS);
  expect([accepted(callers), vi.getTimerCount()]).toEqual([[A], 0]);
});
