import { defineConfig } from 'vitest/config';

/** Runs simulations with planted bugs, which takes hours; see `find-planted-bugs.ts`. */
export default defineConfig({
  test: {
    root: `${import.meta.dirname}/../..`,
    include: ['test/world/find-planted-bugs.ts'],
    hookTimeout: 60_000,
    // No shrinking: the fault that breaks a promise is known.
    env: { WORLD_SHRINK_SECONDS: '0', NODE_COMPILE_CACHE: `${import.meta.dirname}/../../node_modules/.cache/compiled` },
  },
});
