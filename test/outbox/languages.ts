import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { ROOT, type RunningProcess, start, watch } from '../support/processes.ts';
import { PYTHON_TOOL, pythonForTests } from '../support/python.ts';
import type { DatabaseKind } from '../support/website-databases.ts';

/** Starts a driver. */
export type StartDriver = (args: readonly string[], env: Readonly<Record<string, string>>) => RunningProcess;

/** The outbox of a language, by its driver. */
export interface Language {
  readonly name: string;
  /** Commands that succeed on machines that can run it. */
  readonly tools: readonly string[];
  readonly databases: readonly DatabaseKind[];
  /** Whether it has the command `run`. */
  readonly hasRun: boolean;
  /** Installs the driver's dependencies. */
  prepare(): Promise<StartDriver>;
}

const startPython = async (...options: string[]): Promise<StartDriver> =>
  runBy(join(await pythonForTests(), 'python'), 'sdk/python/outbox_driver.py', ...options);

const PYTHON_BY_SQLALCHEMY: Language = {
  name: 'Python by SQLAlchemy',
  tools: [PYTHON_TOOL],
  databases: ['PostgreSQL'],
  hasRun: true,
  prepare: () => startPython('--sqlalchemy'),
};

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
    tools: [
      `php -r 'curl_init(); new PDO("sqlite::memory:"); exit((int) (array_diff(["sqlite", "mysql", "pgsql"], PDO::getAvailableDrivers()) !== []));'`,
    ],
    databases: ['SQLite', 'MariaDB', 'PostgreSQL'],
    hasRun: false,
    prepare: async () => runBy('php', 'sdk/php/outbox-driver.php'),
  },
  {
    name: 'Python',
    tools: [PYTHON_TOOL],
    databases: ['SQLite', 'MariaDB', 'PostgreSQL'],
    hasRun: true,
    prepare: () => startPython(),
  },
  // SQLAlchemy is slow to load: nightly only.
  ...(process.env.SOAK ? [PYTHON_BY_SQLALCHEMY] : []),
];

/** Starts a driver with an interpreter. */
function runBy(program: string, driver: string, ...options: string[]): StartDriver {
  return (args, env) =>
    watch(
      spawn(program, [driver, ...args, ...options], {
        cwd: ROOT,
        env: { PATH: process.env.PATH, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    );
}
