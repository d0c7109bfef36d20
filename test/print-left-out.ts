import type { Reporter, Vitest } from 'vitest/node';
import { LEFT_OUT, LONG, QUICK } from './lanes.ts';

/** Prints what `npm test` has left out, before the numbers of the next reporter. */
export default class LeftOut implements Reporter {
  #isQuick = false;

  onInit({ projects, config }: Vitest): void {
    this.#isQuick = projects.length === 1 && config.project.includes('quick');
  }

  onTestRunEnd(): void {
    if (!this.#isQuick) return;
    console.log(`
npm test has run ${QUICK.length} suites, which prove the contract, each RPC and each command with Node alone. It has left out ${LEFT_OUT.length} suites:
- what needs servers, browsers or other languages (MongoDB, Redis, Prometheus, PHP, Python, Go, …);`);
    for (const what of Object.values(LONG)) console.log(`- ${what};`);
    console.log(
      '`npm run test:all` runs everything that this machine has the servers for, with the clients and the examples.',
    );
  }
}
