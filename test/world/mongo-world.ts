import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { portToKeep } from '../crash/deployment.ts';
import { isCoreServing, isGatewayReady, startBalancer } from '../support/balancer.ts';
import { times } from '../support/builders.ts';
import { PUBLIC_URL } from '../support/documented.ts';
import type { MongoWireServer } from '../support/mongodb.ts';
import type { RedisServer } from '../support/servers.ts';
import { startProxy } from '../support/tcp-proxy.ts';
import { channelWith, someCertificates } from './certificates.ts';
import { canClocksBeSet, MachineClock } from './clock.ts';
import { RealCommandLine } from './command-line.ts';
import { MongoAccess } from './direct-access.ts';
import type { Plan } from './plan.ts';
import { ProductPart } from './product-part.ts';
import type { Settings } from './settings.ts';
import type { Part, World } from './world.ts';

/** The interval of the load balancers' readiness probes; milliseconds. */
const PROBE_MS = 100;

const WEAK_GUARANTEES = { w: '0', journal: 'false', readConcernLevel: 'local', readPreference: 'secondaryPreferred' };

/** Starts two cores and two gateways, each pair behind a load balancer, on MongoDB and Redis, which outlive the world. */
export async function startMongoWorld(
  settings: Settings,
  { clocks: areSet, tls }: Plan,
  database: MongoWireServer,
  redis: RedisServer,
): Promise<World> {
  await redis.flush();
  const databaseName = `world-${randomUUID()}`;
  const toDatabase = await startProxy('127.0.0.1', Number(new URL(database.url).port));
  const toRedis = await startProxy('127.0.0.1', Number(new URL(redis.url).port));
  const databaseUrl = withWeakGuarantees(addressThrough(database.url, toDatabase.port, databaseName));
  const redisUrl = addressThrough(redis.url, toRedis.port);
  const coreToken = randomUUID();
  const unexpectedEnds: string[] = [];
  const onUnexpectedEnd = (what: string) => unexpectedEnds.push(what);
  const keptPorts = (count: number) => Promise.all(times(count, portToKeep));
  const [corePorts, gatewayPorts, metricsPorts] = [await keptPorts(2), await keptPorts(2), await keptPorts(4)];
  const home = mkdtempSync(join(tmpdir(), 'lead-intake-world-'));
  const certificates = tls ? await someCertificates(home) : undefined;
  const channel = certificates && channelWith(certificates.caller);
  // The certificate is valid for the name only, not for the address.
  const coreUrlAt = (port?: number) => (certificates ? `https://localhost:${port}` : `http://127.0.0.1:${port}`);
  const clocks: MachineClock[] = [];
  const clockOf = (name: string): Settings => {
    if (!areSet || !canClocksBeSet) return {};
    const clock = new MachineClock(name, home);
    clocks.push(clock);
    return clock.settings;
  };
  const common = { CORE_TOKEN: coreToken, PUBLIC_URL };

  const partOf = (name: string, file: string, own: Settings) =>
    new ProductPart({
      name,
      file,
      env: { ...common, ...own, ...settings, ...clockOf(name) },
      losesCounts: false,
      onUnexpectedEnd,
    });

  const cores = corePorts.map((port, index) =>
    partOf(`core ${index + 1}`, 'src/main.ts', {
      CORE_PORT: `${port}`,
      DATABASE_URL: databaseUrl,
      CORE_METRICS_ADDRESS: `127.0.0.1:${metricsPorts[index]}`,
      // Short, so that connections end many times in a simulation.
      CORE_CONNECTION_MAX_AGE_MS: '1500',
      ...certificates?.core,
    }),
  );
  const coreUrls = corePorts.map(coreUrlAt);
  await Promise.all(cores.map((core) => core.start()));
  const toCores = await startBalancer(coreUrls, (url) => isCoreServing(url, channel), PROBE_MS);
  const balancerPort = Number(new URL(toCores.url).port);
  const coreWays = await Promise.all(times(2, () => startProxy('127.0.0.1', balancerPort)));
  const gateways = gatewayPorts.map((port, index) =>
    partOf(`gateway ${index + 1}`, 'gateway/main.ts', {
      GATEWAY_PORT: `${port}`,
      CORE_URL: coreUrlAt(coreWays[index]?.port),
      REDIS_URL: redisUrl,
      GATEWAY_METRICS_ADDRESS: `127.0.0.1:${metricsPorts[index + 2]}`,
      ...certificates?.gateway,
    }),
  );
  await Promise.all(gateways.map((gateway) => gateway.start()));
  const gatewayUrls = gatewayPorts.map((port) => `http://127.0.0.1:${port}`);
  const toGateways = await startBalancer(gatewayUrls, isGatewayReady, PROBE_MS);
  const gatewayWay = await startProxy('127.0.0.1', Number(new URL(toGateways.url).port));
  const product = [...cores, ...gateways];
  const commandLine = new RealCommandLine({
    ...settings,
    ...certificates?.core,
    ...certificates?.gateway,
    ...clockOf('operators'),
    CORE_TOKEN: coreToken,
    CORE_URL: coreUrlAt(coreWays[0]?.port),
    DATABASE_URL: databaseUrl,
    PUBLIC_URL: `http://127.0.0.1:${gatewayWay.port}`,
    REDIS_URL: redisUrl,
  });
  const links = {
    gateway: gatewayWay,
    core: coreWays[0],
    'other core': coreWays[1],
    database: toDatabase,
    redis: toRedis,
  };

  return {
    isSimulated: false,
    urls: [`http://127.0.0.1:${gatewayWay.port}`, ...gatewayUrls],
    gatewayUrls,
    coreUrls,
    metricsUrls: metricsPorts.map((port) => `http://127.0.0.1:${port}/metrics`),
    coreToken,
    databaseUrl,
    parts: [...product, databasePart(database), redisPart(redis)],
    links: links as World['links'],
    commandLine,
    directAccess: new MongoAccess(addressThrough(database.url, toDatabase.port, databaseName)),
    certificates,
    clocks,
    disk: undefined,
    processes: () => product.flatMap((part) => part.processes()),
    outputs: () => product.flatMap((part) => part.outputs()),
    unexpectedEnds,
    async stop() {
      await Promise.all([...product, commandLine].map((each) => each.kill()));
      for (const balancer of [toCores, toGateways]) balancer.stop();
      await Promise.all([toDatabase, toRedis, gatewayWay, ...coreWays].map((link) => link.stop()));
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Adds options that ask for weaker guarantees than the service promises: the service must ignore them. */
function withWeakGuarantees(address: string): string {
  const url = new URL(address);
  for (const [name, value] of Object.entries(WEAK_GUARANTEES)) url.searchParams.set(name, value);
  return url.href;
}

/** Returns the same URL with another port of this machine. */
function addressThrough(address: string, port: number, path?: string): string {
  const url = new URL(address);
  url.host = `127.0.0.1:${port}`;
  if (path !== undefined) url.pathname = `/${path}`;
  return url.href;
}

function databasePart(database: MongoWireServer): Part {
  return {
    name: 'database',
    losesCounts: false,
    kill: () => database.kill(),
    start: () => database.revive(),
    pause: () => database.pause(),
    resume: () => database.resume(),
  };
}

function redisPart(redis: RedisServer): Part {
  return {
    name: 'redis',
    losesCounts: true,
    kill: () => redis.kill(),
    start: () => redis.restart(),
    pause: () => redis.pause(),
    resume: () => redis.resume(),
  };
}
