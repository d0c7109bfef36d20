import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { BSON } from 'mongodb';
import { MongoMemoryServer } from 'mongodb-memory-server-core';
import { afterAll, beforeAll } from 'vitest';
import { describeIf } from '../tools/servers.ts';

const SCRIPT = join(import.meta.dirname, '../../.ci/mongodb-wire-server');
const SCRIPT_HOME = process.env.MONGODB_WIRE_HOME ?? '/opt/lead-intake-mongodb';
const HAS_WIRE_SERVER = existsSync(join(SCRIPT_HOME, 'root/template'));

/** A server with MongoDB's protocol, started for a suite. */
interface MongoServer {
  /** Its address, without a database. */
  readonly url: string;
  stop(): Promise<void>;
}

/** A kind of server that is available here. */
interface MongoKind {
  readonly name: string;
  start(): Promise<MongoServer>;
}

const kind = await findMongo();

/** Defines a suite that runs on any MongoDB, in databases that it creates. Its name includes the kind of server. */
export function describeWithMongo(name: string, body: (mongoUrl: () => string) => void): void {
  const remedy = 'set MONGODB_TEST_URL, install mongod, or run `.ci/mongodb-wire-server install`';
  describeIf(kind !== undefined, kind ? `${name}, on ${kind.name}` : name, remedy, () => {
    let server: MongoServer | undefined;
    beforeAll(async () => {
      server = await kind?.start();
    });
    afterAll(() => server?.stop());
    body(() => server?.url ?? '');
  });
}

/** Defines a suite whose tests start their own MongoDB and make it fail. */
export function describeWithMongoServer(name: string, body: () => void): void {
  describeIf(HAS_WIRE_SERVER, name, 'run `.ci/mongodb-wire-server install`', body);
}

async function findMongo(): Promise<MongoKind | undefined> {
  const given = process.env.MONGODB_TEST_URL;
  if (given)
    return { name: 'the server at MONGODB_TEST_URL', start: async () => ({ url: given, stop: async () => {} }) };

  const path = spawnSync('sh', ['-c', 'command -v mongod'], { encoding: 'utf8' }).stdout?.trim();
  if (path) return { name: 'the installed mongod', start: () => startMemoryServer(path) };

  if (HAS_WIRE_SERVER) return { name: 'FerretDB', start: startWireServer };

  // The package downloads a mongod unless it has one. One retry makes it fail fast without a network.
  process.env.MONGOMS_MAX_RETRIES ??= '1';
  // The package logs failures at length, and `describeIf` reports them in one line.
  const { error, warn } = console;
  console.error = console.warn = () => {};
  const server = await startMemoryServer()
    .catch(() => undefined)
    .finally(() => {
      Object.assign(console, { error, warn });
    });
  return server && { name: 'a downloaded mongod', start: async () => server };
}

async function startMemoryServer(systemBinary?: string): Promise<MongoServer> {
  const server = await MongoMemoryServer.create(systemBinary === undefined ? {} : { binary: { systemBinary } });
  return {
    url: server.getUri(),
    stop: async () => {
      await server.stop();
    },
  };
}

/** A FerretDB on PostgreSQL that a test can make fail. Acknowledged writes survive a kill. */
export interface MongoWireServer extends MongoServer {
  /** Kills all its processes, like a power failure. */
  kill(): Promise<void>;
  /** Restarts it after a kill, with its data and address. */
  revive(): Promise<void>;
  /** Makes a backup while the server runs. It can be restored repeatedly. */
  backUp(): Promise<void>;
  /** Stops the server and restarts it from the backup, with its address. */
  restore(): Promise<void>;
  /** Stops replying until `resume`; connections stay open and new ones succeed. */
  pause(): void;
  resume(): void;
}

/** Starts a FerretDB on a free port. The caller must stop it. */
export async function startWireServer(): Promise<MongoWireServer> {
  const server = startByScript('start');
  return {
    url: server.url,
    async kill() {
      for (const name of ['ferretdb', 'a']) {
        process.kill(server.findPid(name), 'SIGKILL');
        await server.ended(name);
      }
    },
    async revive() {
      await server.script('revive');
    },
    backUp: () => server.script('back-up'),
    restore: () => server.script('restore'),
    pause: () => server.signalPostgres('a', 'SIGSTOP'),
    resume: () => server.signalPostgres('a', 'SIGCONT'),
    stop: server.stop,
  };
}

/** A FerretDB on a PostgreSQL with a synchronous standby. */
export interface MongoWirePair extends MongoServer {
  /** Kills the primary. FerretDB and the standby keep running. */
  killPrimary(): Promise<void>;
  /** Promotes the standby after the primary was killed. */
  promote(): Promise<void>;
  /** Adds a standby to the promoted primary, in place of the killed server. */
  addStandby(): Promise<void>;
}

/** Starts the pair on a free port. The caller must stop it. */
export async function startWirePair(): Promise<MongoWirePair> {
  const server = startByScript('start-pair');
  return {
    url: server.url,
    async killPrimary() {
      const primary = readFileSync(join(server.folder, 'primary'), 'utf8').trim();
      server.signalPostgres(primary, 'SIGKILL');
      await server.ended(primary);
    },
    promote: () => server.script('promote'),
    addStandby: () => server.script('pair'),
    stop: server.stop,
  };
}

function startByScript(command: string) {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-mongodb-'));
  const url = execFileSync(SCRIPT, [command, folder], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  }).trim();
  const findPid = (name: string) => Number(readFileSync(join(folder, `${name}.pid`), 'utf8'));
  return {
    url,
    folder,
    findPid,
    async script(command: string) {
      await promisify(execFile)(SCRIPT, [command, folder]);
    },
    /** Waits until a process is dead. A zombie has no working directory. */
    async ended(name: string) {
      while (existsSync(`/proc/${findPid(name)}/cwd`)) await sleep(5);
    },
    signalPostgres(name: string, signal: NodeJS.Signals) {
      const postmaster = findPid(name);
      // The postmaster starts the other processes, so it is stopped first.
      process.kill(postmaster, 'SIGSTOP');
      const { stdout } = spawnSync('pgrep', ['-P', `${postmaster}`], { encoding: 'utf8' });
      for (const pid of [...stdout.split('\n').filter(Boolean).map(Number), postmaster]) {
        try {
          process.kill(pid, signal);
        } catch (error) {
          // The process may have ended since pgrep ran.
          if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
        }
      }
    },
    async stop() {
      execFileSync(SCRIPT, ['stop', folder], { stdio: 'inherit' });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Returns a function that recognises requests of MongoDB by their command's name, which follows a head of 26 bytes. */
export function isCommand(...names: readonly string[]): (request: Buffer) => boolean {
  return (request) => names.some((name) => request.subarray(26).indexOf(`${name}\0`, 0, 'latin1') === 0);
}

/** Builds a reply with a permanent error to a request that had no effect. */
export function failure(request: Buffer): Buffer {
  const reply = BSON.serialize({ ok: 0, errmsg: 'failed as a whole', code: 1, codeName: 'InternalError' });
  // OP_MSG: length, requestID, responseTo, opCode; flags, and one section of kind 0.
  const head = Buffer.alloc(21);
  head.writeInt32LE(head.length + reply.length, 0);
  head.writeInt32LE(request.readInt32LE(4), 8);
  head.writeInt32LE(2013, 12);
  return Buffer.concat([head, reply]);
}
