import { randomBytes, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  createStudioWithKey,
  type FilledStudio,
  fillStudios,
  newMongoDatabase,
  newSqliteDatabase,
  withStore,
} from './database.ts';
import type { LoadResult, Pace } from './drive.ts';
import { nextMessage, performLoad, startProcess, temporaryFolder } from './processes.ts';
import type { KnownLeads, Scenario, Target } from './workload.ts';

/** A running target of load. */
export interface RunningTarget {
  readonly name: string;
  /** The processes that do the work, by their names in the report. */
  readonly pids: Readonly<Record<string, number | undefined>>;
  drive(scenario: Scenario, pace: Pace): Promise<LoadResult>;
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
export async function startFloor(): Promise<RunningTarget> {
  const secret = `lik_${randomBytes(36).toString('base64url')}`;
  const env = { FLOOR_DATABASE: join(temporaryFolder(), 'leads.db'), FLOOR_SECRET: secret };
  const floor = startProcess('bench/floor.ts', env);
  const { url } = await nextMessage<{ url: string }>(floor);
  return httpTarget('floor', { url, secret, sourceId: randomUUID() }, { floor: floor.pid });
}

/**
 * Starts a core and a gateway on a new database.
 *
 * @param own settings in addition to SETTINGS; without DATABASE_URL, the database is SQLite
 * @param log the file to which both log; undefined: standard error
 */
export async function startProduct(
  own: Readonly<Record<string, string>> = {},
  name = 'product',
  log?: number,
): Promise<RunningTarget> {
  const { DATABASE_URL = newSqliteDatabase() } = own;
  const key = await withStore(DATABASE_URL, (store) => createStudioWithKey(store, 'bench'));
  const { url, pids } = await startCoreAndGateway({ ...own, DATABASE_URL }, log);
  return httpTarget(name, { url, ...key }, pids);
}

/** Starts a core and a gateway with many studios. Returns a target with the first studio's key, and one with all keys. */
export async function startWithManyKeys(
  count: number,
  own: Readonly<Record<string, string>> = {},
): Promise<[one: RunningTarget, all: RunningTarget]> {
  const DATABASE_URL = newSqliteDatabase();
  const studios = await fillStudios(DATABASE_URL, count);
  const { url, pids } = await startCoreAndGateway({ ...own, DATABASE_URL });
  const targetWith = (name: string, some: readonly FilledStudio[]) => {
    const leads = some.flatMap(({ key, known }) => known.leads.map((lead) => ({ ...lead, ...key })));
    const known = { leads, cursors: [], keys: some.map(({ key }) => key) };
    return httpTarget(name, { url, ...(some[0] as FilledStudio).key }, pids, known);
  };
  return [
    await targetWith('one key', studios.slice(0, 1)),
    await targetWith(`${count.toLocaleString('en')} keys`, studios),
  ];
}

/** Starts the bare driver of MongoDB. */
export async function startBareDriver(mongoUrl: string): Promise<RunningTarget> {
  const driver = startProcess('bench/bare-driver.ts', { DATABASE_URL: newMongoDatabase(mongoUrl) });
  await nextMessage(driver);
  return {
    name: 'bare driver',
    pids: { driver: driver.pid },
    drive: (scenario, pace) => performLoad(driver, { scenario, pace }),
  };
}

/**
 * Starts a core and a gateway.
 *
 * @param own settings in addition to SETTINGS
 * @param log the file to which both log; undefined: standard error
 * @returns the address of the gateway, and both processes
 */
export async function startCoreAndGateway(own: Readonly<Record<string, string>>, log?: number) {
  const env = { ...SETTINGS, ...own };
  const core = startProcess('src/main.ts', env, log);
  const { url: CORE_URL } = await nextMessage<{ url: string }>(core);
  const gateway = startProcess('gateway/main.ts', { ...env, CORE_URL }, log);
  const { url } = await nextMessage<{ url: string }>(gateway);
  return { url, pids: { core: core.pid, gateway: gateway.pid } };
}

/**
 * Starts a load generator for an HTTP target.
 *
 * @param known the leads to read; undefined: the load generator creates them
 */
export async function httpTarget(
  name: string,
  target: Target,
  pids: RunningTarget['pids'],
  known?: KnownLeads,
): Promise<RunningTarget> {
  const env: Record<string, string> = { TARGET: JSON.stringify(target) };
  if (known) {
    env.KNOWN = join(temporaryFolder(), 'known-leads.json');
    writeFileSync(env.KNOWN, JSON.stringify(known));
  }
  const generator = startProcess('bench/load-generator.ts', env);
  await nextMessage(generator);
  return {
    name,
    pids: { ...pids, load: generator.pid },
    drive: (scenario, pace) => performLoad(generator, { scenario, pace }),
  };
}
