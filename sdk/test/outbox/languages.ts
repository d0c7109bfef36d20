import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { PLANTED, ROOT } from '../../../test/tools/processes.ts';
import { PYTHON_TOOL, pythonForTests } from '../support/python.ts';
import type { DatabaseKind } from '../support/website-databases.ts';
import { Drivers } from './drivers.ts';

/** The outbox of a language, by its driver. */
export interface Language {
  readonly name: string;
  /** Commands that succeed on machines that can run the driver. */
  readonly tools: readonly string[];
  readonly databases: readonly DatabaseKind[];
  /** Whether the driver has the command `run`. */
  readonly hasRun: boolean;
  /** Installs the driver's dependencies. */
  prepare(): Promise<Drivers>;
}

const startPython = async (...options: string[]): Promise<Drivers> =>
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
    prepare: async () =>
      runBy(process.execPath, '--disable-warning=ExperimentalWarning', 'sdk/test/outbox/node-driver.ts'),
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

/** Returns the driver that an interpreter runs. */
function runBy(program: string, ...args: string[]): Drivers {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const env = { PATH, NODE_COMPILE_CACHE, ...PLANTED };
  return new Drivers(() => spawn(program, args, { cwd: ROOT, env, stdio: ['pipe', 'pipe', 'pipe'] }));
}
