import type { ChildProcess } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { childRunning } from './cpu-time.ts';
import type { Pace } from './drive.ts';
import { nextMessage, perform } from './jobs.ts';
import type { KeyOfStudio, Target } from './lead-requests.ts';
import type { LoadJob } from './load-generator.ts';
import { ownDatabase } from './mongo-database.ts';
import { startProcess, temporaryFolder } from './processes.ts';
import { createStudioWithKey, withStore } from './studio-with-key.ts';
import type { LoadResult } from './tally.ts';
import type { Scenario } from './workload.ts';

/** A running target of load. */
export interface RunningTarget {
  readonly name: string;
  /** The processes that do the work, by their names in the report. */
  readonly pids: Readonly<Record<string, number | undefined>>;
  drive(scenario: Scenario, pace: Pace): Promise<LoadResult>;
}

export interface Surroundings {
  /** The process that drives HTTP targets. */
  readonly generator: ChildProcess;
  readonly connections: number;
  /** The number of leads of each target before the measurement. */
  readonly leads: number;
}

/** Production settings of the product, with a quota that is counted but never reached. */
const SETTINGS = {
  CORE_PORT: '0',
  GATEWAY_PORT: '0',
  CORE_TOKEN: randomBytes(24).toString('base64url'),
  LOG_LEVEL: 'warn',
  QUOTA_LIMIT: '1000000000',
  SHUTDOWN_DRAIN_MS: '0',
} as const;

/** Starts the floor. */
export async function startFloor(surroundings: Surroundings): Promise<RunningTarget> {
  const secret = `lik_${randomBytes(36).toString('base64url')}`;
  const env = { FLOOR_DATABASE: join(temporaryFolder(), 'leads.db'), FLOOR_SECRET: secret };
  const floor = startProcess('bench/floor.ts', { env });
  const { url } = await nextMessage<{ url: string }>(floor);
  return httpTarget('floor', { url, secret, sourceId: randomUUID() }, { floor: floor.pid }, surroundings);
}

/** Starts a core and a gateway, on SQLite. */
export function startProduct(surroundings: Surroundings): Promise<RunningTarget> {
  return startBoth('product', { DATABASE_URL: sqliteUrl() }, surroundings);
}

/**
 * Starts a core and a gateway, on SQLite, with many studios.
 *
 * @param write creates the studios and returns a key of each
 * @returns the same processes twice: driven with one key, and with all keys evenly
 */
export async function startProductWithKeys(
  write: (databaseUrl: string) => Promise<readonly KeyOfStudio[]>,
  pageSize: number,
  surroundings: Surroundings,
): Promise<[RunningTarget, RunningTarget]> {
  const { connections } = surroundings;
  const DATABASE_URL = sqliteUrl();
  const keys = await write(DATABASE_URL);
  const { url, pids } = await startCoreAndGateway({ DATABASE_URL });
  const drivenWith = (name: string, some: readonly KeyOfStudio[]) =>
    knownTarget({ kind: 'know-keys', workload: name, url, keys: some, pageSize, connections }, url, pids, surroundings);
  const count = keys.length.toLocaleString('en');
  return [await drivenWith('one key', keys.slice(0, 1)), await drivenWith(`${count} keys`, keys)];
}

/** Settings with request logs and metrics. */
const OBSERVED = {
  LOG_LEVEL: 'info',
  CORE_METRICS_ADDRESS: '127.0.0.1:0',
  GATEWAY_METRICS_ADDRESS: '127.0.0.1:0',
} as const;

/** Starts a core and a gateway, on SQLite, with request logs and metrics. */
export function startLogged(surroundings: Surroundings): Promise<RunningTarget> {
  return startBoth('product, logged', { DATABASE_URL: sqliteUrl(), ...OBSERVED }, surroundings);
}

/** Does the same with traces of every request, which the receiver discards. */
export async function startTraced(surroundings: Surroundings): Promise<RunningTarget> {
  const receiver = startProcess('bench/trace-receiver.ts');
  const { url } = await nextMessage<{ url: string }>(receiver);
  const env = { DATABASE_URL: sqliteUrl(), ...OBSERVED, OTEL_EXPORTER_OTLP_ENDPOINT: url };
  return startBoth('product, traced', env, surroundings);
}

/** Starts a core and a gateway, on a new database in MongoDB and with Redis for the quota. */
export function startProductOnMongo(mongoUrl: string, redisUrl: string, surroundings: Surroundings) {
  const env = { DATABASE_URL: ownDatabase(mongoUrl), REDIS_URL: redisUrl };
  return startBoth('product on MongoDB', env, surroundings);
}

/** Starts the product as `npm start` does, on SQLite. */
export async function startLauncher(surroundings: Surroundings): Promise<RunningTarget> {
  const env = { ...SETTINGS, DATABASE_URL: sqliteUrl() };
  const key = await createStudio(env.DATABASE_URL);
  const launcher = startProcess('start.ts', { env, output: 'read' });
  const pid = launcher.pid as number;
  const url = await printedUrl(launcher);
  const pids = { core: childRunning('src/main.ts', pid), gateway: childRunning('gateway/main.ts', pid) };
  return httpTarget('npm start', { url, ...key }, pids, surroundings);
}

/** Starts the bare driver of MongoDB. */
export async function startBareDriver(mongoUrl: string, { leads }: Surroundings): Promise<RunningTarget> {
  const driver = startProcess('bench/bare-driver.ts', { env: { DATABASE_URL: ownDatabase(mongoUrl) } });
  await perform(driver, { kind: 'prepare', leads });
  return {
    name: 'bare driver',
    pids: { driver: driver.pid },
    drive: (scenario, pace) => perform(driver, { kind: 'drive', scenario, pace }),
  };
}

async function startBoth(
  name: string,
  own: Readonly<Record<string, string>> & { readonly DATABASE_URL: string },
  surroundings: Surroundings,
): Promise<RunningTarget> {
  const key = await createStudio(own.DATABASE_URL);
  const { url, pids } = await startCoreAndGateway(own);
  return httpTarget(name, { url, ...key }, pids, surroundings);
}

/** The product's two processes. */
export interface CoreAndGateway {
  /** The address of the gateway. */
  readonly url: string;
  readonly pids: { readonly core: number | undefined; readonly gateway: number | undefined };
}

/**
 * Starts a core and a gateway.
 *
 * @param own settings in addition to SETTINGS
 */
export async function startCoreAndGateway(own: Readonly<Record<string, string>>): Promise<CoreAndGateway> {
  const env: Record<string, string> = { ...SETTINGS, ...own };
  // Request logs would bury the progress.
  const output = env.LOG_LEVEL === SETTINGS.LOG_LEVEL ? 'to standard error' : 'discarded';
  const core = startProcess('src/main.ts', { env, output });
  const { url: CORE_URL } = await nextMessage<{ url: string }>(core);
  const gateway = startProcess('gateway/main.ts', { env: { ...env, CORE_URL }, output });
  const { url } = await nextMessage<{ url: string }>(gateway);
  return { url, pids: { core: core.pid, gateway: gateway.pid } };
}

/** Creates the leads of a target. */
function httpTarget(
  name: string,
  target: Target,
  pids: RunningTarget['pids'],
  surroundings: Surroundings,
): Promise<RunningTarget> {
  const { connections, leads } = surroundings;
  return knownTarget({ kind: 'preload', workload: name, target, leads, connections }, target.url, pids, surroundings);
}

/** Prepares the load generator for an HTTP target. */
async function knownTarget(
  job: Exclude<LoadJob, { kind: 'drive' }>,
  url: string,
  pids: RunningTarget['pids'],
  { generator }: Surroundings,
): Promise<RunningTarget> {
  await perform(generator, job);
  const { workload } = job;
  return {
    name: workload,
    pids: { ...pids, load: generator.pid },
    drive: (scenario, pace) => perform(generator, { kind: 'drive', workload, url, scenario, pace } satisfies LoadJob),
  };
}

/** Returns the address of the REST API that the launcher prints. */
async function printedUrl(launcher: ChildProcess): Promise<string> {
  const output = launcher.stdout as Readable;
  for await (const line of createInterface(output)) {
    const [, url] = /REST API {2}(http:\/\/[^/]+)/.exec(line) ?? [];
    if (url !== undefined) {
      output.resume();
      return url;
    }
  }
  throw new Error('npm start ended without printing its address');
}

const createStudio = (databaseUrl: string): Promise<KeyOfStudio> =>
  withStore(databaseUrl, (store) => createStudioWithKey(store, 'bench'));

const sqliteUrl = () => `sqlite:${join(temporaryFolder(), 'leads.db')}`;
