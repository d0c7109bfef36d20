import { randomUUID } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { type CoreClients, connectToCore } from '../support/core-clients.ts';
import { startWireServer } from '../support/mongodb.ts';
import { type RunningProcess, run, temporaryFolder } from '../tools/processes.ts';

/** How long a deployment may take to serve again after a crash; milliseconds. */
const SERVES_WITHIN_MS = 100_000;

/** A well-formed key that belongs to no studio: 32 zero bytes and their checksum. */
export const UNKNOWN_KEY = `lik_${Buffer.concat([Buffer.alloc(32), Buffer.from('190a55ad', 'hex')]).toString('base64url')}`;

/** A service that runs as in production and whose parts can each be killed. */
export interface Deployment {
  readonly gatewayUrl: string;
  readonly coreUrl: string;
  /** Returns the process of a part. */
  process(part: string): RunningProcess;
  /** Kills a part immediately (SIGKILL), as a crash or a power loss does. */
  kill(part: string): Promise<void>;
  /** Restarts a part that was killed or has ended. */
  restart(part: string): Promise<void>;
  /** Waits until all parts are available. @throws Error with the output of the processes when they do not become so */
  serves(): Promise<void>;
}

/** The settings of a deployment, by their names. */
type Settings = Readonly<Record<string, string>>;

/** A part other than core and gateway. */
export interface Server {
  kill(): Promise<void>;
  /** Restarts it at the same address. */
  revive(): Promise<void>;
}

/** Returns the URL of a new SQLite file, which is removed when the test ends. */
export const newSqliteUrl = (): string => `sqlite:${join(temporaryFolder(), 'leads.db')}`;

/** Starts a MongoDB server, which is stopped when the test ends; `databaseUrl` is an empty database on it. */
export async function aMongoServer() {
  const server = await startWireServer();
  onTestFinished(() => server.stop());
  return { server, databaseUrl: `${server.url}test-${randomUUID()}` };
}

/** Connects to the core of a deployment until the test ends. */
export function connectClients({ coreUrl }: Deployment): CoreClients {
  const core = connectToCore(coreUrl);
  onTestFinished(() => core.close());
  return core;
}

const FILES: Readonly<Record<string, string>> = { core: 'src/main.ts', gateway: 'gateway/main.ts' };

/**
 * Runs core and gateway as separate processes. Parts: `core`, `gateway`, the servers by their names, and several of
 * them joined by ` and `.
 */
export async function deployApart(
  settings: Settings,
  servers: Readonly<Record<string, Server>> = {},
): Promise<Deployment> {
  const { env, gatewayUrl, coreUrl } = await configured(settings);
  const processes = new Map(Object.entries(FILES).map(([name, file]) => [name, run(file, { env })]));
  const findProcess = (name: string): RunningProcess => {
    const running = processes.get(name);
    if (!running) throw new Error(`there is no ${name}`);
    return running;
  };
  await serves(gatewayUrl, processes);
  return {
    gatewayUrl,
    coreUrl,
    process: findProcess,
    async kill(part) {
      await Promise.all(
        part.split(' and ').map(async (name) => {
          if (servers[name]) return servers[name].kill();
          findProcess(name).child.kill('SIGKILL');
          await findProcess(name).ended();
        }),
      );
    },
    async restart(part) {
      for (const name of part.split(' and ')) {
        await servers[name]?.revive();
        if (FILES[name]) processes.set(name, run(FILES[name], { env }));
      }
    },
    serves: () => serves(gatewayUrl, processes),
  };
}

async function configured(settings: Settings) {
  const [corePort, gatewayPort] = [await portToKeep(), await portToKeep()];
  const common = { CORE_PORT: `${corePort}`, GATEWAY_PORT: `${gatewayPort}`, QUOTA_LIMIT: '1000000000' };
  return {
    env: { LOG_LEVEL: 'silent', ...common, ...settings },
    coreUrl: `http://127.0.0.1:${corePort}`,
    gatewayUrl: `http://127.0.0.1:${gatewayPort}`,
  };
}

async function serves(gatewayUrl: string, processes: ReadonlyMap<string, RunningProcess>): Promise<void> {
  const giveUp = performance.now() + SERVES_WITHIN_MS;
  const readStatus = (path: string, headers = {}) =>
    fetch(`${gatewayUrl}${path}`, { headers, signal: AbortSignal.timeout(2000) }).then(
      ({ status }) => status,
      () => undefined,
    );
  // The readiness may be cached from before the crash. Refusing an unknown key requires a read from the database.
  const isServed = async () =>
    (await readStatus('/readyz')) === 200 &&
    (await readStatus('/v1/integrations/leads', { authorization: `Bearer ${UNKNOWN_KEY}` })) === 401;
  while (!(await isServed())) {
    if (performance.now() > giveUp) {
      const printed = [...processes].map(([name, running]) => `${name}: ${running.output()}`);
      throw new Error(`not ready within ${SERVES_WITHIN_MS} ms\n${printed.join('\n')}`);
    }
    await sleep(20);
  }
}

/** Below the ephemeral ports, which the system assigns to connections. */
const [FIRST_PORT, LAST_PORT] = [15_000, 32_767] as const;

/**
 * Returns a port of 127.0.0.1 that is free, outside the ephemeral range, and reserved for this process: a server that
 * was killed on it can bind it again.
 */
export async function portToKeep(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT + 1 - FIRST_PORT));
    if ((await isKept(port)) && !(await isListenedTo(port))) return port;
  }
}

/**
 * Reserves a port among the tests by binding the UDP port of the same number, which has no other use; returns whether it was
 * free.
 */
async function isKept(port: number): Promise<boolean> {
  const mark = createSocket('udp4').unref();
  return new Promise((resolve) => {
    mark.once('error', () => resolve(false)).once('listening', () => resolve(true));
    mark.bind({ port, address: '127.0.0.1', exclusive: true });
  });
}

function isListenedTo(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => resolve(false)).on('close', () => socket.destroy());
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}
