import { beforeEach, inject } from 'vitest';

const titles = new Set(inject('titles'));

// Before any other hook, so that a skipped test takes no time.
beforeEach(({ task, skip }) => skip(!titles.has(task.name)));

declare module 'vitest' {
  interface ProvidedContext {
    /** The tests to run, by their own titles. */
    titles: readonly string[];
  }
}
