import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort, killOnExit, type RedisServer, startRedis } from '../tools/servers.ts';

/** The sentinel's name for the monitored Redis. */
const NAME = 'quota';

/** A Redis with a replica, and a sentinel that promotes the replica when the primary is silent for half a second. */
export interface RedisWithSentinel {
  /** The address of two sentinels, with a user and a password. The first sentinel does not exist. */
  readonly url: string;
  /** The initial primary. */
  readonly primary: RedisServer;
  /** The initial replica. */
  readonly replica: RedisServer;
  /** Kills the sentinel. */
  killSentinel(): Promise<void>;
  /** Restarts the sentinel at its address. */
  restartSentinel(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts all three. The caller must stop them. */
export async function startRedisWithSentinel(): Promise<RedisWithSentinel> {
  const primary = await startRedis({ 'repl-diskless-sync-delay': ['0'] });
  const { username, password, port } = new URL(primary.url);
  const replica = await startRedis({ replicaof: ['127.0.0.1', port] });
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-sentinel-'));
  const [sentinelPort, unusedPort] = [await freePort(), await freePort()];
  const file = join(folder, 'sentinel.conf');
  // The sentinel stores its state in this file.
  writeFileSync(
    file,
    `bind 127.0.0.1
port ${sentinelPort}
dir ${folder}
sentinel monitor ${NAME} 127.0.0.1 ${port} 1
sentinel down-after-milliseconds ${NAME} 500
sentinel failover-timeout ${NAME} 2000
`,
  );
  let running = await startSentinel(file, sentinelPort);
  const killSentinel = async () => {
    running.kill('SIGKILL');
    await once(running, 'exit');
  };
  return {
    url: `redis+sentinel://${username}:${password}@127.0.0.1:${unusedPort},127.0.0.1:${sentinelPort}/${NAME}`,
    primary,
    replica,
    killSentinel,
    async restartSentinel() {
      running = await startSentinel(file, sentinelPort);
    },
    async stop() {
      if (running.exitCode === null && running.signalCode === null) await killSentinel();
      await Promise.all([primary.stop(), replica.stop()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Starts a sentinel and waits until it has found the replica. */
async function startSentinel(file: string, port: number) {
  const child = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' });
  killOnExit(child);
  const client = new Redis({ port, retryStrategy: () => 50 });
  client.on('error', () => {});
  try {
    while (((await client.call('SENTINEL', 'REPLICAS', NAME).catch(() => [])) as unknown[]).length === 0) {
      if (child.exitCode !== null) throw new Error(`the sentinel ended with ${child.exitCode}`);
      await sleep(50);
    }
  } finally {
    client.disconnect();
  }
  return child;
}

/** Returns the fields of `INFO replication` of a Redis. */
export async function readReplication(server: RedisServer): Promise<Readonly<Record<string, string>>> {
  const text = String(await server.command('INFO', 'replication'));
  return Object.fromEntries(text.split('\r\n').map((line) => line.split(':', 2)));
}
