import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoMemoryServer } from 'mongodb-memory-server-core';
import { afterAll, beforeAll } from 'vitest';
import { describeIf } from './servers.ts';

const SCRIPT = join(import.meta.dirname, '../../.ci/mongodb-wire-server');
const SCRIPT_HOME = process.env.MONGODB_WIRE_HOME ?? '/opt/lead-intake-mongodb';

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

async function findMongo(): Promise<MongoKind | undefined> {
  const given = process.env.MONGODB_TEST_URL;
  if (given)
    return { name: 'the server at MONGODB_TEST_URL', start: async () => ({ url: given, stop: async () => {} }) };

  const path = spawnSync('sh', ['-c', 'command -v mongod'], { encoding: 'utf8' }).stdout?.trim();
  if (path) return { name: 'the installed mongod', start: () => startMemoryServer(path) };

  if (existsSync(join(SCRIPT_HOME, 'root/template'))) return { name: 'FerretDB', start: startWireServer };

  // Downloads a mongod, unless it did so before; fails fast where it cannot.
  const server = await startMemoryServer().catch(() => undefined);
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

async function startWireServer(): Promise<MongoServer> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-mongodb-'));
  const url = execFileSync(SCRIPT, ['start', folder], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  }).trim();
  return {
    url,
    stop: async () => {
      execFileSync(SCRIPT, ['stop', folder], { stdio: 'inherit' });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
