import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Readiness } from '../../common/readiness.ts';

/** Returns a dependency whose `fault` the test sets, its readiness, and the lines that are logged. */
function aDependency() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line) => void lines.push(JSON.parse(line)) });
  const state: { fault: Error | undefined; checks: number } = { fault: undefined, checks: 0 };
  const readiness = new Readiness(
    'the part',
    async () => {
      state.checks += 1;
      if (state.fault) throw state.fault;
    },
    log,
  );
  onTestFinished(() => readiness.close());
  readiness.start();
  const checked = async (more = 1) => {
    const enough = state.checks + more;
    await expect.poll(() => state.checks).toBeGreaterThanOrEqual(enough);
    await readiness.fault();
  };
  return { state, readiness, lines, checked };
}

test('logs the reason for not being ready when it changes, every 30 s, and when it ends', async () => {
  const { state, readiness, lines, checked } = aDependency();
  const now = vi.spyOn(performance, 'now');
  onTestFinished(() => now.mockRestore());
  await readiness.fault();
  expect(lines).toEqual([]);

  state.fault = new Error('does not answer', { cause: new Error('connect mongodb://user:pa:ss@host:1/db') });
  await checked(2);
  const line = { level: 40, msg: 'not ready: the part is unavailable', lastsMs: expect.any(Number) };
  expect(lines).toEqual([{ ...line, reason: 'does not answer: connect mongodb://…@host:1/db' }]);

  state.fault = new Error('indexes are missing: openContact');
  await checked(2);
  expect(lines.slice(1)).toEqual([{ ...line, reason: 'indexes are missing: openContact' }]);

  const later = performance.now() + 31_000;
  now.mockReturnValue(later);
  await checked(2);
  expect(lines.slice(2)).toEqual([{ ...line, reason: 'indexes are missing: openContact' }]);
  expect(lines[2]?.lastsMs).toBeGreaterThan(31_000);

  state.fault = undefined;
  await checked(2);
  expect(lines.slice(3)).toEqual([{ level: 30, lastedMs: expect.any(Number), msg: 'the part is available again' }]);
});

test('a wait for a change of readiness ends at a change, even an earlier one, or at a signal', async () => {
  const { state, readiness, checked } = aDependency();
  await readiness.fault();
  const { changeCount } = readiness;
  const never = new AbortController();
  const waiting = readiness.changed(changeCount, never.signal);
  state.fault = new Error('away');
  await waiting;
  expect(await readiness.fault()).toBe('away');
  await readiness.changed(changeCount, never.signal);

  const over = new AbortController();
  const again = readiness.changed(readiness.changeCount, over.signal);
  await checked();
  over.abort();
  await again;
});
