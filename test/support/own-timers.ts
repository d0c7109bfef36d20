import { afterEach, beforeEach, expect, vi } from 'vitest';

/**
 * Fakes the timers of each test of this file, and checks after each test that its timers with this delay were cleared.
 *
 * @param ms a delay that no other timer has, because the suites of a process share its timers
 */
export function expectNoTimerLeft(ms: number): void {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    vi.spyOn(globalThis, 'setTimeout');
    vi.spyOn(globalThis, 'clearTimeout');
  });
  afterEach(() => {
    const { calls, results } = vi.mocked(setTimeout).mock;
    const own = results.filter((_, index) => calls[index]?.[1] === ms).map(({ value }) => value);
    const cleared = new Set(vi.mocked(clearTimeout).mock.calls.map(([timer]) => timer));
    vi.restoreAllMocks();
    vi.useRealTimers();
    expect(own.filter((timer) => !cleared.has(timer))).toEqual([]);
  });
}
