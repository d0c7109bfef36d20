import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Readiness } from '../../common/readiness.ts';
import { times } from '../support/builders.ts';

/** Something that is there or not as the test says, and what is told of it. */
function aPart() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line) => void lines.push(JSON.parse(line)) });
  const state: { fault: Error | undefined; looks: number } = { fault: undefined, looks: 0 };
  const readiness = new Readiness(
    'the part',
    async () => {
      state.looks += 1;
      if (state.fault) throw state.fault;
    },
    log,
  );
  onTestFinished(() => readiness.close());
  readiness.start();
  const looked = async (more = 1) => {
    const enough = state.looks + more;
    await vi.waitUntil(() => state.looks >= enough, { timeout: 10_000 });
    await readiness.fault();
  };
  return { state, readiness, lines, looked };
}

test('the check runs once a second, whatever the number of callers', async () => {
  const { state, readiness } = aPart();
  const until = performance.now() + 1500;
  let asked = 0;
  while (performance.now() < until) {
    await Promise.all(times(50, () => readiness.fault()));
    asked += 50;
    await sleep(5);
  }
  expect(asked).toBeGreaterThan(1000);
  // At the start and a second later, and perhaps once more on a machine that was busy.
  expect(state.looks).toBeGreaterThanOrEqual(2);
  expect(state.looks).toBeLessThanOrEqual(3);
});

test('the reason is logged when it changes and again while it lasts, and its end is logged', async () => {
  const { state, readiness, lines, looked } = aPart();
  const now = vi.spyOn(performance, 'now');
  onTestFinished(() => now.mockRestore());
  await readiness.fault();
  expect(lines).toEqual([]);

  state.fault = new Error('does not answer', { cause: new Error('connect ECONNREFUSED') });
  await looked(2);
  const line = { level: 40, msg: 'not ready: the part is unavailable', lastsMs: expect.any(Number) };
  expect(lines).toEqual([{ ...line, reason: 'does not answer: connect ECONNREFUSED' }]);

  state.fault = new Error('indexes are missing: openContact');
  await looked(2);
  expect(lines.slice(1)).toEqual([{ ...line, reason: 'indexes are missing: openContact' }]);

  const later = performance.now() + 31_000;
  now.mockReturnValue(later);
  await looked(2);
  expect(lines.slice(2)).toEqual([{ ...line, reason: 'indexes are missing: openContact' }]);
  expect(lines[2]?.lastsMs).toBeGreaterThan(31_000);

  state.fault = undefined;
  await looked(2);
  expect(lines.slice(3)).toEqual([{ level: 30, lastedMs: expect.any(Number), msg: 'the part is available again' }]);
});

test('credentials in an address are not reported', async () => {
  const { state, readiness, lines, looked } = aPart();
  state.fault = new Error('cannot reach mongodb://user:pa:ss@host:1/db, nor mongodb+srv://other:secret@far/');
  await looked(2);
  expect(await readiness.fault()).toBe('cannot reach mongodb://…@host:1/db, nor mongodb+srv://…@far/');
  expect(JSON.stringify(lines)).not.toMatch(/pa:ss|secret|user/);
});

test('a wait for a change ends at the change, even one before the wait, or at a signal', async () => {
  const { state, readiness, looked } = aPart();
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
  await looked();
  over.abort();
  await again;
});
