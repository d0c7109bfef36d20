import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, test } from 'vitest';

const { CI, REDIS_TEST_URL } = process.env;
const HAS_REDIS_SERVER = hasCommand('redis-server');

/** Whether a program is installed. */
export function hasCommand(name: string): boolean {
  return spawnSync(name, ['--version']).error === undefined;
}

/**
 * A suite for which any Redis will do, also one that others use: the one at REDIS_TEST_URL, else one of its own.
 *
 * @param body gets the address, which is known once tests run
 */
export function describeWithRedis(name: string, body: (redisUrl: () => string) => void): void {
  const found = REDIS_TEST_URL !== undefined || HAS_REDIS_SERVER;
  describeIf(found, name, 'set REDIS_TEST_URL or install redis-server', () => {
    let url = REDIS_TEST_URL;
    let server: RedisServer | undefined;
    beforeAll(async () => {
      if (url !== undefined) return;
      server = await startRedis();
      url = server.url;
    });
    afterAll(() => server?.stop());
    body(() => url ?? '');
  });
}

/** A suite whose tests start and maltreat a Redis of their own. */
export function describeWithRedisServer(name: string, body: () => void): void {
  describeIf(HAS_REDIS_SERVER, name, 'install redis-server', body);
}

/** A suite whose tests reach a Redis of their own over TLS. */
export function describeWithRedisTls(name: string, body: () => void): void {
  // Of settings that it was built without it knows nothing; without a certificate it ends in any case.
  const { stdout } = spawnSync('redis-server', ['--port', '0', '--tls-port', '1'], { encoding: 'utf8' });
  const hasTls = HAS_REDIS_SERVER && /TLS/.test(stdout);
  describeIf(hasTls, name, 'install a redis-server that is built with TLS', body);
}

/** A suite without its server is skipped loudly on a developer's machine and fails in CI: there, a skip hides a fault. */
export function describeIf(found: boolean, name: string, remedy: string, body: () => void): void {
  if (found) {
    describe(name, body);
  } else if (CI === 'true') {
    describe(name, () => {
      test('has the server that it needs', () => {
        throw new Error(`There is none: ${remedy}.`);
      });
    });
  } else {
    console.warn(`NOT RUN: ${name}. To run it, ${remedy}.`);
    describe.skip(name, body);
  }
}

/** A Redis that keeps nothing on disk, with which its test may do what it likes. */
export interface RedisServer {
  /** Its address, with a user and password. */
  readonly url: string;
  /** Has it carry out a command, which may change the server itself; gives the answer. */
  command(name: string, ...args: string[]): Promise<unknown>;
  /** Forgets data and scripts. */
  flush(): Promise<void>;
  /** Ends it at once, as a crash does. */
  kill(): Promise<void>;
  /** Starts it again after that, empty, at the same address. */
  restart(): Promise<void>;
  /** Until it resumes, connections stand and new ones succeed, but nothing is answered. */
  pause(): void;
  resume(): void;
  /** Ends it for good and removes what it left. */
  stop(): Promise<void>;
}

/** A Redis Cluster of three nodes that share the keys. Whoever starts it must stop its nodes. */
export async function startRedisCluster(): Promise<readonly RedisServer[]> {
  const nodes: RedisServer[] = [];
  for (const [first, last] of [
    ['0', '5460'],
    ['5461', '10922'],
    ['10923', '16383'],
  ] as const) {
    const busPort = await freePort();
    const node = await startRedis({
      'cluster-enabled': ['yes'],
      'cluster-port': [`${busPort}`],
      // The first node is never told what address the others know it by.
      'cluster-announce-ip': ['127.0.0.1'],
    });
    await node.command('CLUSTER', 'ADDSLOTSRANGE', first, last);
    await nodes[0]?.command('CLUSTER', 'MEET', '127.0.0.1', new URL(node.url).port, `${busPort}`);
    nodes.push(node);
  }
  for (const node of nodes) {
    while (!String(await node.command('CLUSTER', 'INFO')).includes('cluster_state:ok')) await sleep(50);
  }
  return nodes;
}

/**
 * Starts a Redis on a free port. Whoever starts it must stop it.
 *
 * @param settings more of its own settings
 */
export async function startRedis(settings: Readonly<Record<string, readonly string[]>> = {}): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-redis-'));
  const port = await freePort();
  const start = () => startRedisProcess(port, folder, settings);
  let running = await start();

  const command = async (name: string, ...args: string[]) => {
    // As the user that a Redis has by itself: a test may lock out the other one.
    const client = new Redis({ port, retryStrategy: () => null });
    try {
      return await client.call(name, ...args);
    } finally {
      client.disconnect();
    }
  };
  const kill = async () => {
    if (running.exitCode !== null || running.signalCode !== null) return;
    running.kill('SIGKILL');
    await once(running, 'exit');
  };
  return {
    url: `redis://${USER}:${PASSWORD}@127.0.0.1:${port}`,
    command,
    async flush() {
      await command('FLUSHALL');
      await command('SCRIPT', 'FLUSH');
    },
    kill,
    async restart() {
      await kill();
      running = await start();
    },
    pause: () => void running.kill('SIGSTOP'),
    resume: () => void running.kill('SIGCONT'),
    async stop() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Ends a server, too, should its suite fail to. */
export function endWithTests(child: ChildProcess): void {
  started.add(child);
  child.once('exit', () => started.delete(child));
}

/** Servers that run. A suite that fails to stop one must not leave it behind; its process is ended by SIGTERM. */
const started = new Set<ChildProcess>();
process.once('SIGTERM', () => {
  for (const child of started) child.kill('SIGKILL');
  process.exit();
});

const USER = 'gateway';
const PASSWORD = 'not-to-be-seen';

/** @throws Error with what it printed when it ends before it serves */
async function startRedisProcess(
  port: number,
  folder: string,
  settings: Readonly<Record<string, readonly string[]>>,
): Promise<ChildProcess> {
  const options = {
    ...settings,
    bind: ['127.0.0.1'],
    port: [`${port}`],
    dir: [folder],
    save: [''],
    user: [USER, 'on', `>${PASSWORD}`, '~*', '&*', '+@all'],
  };
  const args = Object.entries(options).flatMap(([name, values]) => [`--${name}`, ...values]);
  // It must not inherit an output: a server that is left behind would hold that open, and whoever reads it would wait.
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] });
  endWithTests(child);
  const printed: string[] = [];
  for await (const line of createInterface(child.stdout)) {
    printed.push(line);
    if (line.includes('Ready to accept connections')) {
      child.stdout.resume();
      return child;
    }
  }
  throw new Error(`redis-server did not start:\n${printed.join('\n')}`);
}

/** A port of 127.0.0.1 that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
