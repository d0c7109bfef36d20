import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { portToKeep } from '../crash/deployment.ts';
import { FORGETFUL_DISKS, startForgetfulDisk } from '../crash/forgetful-disk.ts';
import { PUBLIC_URL } from '../support/documented.ts';
import { SMALL_DISKS, startSmallDisk } from '../support/small-disk.ts';
import { startProxy } from '../support/tcp-proxy.ts';
import { someCertificates } from './certificates.ts';
import { canClocksBeSet, MachineClock } from './clock.ts';
import { RealCommandLine } from './command-line.ts';
import { SqliteAccess } from './direct-access.ts';
import type { Plan } from './plan.ts';
import { ProductPart } from './product-part.ts';
import type { Settings } from './settings.ts';
import type { Part, World, WorldDisk } from './world.ts';

const FILES = { core: 'src/main.ts', gateway: 'gateway/main.ts' } as const;

/** Several times the space that the leads of a simulation need; KiB. */
const SMALL_DISK_KIB = 16_384;

/** Starts what `npm start` runs, on SQLite: one core and one gateway; when one ends, so does the other. */
export async function startSqliteWorld(settings: Settings, { disk: kind, clocks: areSet, tls }: Plan): Promise<World> {
  const disk = await diskOf(kind);
  const home = mkdtempSync(join(tmpdir(), 'lead-intake-world-'));
  const folder = join(disk?.disk.folder ?? home, 'data');
  if (!disk) mkdirSync(folder);
  const clocks = areSet && canClocksBeSet ? [new MachineClock('everything', join(home, 'clocks'))] : [];
  const certificates = tls ? await someCertificates(join(home, 'certificates')) : undefined;
  const databaseUrl = `sqlite:${join(folder, 'leads.db')}`;
  const [corePort, gatewayPort, coreMetrics, gatewayMetrics] = [
    await portToKeep(),
    await portToKeep(),
    await portToKeep(),
    await portToKeep(),
  ];
  const toCore = await startProxy('127.0.0.1', corePort);
  const toGateway = await startProxy('127.0.0.1', gatewayPort);
  const coreToken = crypto.randomUUID();
  const unexpectedEnds: string[] = [];
  const env = {
    CORE_PORT: `${corePort}`,
    CORE_TOKEN: coreToken,
    CORE_URL: certificates ? `https://localhost:${toCore.port}` : `http://127.0.0.1:${toCore.port}`,
    GATEWAY_PORT: `${gatewayPort}`,
    DATABASE_URL: databaseUrl,
    PUBLIC_URL,
    CORE_METRICS_ADDRESS: `127.0.0.1:${coreMetrics}`,
    // Short, so that connections end many times in a simulation.
    CORE_CONNECTION_MAX_AGE_MS: '1500',
    GATEWAY_METRICS_ADDRESS: `127.0.0.1:${gatewayMetrics}`,
    ...settings,
    ...clocks[0]?.settings,
    ...certificates?.core,
    ...certificates?.gateway,
  };
  const within = disk?.kind === 'small' ? disk.disk.within : [];
  const product = new ProductPart({
    name: 'everything',
    file: 'start.ts',
    env,
    within,
    losesCounts: true,
    onUnexpectedEnd: (what) => unexpectedEnds.push(what),
  });
  const commandLine = new RealCommandLine({ ...env, PUBLIC_URL: `http://127.0.0.1:${toGateway.port}` }, within);
  await product.start();
  const partOf = (name: keyof typeof FILES): Part => ({
    name,
    losesCounts: true,
    kill: () => product.kill(FILES[name]),
    start: (more) => product.start(more),
    pause: () => product.pause(FILES[name]),
    resume: () => product.resume(FILES[name]),
  });
  return {
    isSimulated: false,
    urls: [`http://127.0.0.1:${toGateway.port}`],
    gatewayUrls: [`http://127.0.0.1:${gatewayPort}`],
    coreUrls: [certificates ? `https://localhost:${corePort}` : `http://127.0.0.1:${corePort}`],
    metricsUrls: [coreMetrics, gatewayMetrics].map((port) => `http://127.0.0.1:${port}/metrics`),
    coreToken,
    databaseUrl,
    parts: [product, partOf('core'), partOf('gateway')],
    links: { gateway: toGateway, core: toCore },
    commandLine,
    directAccess: new SqliteAccess(commandLine),
    certificates,
    clocks,
    disk,
    processes: () => product.processes(),
    outputs: () => product.outputs(),
    unexpectedEnds,
    async stop() {
      await Promise.all([product.kill(), commandLine.kill()]);
      await Promise.all([toCore.stop(), toGateway.stop(), disk?.disk.stop()]);
      rmSync(home, { recursive: true, force: true });
    },
  };
}

const DISKS = { usual: undefined, small: SMALL_DISKS, forgetful: FORGETFUL_DISKS } as const;

/** Falls back to a usual disk on a machine that cannot make the others; in CI this fails, because it would hide faults. */
async function diskOf(kind: Plan['disk']): Promise<WorldDisk | undefined> {
  const disks = DISKS[kind];
  if (disks && !disks.areAvailable) {
    if (process.env.CI === 'true') throw new Error(`There are no ${kind} disks: ${disks.remedy}.`);
    console.warn(`This simulation runs without a ${kind} disk. To have one, ${disks.remedy}.`);
    return undefined;
  }
  if (kind === 'small') return { kind, disk: await startSmallDisk(SMALL_DISK_KIB) };
  if (kind === 'forgetful') return { kind, disk: await startForgetfulDisk() };
  return undefined;
}
