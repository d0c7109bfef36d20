import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, onTestFinished, test } from 'vitest';

const { CI, REDIS_TEST_URL } = process.env;
const HAS_REDIS_SERVER = hasCommand('redis-server');

export function hasCommand(name: string): boolean {
  return spawnSync(name, ['--version']).error === undefined;
}

/**
 * Defines a suite that runs on any Redis, even a shared one: the one at REDIS_TEST_URL, else one that it starts.
 *
 * @param body gets the address, which is known when tests run
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

/** Defines a suite whose tests start their own Redis and make it fail. */
export function describeWithRedisServer(name: string, body: () => void): void {
  describeIf(HAS_REDIS_SERVER, name, 'install redis-server', body);
}

/** Defines a suite whose tests connect to their own Redis over TLS. */
export function describeWithRedisTls(name: string, body: () => void): void {
  // A redis-server without TLS rejects the option as unknown; one with TLS reports the missing certificate. Both end.
  const { stdout } = spawnSync('redis-server', ['--port', '0', '--tls-port', '1'], { encoding: 'utf8' });
  const hasTls = HAS_REDIS_SERVER && /TLS/.test(stdout);
  describeIf(hasTls, name, 'install a redis-server that is built with TLS', body);
}

/**
 * Retries a test that failed because a busy server did not respond in time. No message of an assertion matches.
 * The condition is a pattern, because Vitest drops a condition that is a function, and then retries every failure.
 */
const AGAIN_IF_BUSY = {
  retry: {
    count: 3,
    condition:
      /^(?:the outcome is unknown|the database did not respond within \d+ ms|Redis cannot count requests: no response within \d+ ms)$/,
  },
};

/** Defines a suite that needs a server. Without the server, it is skipped with a warning, and fails in CI. */
export function describeIf(found: boolean, name: string, remedy: string, body: () => void): void {
  if (found) {
    describe(name, AGAIN_IF_BUSY, body);
  } else if (CI === 'true') {
    describe(name, () => {
      test('the suite has the server that it needs', () => {
        throw new Error(`Not available: ${remedy}.`);
      });
    });
  } else {
    console.warn(`NOT RUN: ${name}. To run it, ${remedy}.`);
    describe.skip(name, body);
  }
}

/** Options of redis-server, each with its values. */
type RedisSettings = Readonly<Record<string, readonly string[]>>;

/** A Redis without persistence that a test can make fail. */
export interface RedisServer {
  /** The address, with a user and password. */
  readonly url: string;
  /** Its port with TLS, if it was started with one. */
  readonly tlsPort: number | undefined;
  /** Runs a command, including one that reconfigures the server, and returns the reply. */
  command(name: string, ...args: string[]): Promise<unknown>;
  /** Removes all data and scripts. */
  flush(): Promise<void>;
  /** Kills it, like a crash. */
  kill(): Promise<void>;
  /** Restarts it, empty, at its address. */
  restart(): Promise<void>;
  /** Stops replying until `resume`; connections stay open and new ones succeed. */
  pause(): void;
  resume(): void;
  /** Kills it and removes its files. */
  stop(): Promise<void>;
}

/**
 * Starts a Redis Cluster of three nodes. The caller must stop the nodes.
 *
 * @param settings additional options of redis-server
 */
export async function startRedisCluster(
  settings: RedisSettings = {},
  security?: 'tls',
): Promise<readonly RedisServer[]> {
  const nodes: RedisServer[] = [];
  for (const [first, last] of [
    ['0', '5460'],
    ['5461', '10922'],
    ['10923', '16383'],
  ] as const) {
    const busPort = await freePort();
    const node = await startRedis(
      {
        ...settings,
        'cluster-enabled': ['yes'],
        'cluster-port': [`${busPort}`],
        // Without this setting, the first node does not know its own address.
        'cluster-announce-ip': ['127.0.0.1'],
      },
      security,
    );
    await node.command('CLUSTER', 'ADDSLOTSRANGE', first, last);
    const port = `${node.tlsPort ?? new URL(node.url).port}`;
    await nodes[0]?.command('CLUSTER', 'MEET', '127.0.0.1', port, `${busPort}`);
    nodes.push(node);
  }
  for (const node of nodes) {
    while (!String(await node.command('CLUSTER', 'INFO')).includes('cluster_state:ok')) await sleep(50);
  }
  return nodes;
}

/**
 * Starts a Redis on a free port. The caller must stop it.
 *
 * @param settings additional options of redis-server
 * @param security `tls` adds a second port with TLS; the settings name its certificate
 */
export async function startRedis(settings: RedisSettings = {}, security?: 'tls'): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-redis-'));
  const port = await freePort();
  const tlsPort = security && (await freePort());
  const ports = tlsPort ? { 'tls-port': [`${tlsPort}`] } : {};
  const start = () => startRedisProcess(port, folder, { ...settings, ...ports });
  let running = await start();

  const command = async (name: string, ...args: string[]) => {
    // Connects as the default user, because a test may lock out the other one.
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
    tlsPort,
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

/** Starts a Redis for one test, stopped at its end. */
export async function aRedis(): Promise<RedisServer> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  return redis;
}

/** Kills a server when this process ends, if its suite has failed to stop it. */
export function killOnExit(child: ChildProcess): void {
  started.add(child);
  child.once('exit', () => started.delete(child));
}

/** The running servers. Vitest ends a worker process with SIGTERM. */
const started = new Set<ChildProcess>();
process.once('SIGTERM', () => {
  for (const child of started) child.kill('SIGKILL');
  process.exit();
});

const USER = 'gateway';
const PASSWORD = 'not-to-be-seen';

/** @throws Error with the server's output when it ends before it accepts connections */
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
  // The server inherits no output: if it were left behind, readers of this process's output would wait for it.
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] });
  killOnExit(child);
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

/**
 * Returns an unused port of 127.0.0.1, below the ephemeral ports. An outgoing connection could take one of those before the
 * server listens.
 */
export async function freePort(): Promise<number> {
  const port = randomInt(20_000, 32_768);
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return freePort();
  }
  server.close();
  await once(server, 'close');
  return port;
}
