import type { TestProject } from 'vitest/node';
import { LEFT_OUT, LONG, QUICK } from './lanes.ts';

/** Prints at the end of `npm test` what it has left out. */
export default function setUp({ vitest }: TestProject): (() => void) | undefined {
  if (vitest.projects.length > 1) return undefined;
  return () => {
    console.log(`
npm test has run ${QUICK.length} suites, which prove the contract, each RPC and each command with Node alone. It has left out ${LEFT_OUT.length} suites:
- what needs servers, browsers or other languages (MongoDB, Redis, Prometheus, PHP, Python, Go, …);`);
    for (const what of Object.values(LONG)) console.log(`- ${what};`);
    console.log('`npm run test:all` runs everything that this machine has the servers for.');
  };
}
