import { spawn } from 'node:child_process';
import { ROOT, type RunningProcess, start, watch } from '../support/processes.ts';
import type { DatabaseKind } from '../support/website-databases.ts';

/** Starts a driver. */
export type StartDriver = (args: readonly string[], env: Readonly<Record<string, string>>) => RunningProcess;

/** An outbox in a language, as its driver has it. */
export interface Language {
  readonly name: string;
  /** What must succeed where it can be run. */
  readonly tools: readonly string[];
  readonly databases: readonly DatabaseKind[];
  /** Whether it has a worker that goes on by itself. */
  readonly hasRun: boolean;
  /**
   * Gets what the driver needs.
   *
   * @param scratch a folder for it
   */
  prepare(scratch: string): Promise<StartDriver>;
}

export const LANGUAGES: readonly Language[] = [
  {
    name: 'Node',
    tools: [],
    databases: ['SQLite', 'PostgreSQL'],
    hasRun: true,
    prepare: async () => (args, env) => start('test/outbox/node-driver.ts', { args, env }),
  },
  {
    name: 'PHP',
    tools: [`php -r 'curl_init(); new PDO("sqlite::memory:"); exit(count(PDO::getAvailableDrivers()) < 3 ? 1 : 0);'`],
    databases: ['SQLite', 'MariaDB', 'PostgreSQL'],
    hasRun: false,
    prepare: async () => startsWith('php', 'sdk/php/outbox-driver.php'),
  },
];

/** How a driver is started that some program runs. */
function startsWith(program: string, driver: string): StartDriver {
  return (args, env) =>
    watch(
      spawn(program, [driver, ...args], {
        cwd: ROOT,
        env: { PATH: process.env.PATH, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    );
}
