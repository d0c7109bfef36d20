import { beforeEach, inject } from 'vitest';

const title = inject('title');

// Runs before all other hooks, so that a skipped test takes no time.
beforeEach(({ task, skip }) => skip(task.name !== title));

declare module 'vitest' {
  interface ProvidedContext {
    /** The test to run, by its own title. */
    title: string;
  }
}
