import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { freePort, killOnExit } from '../../../test/tools/servers.ts';

/** The kinds of database that websites use. */
export type DatabaseKind = 'SQLite' | 'MariaDB' | 'PostgreSQL';

/** A database server, or a folder for SQLite, that tests can make fail. */
export interface WebsiteServer {
  /** Creates an empty database. */
  database(): Promise<WebsiteDatabase>;
  /** Stops the server and removes its data. */
  stop(): Promise<void>;
}

/** A website's own database. */
export interface WebsiteDatabase {
  /** Its address in the form for outbox drivers: sdk/test/outbox/README.md. */
  readonly address: object;
  /** Runs statements without parameters and returns the rows of the last one. */
  run(sql: string): Promise<Record<string, unknown>[]>;
  /** Locks a table against other writers; returns a function that releases the lock. */
  lock(table: string): Promise<() => Promise<void>>;
  /** Waits until that many writers wait for a lock. SQLite does not report them, so it waits for a fixed time. */
  writersWait(count: number): Promise<void>;
  /** Terminates all other connections. SQLite has none. */
  endConnections(): Promise<void>;
  close(): Promise<void>;
}

const execute = promisify(execFile);
const USER = 'website';
const PASSWORD = 'not-to-be-seen';

/** Whether each kind is available on this machine; SQLite always is. */
export const canStart: Readonly<Record<DatabaseKind, boolean>> = {
  SQLite: true,
  MariaDB: spawnSync('mariadbd', ['--version']).error === undefined,
  PostgreSQL: postgresBin() !== undefined,
};

/** How to install a missing kind. */
export const REMEDY = 'run `.ci/install-servers`';

/** Starts a server on a free port. The caller must stop it. */
export const startWebsiteServer: Readonly<Record<DatabaseKind, () => Promise<WebsiteServer>>> = {
  SQLite: startSqlite,
  MariaDB: startMariaDb,
  PostgreSQL: startPostgres,
};

async function startSqlite(): Promise<WebsiteServer> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-sqlite-'));
  return {
    async database() {
      const file = join(folder, `${randomUUID()}.db`);
      const database = new DatabaseSync(file, { timeout: 10_000 });
      return {
        address: { kind: 'sqlite', file },
        run: async (sql) => {
          const statements = sql.split(/;\s*(?:\n|$)/).filter((each) => each.trim() !== '');
          return statements.map((each) => database.prepare(each).all() as Record<string, unknown>[]).at(-1) ?? [];
        },
        lock: async () => {
          database.exec('BEGIN IMMEDIATE');
          return async () => database.exec('COMMIT');
        },
        writersWait: () => sleep(700),
        endConnections: async () => {},
        close: async () => database.close(),
      };
    },
    stop: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function startPostgres(): Promise<WebsiteServer> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-postgresql-'));
  const data = join(folder, 'data');
  // PostgreSQL refuses to run as root.
  const owner = process.getuid?.() === 0 ? await readIds('postgres') : undefined;
  if (owner) chownSync(folder, owner.uid, owner.gid);
  const bin = postgresBin() ?? '';
  const own = { ...owner, env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' }, cwd: folder };
  await execute(join(bin, 'initdb'), ['-D', data, '-U', USER, '--auth=trust', '--no-sync', '--encoding=UTF8'], own);
  const port = await freePort();
  // In a soak, the tests of all languages run concurrently.
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: folder,
    fsync: 'off',
    max_connections: 400,
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(join(bin, 'postgres'), ['-D', data, ...args], { ...own, stdio: 'ignore' });
  const address = { host: '127.0.0.1', port, user: USER, password: PASSWORD };
  const connect = async (database: string) => {
    const client = new pg.Client({ ...address, database });
    // The client emits errors when the server stops.
    client.on('error', () => {});
    await client.connect();
    return client;
  };
  await (await connected(child, () => connect('postgres'))).end();
  const admin = new pg.Pool({ ...address, database: 'postgres' });
  // The pool emits errors when the server stops while connections are being closed.
  admin.on('error', () => {});

  return {
    async database() {
      const name = `website_${randomUUID().replaceAll('-', '')}`;
      await admin.query(`CREATE DATABASE ${name}`);
      const client = await connect(name);
      const { rows } = await client.query('SELECT pg_backend_pid() AS pid');
      // Queried on another connection, because within a transaction the view does not change after its first read.
      const others = `FROM pg_stat_activity WHERE datname = '${name}' AND pid <> ${rows[0].pid}`;
      return {
        address: { kind: 'postgresql', ...address, database: name },
        run: async (sql) => [(await client.query(sql)) as pg.QueryResult | pg.QueryResult[]].flat().at(-1)?.rows ?? [],
        lock: async (table) => {
          await client.query(`BEGIN; LOCK TABLE ${table} IN SHARE MODE`);
          return async () => void (await client.query('COMMIT'));
        },
        writersWait: (count) =>
          until(async () => {
            const waiting = await admin.query(`SELECT 1 ${others} AND wait_event_type = 'Lock'`);
            return waiting.rows.length >= count;
          }),
        endConnections: async () => void (await admin.query(`SELECT pg_terminate_backend(pid) ${others}`)),
        close: () => client.end(),
      };
    },
    async stop() {
      await admin.end();
      // SIGINT also terminates open connections.
      await ended(child, 'SIGINT');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function startMariaDb(): Promise<WebsiteServer> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-mariadb-'));
  const data = join(folder, 'data');
  mkdirSync(data);
  chmodSync(folder, 0o755);
  const user = process.getuid?.() === 0 ? ['--user=root'] : [];
  const own = [`--datadir=${data}`, '--innodb-log-file-size=8M', ...user];
  await execute('mariadb-install-db', ['--no-defaults', '--skip-test-db', ...own]);
  const port = await freePort();
  const child = spawn(
    'mariadbd',
    [
      '--no-defaults',
      ...own,
      `--socket=${join(folder, 'socket')}`,
      `--pid-file=${join(folder, 'pid')}`,
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      '--skip-name-resolve',
      '--innodb-flush-log-at-trx-commit=0',
    ],
    { stdio: 'ignore' },
  );
  const admin = await connected(child, () =>
    mysql.createConnection({ socketPath: join(folder, 'socket'), user: 'root' }),
  );
  await admin.query(`CREATE USER ${USER}@'127.0.0.1' IDENTIFIED BY '${PASSWORD}'`);
  const address = { host: '127.0.0.1', port, user: USER, password: PASSWORD };

  return {
    async database() {
      const name = `website_${randomUUID().replaceAll('-', '')}`;
      await admin.query(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`);
      await admin.query(`GRANT ALL ON ${name}.* TO ${USER}@'127.0.0.1'`);
      const connection = await mysql.createConnection({ ...address, database: name, multipleStatements: true });
      // A backslash in a text is one, as in the other databases.
      await connection.query(`SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')`);
      const others = async () => {
        const query = 'SELECT id, state FROM information_schema.processlist WHERE db = ? AND id <> ?';
        const [rows] = await admin.query<mysql.RowDataPacket[]>(query, [name, connection.threadId]);
        return rows;
      };
      return {
        address: { kind: 'mariadb', ...address, database: name },
        run: async (sql) => {
          const [result] = await connection.query<mysql.RowDataPacket[] | mysql.RowDataPacket[][]>(sql);
          // One statement returns rows; several return an array of rows each.
          return Array.isArray(result)
            ? ((Array.isArray(result[0]) ? result.at(-1) : result) as mysql.RowDataPacket[])
            : [];
        },
        lock: async (table) => {
          await connection.query(`LOCK TABLES ${table} READ`);
          return async () => void (await connection.query('UNLOCK TABLES'));
        },
        writersWait: (count) =>
          until(async () => (await others()).filter(({ state }) => /lock/i.test(String(state))).length >= count),
        endConnections: async () => {
          for (const { id } of await others()) await admin.query(`KILL ${id}`).catch(() => {});
        },
        close: () => connection.end(),
      };
    },
    async stop() {
      await admin.end();
      await ended(child, 'SIGTERM');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Connects to a server as soon as it accepts connections. */
async function connected<T>(child: ChildProcess, connect: () => Promise<T>): Promise<T> {
  killOnExit(child);
  for (;;) {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} did not start: ${child.exitCode}`);
    const connection = await connect().catch(() => undefined);
    if (connection) return connection;
    await sleep(50);
  }
}

/** Stops a server gracefully, so that it leaves no shared memory behind. */
async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  child.kill(signal);
  const closed = once(child, 'exit');
  const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
  if (child.exitCode === null) await closed;
  clearTimeout(late);
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20);
}

async function readIds(user: string): Promise<{ uid: number; gid: number }> {
  const id = async (option: string) => Number((await execute('id', [option, user])).stdout);
  return { uid: await id('-u'), gid: await id('-g') };
}

/** Returns Debian's folder with the programs of the newest PostgreSQL, which are not in the PATH. */
function postgresBin(): string | undefined {
  return globSync('/usr/lib/postgresql/*/bin')
    .filter((folder) => existsSync(join(folder, 'initdb')))
    .toSorted()
    .at(-1);
}

/** Executes a statement on a website's SQLite file, and returns its rows. */
export function queryFile(file: string, sql: string): Record<string, unknown>[] {
  const database = new DatabaseSync(file, { timeout: 10_000 });
  try {
    return database.prepare(sql).all();
  } finally {
    database.close();
  }
}
