import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { endWithTests, freePort, type RedisServer, startRedis } from './servers.ts';

/** What the sentinel calls its Redis. */
const NAME = 'quota';

/** A Redis with a replica, and a sentinel that has the replica take over when the Redis is silent for half a second. */
export interface WatchedRedis {
  /** Its address, with a user and password: a sentinel that is away, and the one that is there. */
  readonly url: string;
  /** Which is which at the start. */
  readonly primary: RedisServer;
  readonly replica: RedisServer;
  /** Ends whichever is the primary at once. */
  killPrimary(): Promise<void>;
  /** Starts it again after that, and waits until it has what the new one has. */
  addReplica(): Promise<void>;
  /** Ends the sentinel at once. */
  killSentinel(): Promise<void>;
  /** Starts it again after that, at the same address. */
  restartSentinel(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts one. Whoever starts it must stop it. */
export async function startWatchedRedis(): Promise<WatchedRedis> {
  const primary = await startRedis({ 'repl-diskless-sync-delay': ['0'] });
  const { username, password, port } = new URL(primary.url);
  const replica = await startRedis({ replicaof: ['127.0.0.1', port] });
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-sentinel-'));
  const [sentinelPort, nobodysPort] = [await freePort(), await freePort()];
  const file = join(folder, 'sentinel.conf');
  // It writes into this file what it learns.
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
  let killed: RedisServer | undefined;
  let running = await startSentinel(file, sentinelPort);
  const killSentinel = async () => {
    running.kill('SIGKILL');
    await once(running, 'exit');
  };
  return {
    url: `redis+sentinel://${username}:${password}@127.0.0.1:${nobodysPort},127.0.0.1:${sentinelPort}/${NAME}`,
    primary,
    replica,
    async killPrimary() {
      for (const server of [primary, replica].filter((server) => server !== killed)) {
        if ((await replicationOf(server)).role === 'master') killed = server;
      }
      await killed?.kill();
    },
    async addReplica() {
      await killed?.restart();
      // The sentinel makes it a replica, and has it close its connections.
      const stateOf = (server: RedisServer) => replicationOf(server).catch(() => undefined);
      while (killed && (await stateOf(killed))?.master_link_status !== 'up') await sleep(50);
      killed = undefined;
    },
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

/** Starts a sentinel, and waits until it knows the replica. */
async function startSentinel(file: string, port: number) {
  const child = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' });
  endWithTests(child);
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

/** What a Redis says of its part in replication, by the names that it gives. */
export async function replicationOf(server: RedisServer): Promise<Readonly<Record<string, string>>> {
  const text = String(await server.command('INFO', 'replication'));
  return Object.fromEntries(text.split('\r\n').map((line) => line.split(':', 2)));
}
