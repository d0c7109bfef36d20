import type { ChildProcess } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { childRunning } from './cpu-time.ts';
import type { Pace } from './drive.ts';
import { nextMessage, perform } from './jobs.ts';
import type { KeyOfStudio, Target } from './lead-requests.ts';
import type { LoadJob } from './load-generator.ts';
import { ownDatabase } from './mongo-database.ts';
import { startProcess, temporaryFolder } from './processes.ts';
import type { LoadResult } from './tally.ts';
import type { Scenario } from './workload.ts';

/** Something that load is put on. */
export interface RunningTarget {
  /** Its name in the report. */
  readonly name: string;
  /** The processes that work when it is driven, by what they are in the report. */
  readonly pids: Readonly<Record<string, number | undefined>>;
  drive(scenario: Scenario, pace: Pace): Promise<LoadResult>;
}

/** How targets are started and driven. */
export interface Surroundings {
  /** Puts load on those that speak HTTP. */
  readonly generator: ChildProcess;
  readonly connections: number;
  /** How many leads each target has before it is measured. */
  readonly leads: number;
  /** Where the profiles of the product's processes go; undefined: they are not profiled. */
  readonly profileFolder: string | undefined;
}

/** The product's settings: those of production, with a quota that is counted and never reached. */
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
  const floor = startProcess('bench/floor.ts', { env, flags: profiled('floor', surroundings) });
  const { url } = await nextMessage<{ url: string }>(floor);
  return httpTarget('floor', { url, secret, sourceId: randomUUID() }, { floor: floor.pid }, surroundings);
}

/** Starts the product's processes one by one, on SQLite. */
export function startProduct(surroundings: Surroundings): Promise<RunningTarget> {
  return startBoth('product', { DATABASE_URL: sqliteUrl() }, surroundings);
}

/**
 * Starts the product's processes one by one, on SQLite, with many studios.
 *
 * @param write writes them into a database, and gives a key of each
 * @param pageSize of the pages that are asked for
 * @returns the same processes twice: asked with one key, and with all of them evenly
 */
export async function startProductWithKeys(
  write: (databaseUrl: string) => Promise<readonly KeyOfStudio[]>,
  pageSize: number,
  surroundings: Surroundings,
): Promise<[RunningTarget, RunningTarget]> {
  const { connections } = surroundings;
  const DATABASE_URL = sqliteUrl();
  const keys = await write(DATABASE_URL);
  const { url, pids } = await startCoreAndGateway({ DATABASE_URL }, (process) =>
    profiled(`keys ${process}`, surroundings),
  );
  const askedWith = (name: string, some: readonly KeyOfStudio[]) =>
    knownTarget({ kind: 'know-keys', workload: name, url, keys: some, pageSize, connections }, url, pids, surroundings);
  const count = keys.length.toLocaleString('en');
  return [await askedWith('one key', keys.slice(0, 1)), await askedWith(`${count} keys`, keys)];
}

/** What it takes to see all that the product does, but for traces. */
const TOLD = {
  LOG_LEVEL: 'info',
  CORE_METRICS_ADDRESS: '127.0.0.1:0',
  GATEWAY_METRICS_ADDRESS: '127.0.0.1:0',
} as const;

/** Starts the product's processes one by one, on SQLite, with a line about every request, and metrics. */
export function startLogged(surroundings: Surroundings): Promise<RunningTarget> {
  return startBoth('product, logged', { DATABASE_URL: sqliteUrl(), ...TOLD }, surroundings);
}

/** The same with traces of every request, which are taken and thrown away. */
export async function startTraced(surroundings: Surroundings): Promise<RunningTarget> {
  const receiver = startProcess('bench/trace-receiver.ts');
  const { url } = await nextMessage<{ url: string }>(receiver);
  const env = { DATABASE_URL: sqliteUrl(), ...TOLD, OTEL_EXPORTER_OTLP_ENDPOINT: url };
  return startBoth('product, traced', env, surroundings);
}

/** Starts the product's processes one by one, on a database of its own in MongoDB and with Redis for the quota. */
export function startProductOnMongo(mongoUrl: string, redisUrl: string, surroundings: Surroundings) {
  const env = { DATABASE_URL: ownDatabase(mongoUrl), REDIS_URL: redisUrl };
  return startBoth('product on MongoDB', env, surroundings);
}

/** The same with two gateways on one port. The processor time of the gateway is that of the process that sees to them. */
export function startTwoGateways(mongoUrl: string, redisUrl: string, surroundings: Surroundings) {
  const env = { DATABASE_URL: ownDatabase(mongoUrl), REDIS_URL: redisUrl, GATEWAY_PROCESSES: '2' };
  return startBoth('product, two gateways', env, surroundings);
}

/** Starts the product as `npm start` does, on SQLite. */
export async function startLauncher(surroundings: Surroundings): Promise<RunningTarget> {
  const env = { ...SETTINGS, DATABASE_URL: sqliteUrl() };
  const demo = await makeDemo(env);
  const launcher = startProcess('start.ts', { env, output: 'read' });
  const pid = launcher.pid as number;
  const url = await printedUrl(launcher);
  const pids = { core: childRunning('src/main.ts', pid), gateway: childRunning('gateway/main.ts', pid) };
  return httpTarget('npm start', { url, ...demo }, pids, surroundings);
}

/** Starts what asks MongoDB without a product in between. */
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
  own: Readonly<Record<string, string>>,
  surroundings: Surroundings,
): Promise<RunningTarget> {
  const demo = await makeDemo({ ...SETTINGS, ...own });
  const { url, pids } = await startCoreAndGateway(own, (process) => profiled(`${name} ${process}`, surroundings));
  return httpTarget(name, { url, ...demo }, pids, surroundings);
}

/** The product's two processes. */
export interface CoreAndGateway {
  /** Where the gateway listens. */
  readonly url: string;
  readonly coreUrl: string;
  readonly coreToken: string;
  readonly pids: { readonly core: number | undefined; readonly gateway: number | undefined };
}

/**
 * Starts the product's processes one by one.
 *
 * @param own settings, besides those that all have
 * @param flagsOf flags for Node
 */
export async function startCoreAndGateway(
  own: Readonly<Record<string, string>>,
  flagsOf: (process: 'core' | 'gateway') => readonly string[] = () => [],
): Promise<CoreAndGateway> {
  const env: Record<string, string> = { ...SETTINGS, ...own };
  // Lines about requests would bury the progress.
  const output = env.LOG_LEVEL === SETTINGS.LOG_LEVEL ? 'to standard error' : 'thrown away';
  const core = startProcess('src/main.ts', { env, output, flags: flagsOf('core') });
  const { url: CORE_URL } = await nextMessage<{ url: string }>(core);
  const gateway = startProcess('gateway/main.ts', { env: { ...env, CORE_URL }, output, flags: flagsOf('gateway') });
  const { url } = await nextMessage<{ url: string }>(gateway);
  return { url, coreUrl: CORE_URL, coreToken: SETTINGS.CORE_TOKEN, pids: { core: core.pid, gateway: gateway.pid } };
}

/** Fills a target, so that there is something to read. */
function httpTarget(
  name: string,
  target: Target,
  pids: RunningTarget['pids'],
  surroundings: Surroundings,
): Promise<RunningTarget> {
  const { connections, leads } = surroundings;
  return knownTarget({ kind: 'preload', workload: name, target, leads, connections }, target.url, pids, surroundings);
}

/** Has the generator get to know a target that speaks HTTP. */
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

/** Makes a studio with an owner, a source and a key, as an operator would. */
async function makeDemo(env: Readonly<Record<string, string>>): Promise<Pick<Target, 'secret' | 'sourceId'>> {
  const cli = startProcess('operator/cli.ts', { args: ['demo', '--json'], env, output: 'read' });
  const { secret, sourceId } = JSON.parse(await text(outputOf(cli)));
  return { secret, sourceId };
}

/** Where the launcher says that the REST API is. */
async function printedUrl(launcher: ChildProcess): Promise<string> {
  const output = outputOf(launcher);
  for await (const line of createInterface(output)) {
    const [, url] = /REST API {2}(http:\/\/[^/]+)/.exec(line) ?? [];
    if (url !== undefined) {
      output.resume();
      return url;
    }
  }
  throw new Error('npm start did not start');
}

function outputOf({ stdout, spawnargs }: ChildProcess): Readable {
  if (!stdout) throw new Error(`the output of ${spawnargs.join(' ')} is not read`);
  return stdout;
}

function profiled(name: string, { profileFolder }: Surroundings): readonly string[] {
  const file = `${name.replaceAll(' ', '-')}.cpuprofile`;
  return profileFolder ? ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`, `--cpu-prof-name=${file}`] : [];
}

const sqliteUrl = () => `sqlite:${join(temporaryFolder(), 'leads.db')}`;
