import { afterAll, beforeAll } from 'vitest';

/**
 * Starts something for all tests of a file or a `describe`, before the hooks declared after it; stops it after them.
 *
 * @returns the started object, which can be used in tests and hooks only
 */
export function forAllTests<Started extends object>(
  start: () => Promise<Started>,
  end: (started: Started) => unknown,
): Started {
  let started: Started | undefined;
  beforeAll(async () => {
    started = await start();
  });
  afterAll(() => started && end(started));
  // A proxy, so that a test file can declare it as a constant.
  return new Proxy({} as Started, {
    get(_, name) {
      if (!started) throw new Error(`${String(name)} is not available yet: use it in tests and hooks only`);
      return started[name as keyof Started];
    },
  });
}
