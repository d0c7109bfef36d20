import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: `${import.meta.dirname}/..`,
    include: ['test/**/*.test.ts'],
    // Real servers and processes start in the suites; on a small machine they share two cores.
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
