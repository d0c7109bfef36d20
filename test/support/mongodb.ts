import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { BSON } from 'mongodb';
import { MongoMemoryServer } from 'mongodb-memory-server-core';
import { afterAll, beforeAll } from 'vitest';
import { describeIf } from './servers.ts';

const SCRIPT = join(import.meta.dirname, '../../.ci/mongodb-wire-server');
const SCRIPT_HOME = process.env.MONGODB_WIRE_HOME ?? '/opt/lead-intake-mongodb';
const HAS_WIRE_SERVER = existsSync(join(SCRIPT_HOME, 'root/template'));

/** A server that speaks MongoDB's protocol, started for a suite. */
interface MongoServer {
  /** Its address, without a database. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Which server there is, and how it is started. */
interface MongoKind {
  readonly name: string;
  start(): Promise<MongoServer>;
}

const kind = await findMongo();

/** A suite for which any MongoDB will do: it makes databases of its own. The suite's name tells which one it ran on. */
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

/** A suite whose tests start and maltreat a MongoDB of their own. */
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

  // Downloads a mongod, unless it did so before; fails fast where it cannot.
  process.env.MONGOMS_MAX_RETRIES ??= '1';
  // It prints every failure by itself, at length; what there is to know is said below, in a line.
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

/** A FerretDB on PostgreSQL, with which its test may do what it likes. What it acknowledged survives a kill. */
export interface MongoWireServer extends MongoServer {
  /** Ends all of it at once, as a loss of power does. */
  kill(): Promise<void>;
  /** Starts it again after that, with its data, at its address. */
  revive(): Promise<void>;
  /** Makes a backup of it while it runs; it is there for one restore after the other. */
  backUp(): Promise<void>;
  /** Ends it, and starts it with what it had then, at its address. */
  restore(): Promise<void>;
  /** Until it resumes, connections stand and new ones succeed, but no command is answered. */
  pause(): void;
  resume(): void;
}

/** Starts one on a free port. Whoever starts it must stop it. */
export async function startWireServer(): Promise<MongoWireServer> {
  const server = startByScript('start');
  return {
    url: server.url,
    async kill() {
      for (const name of ['ferretdb', 'a']) {
        process.kill(server.pidOf(name), 'SIGKILL');
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

/** A FerretDB on a PostgreSQL with a standby, which has each commit before it is acknowledged. */
export interface MongoWirePair extends MongoServer {
  /** Ends the primary at once. FerretDB and the standby stay. */
  killPrimary(): Promise<void>;
  /** Makes the standby the primary after that. */
  promote(): Promise<void>;
  /** Gives it a standby of its own, in the place of the one that was killed. */
  addStandby(): Promise<void>;
}

/** Starts one on a free port. Whoever starts it must stop it. */
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
  const pidOf = (name: string) => Number(readFileSync(join(folder, `${name}.pid`), 'utf8'));
  return {
    url,
    folder,
    pidOf,
    async script(command: string) {
      await promisify(execFile)(SCRIPT, [command, folder]);
    },
    /** A dead process has no folder, even before the system has collected it. */
    async ended(name: string) {
      while (existsSync(`/proc/${pidOf(name)}/cwd`)) await sleep(5);
    },
    signalPostgres(name: string, signal: NodeJS.Signals) {
      const postmaster = pidOf(name);
      // It starts the others: stopped, it starts no more.
      process.kill(postmaster, 'SIGSTOP');
      const { stdout } = spawnSync('pgrep', ['-P', `${postmaster}`], { encoding: 'utf8' });
      for (const pid of [...stdout.split('\n').filter(Boolean).map(Number), postmaster]) {
        try {
          process.kill(pid, signal);
        } catch (error) {
          // Some of them come and go.
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

/** Recognises requests in MongoDB's protocol: after 26 bytes of head comes the command's name. */
export function isCommand(...names: readonly string[]): (request: Buffer) => boolean {
  return (request) => names.some((name) => request.subarray(26).indexOf(`${name}\0`, 0, 'latin1') === 0);
}

/** The reply to a request that carried nothing out, with a reason that is not worth another try. */
export function failure(request: Buffer): Buffer {
  const reply = BSON.serialize({ ok: 0, errmsg: 'failed as a whole', code: 1, codeName: 'InternalError' });
  // OP_MSG: length, own number, number of the request, operation; flags, and one section of kind 0.
  const head = Buffer.alloc(21);
  head.writeInt32LE(head.length + reply.length, 0);
  head.writeInt32LE(request.readInt32LE(4), 8);
  head.writeInt32LE(2013, 12);
  return Buffer.concat([head, reply]);
}
