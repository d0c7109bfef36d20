import { defineConfig } from 'vitest/config';

/** Has lives lived with planted bugs, which takes hours; `bites.ts` says more. */
export default defineConfig({
  test: {
    root: `${import.meta.dirname}/../..`,
    include: ['test/world/bites.ts'],
    hookTimeout: 60_000,
    // What breaks a promise is known beforehand: the shortest way to it is not looked for.
    env: { WORLD_SHRINK_SECONDS: '0', NODE_COMPILE_CACHE: `${import.meta.dirname}/../../node_modules/.cache/compiled` },
  },
});
