/**
 * Compares the product with a floor: a hand-made process that does the minimum, or on MongoDB the bare driver. Both get the same load in
 * turn.
 *
 *   node bench/bench.ts [--quick] [--target sqlite|mongodb]
 *
 * - `--quick`: short rounds
 * - `--target`: one database only. `mongodb` uses the servers of MONGODB_URL and REDIS_URL; without them, only SQLite is measured
 *
 * @proves node-3 v8-1 fastify-7 connect-14 sqlite-10 sqlite-11 sqlite-12 mongodb-23 others-19 others-20
 *
 * Prints Markdown to standard output and progress to standard error. The exit status is 1 when a request failed.
 */
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createStudioWithKey, newMongoDatabase, newSqliteDatabase, serverName, withStore } from './database.ts';
import { atTheEnd, runBenchmark, temporaryFolder } from './processes.ts';
import { comparisonTable, describeMachine, failureLines, median, print } from './report.ts';
import { type Compared, type Comparison, compare, type Rounds } from './rounds.ts';
import {
  httpTarget,
  type RunningTarget,
  startBareDriver,
  startCoreAndGateway,
  startFloor,
  startProduct,
  startWithManyKeys,
} from './targets.ts';
import { LEADS, SCENARIOS, type Scenario } from './workload.ts';

const CONNECTIONS = 64;

/** Most websites open only a few connections. */
const FEW = 4;

const FULL: Rounds = { rounds: 5, roundMs: 2000, warmUpMs: 1500 };
const QUICK: Rounds = { rounds: 3, roundMs: 1000, warmUpMs: 750 };

/**
 * The minimum rates, relative to the floor's; on MongoDB, to the bare driver's inserts, finds by key and pages. They are what two cores
 * have reached; `RESULTS.md` has higher goals, and what they would take.
 */
const GOALS: Readonly<Partial<Record<Scenario, number>>> = { get: 0.8, list: 1.5, replay: 0.45, create: 0.85 };
const GOALS_WITH_FEW = { get: 0.25, list: 0.7, create: 0.7 } as const;
const GOALS_AS_STARTED = { get: 0.75, list: 1.3, create: 0.9 } as const;
const GOALS_ON_MONGODB: Readonly<Partial<Record<Scenario, number>>> = { get: 1.2, list: 0.9, replay: 1.2, create: 1.2 };

/** The number of studios that share a gateway, each with a key. The minimum rates with all keys are relative to those with one. */
const KEYS = 20_000;
const GOALS_WITH_ALL_KEYS = { get: 0.65, list: 0.55, create: 0.65 } as const;
/** The warm-up uses almost every key, because the first use of a key is slower. */
const KEYS_WARM_UP_MS = 8000;

/** The minimum rates with one trace in ten exported, and with request logs and scraped metrics, relative to those without. */
const GOALS_TRACED = { get: 0.8, create: 0.95 } as const;
const MIN_RATE_OBSERVED = 0.9;
const SCRAPED_EVERY_MS = 5000;

/** The share of the highest rate at which the latency of creations is measured. The maximum p99 is relative to the floor's. */
const STEADY = 0.7;
const MAX_P99 = 1.2;

const NO_LEADS = { leads: [], cursors: [] };

/** A caller creates leads while an attacker guesses keys as fast as possible. The maximum p99 is relative to that without guesses. */
const CALLED_PER_SECOND = 200;
const GUESSING_CONNECTIONS = 500;
const MAX_P99_BESIDE_GUESSES = 2;

await runBenchmark(async () => {
  const { quick, target } = parseArgs({
    options: { quick: { type: 'boolean', default: false }, target: { type: 'string' } },
  }).values;
  const { MONGODB_URL, REDIS_URL } = process.env;
  const hasServers = MONGODB_URL !== undefined && REDIS_URL !== undefined;
  if (target !== undefined && target !== 'sqlite' && target !== 'mongodb') {
    throw new Error(`--target: ${target} is not sqlite or mongodb`);
  }
  if (target === 'mongodb' && !hasServers) throw new Error('--target mongodb needs MONGODB_URL and REDIS_URL');
  const rounds = quick ? QUICK : FULL;
  print(
    ...describeMachine(),
    `- ${CONNECTIONS} keep-alive connections, ${LEADS} leads before the start, ${rounds.rounds} rounds of ${rounds.roundMs} ms in ` +
      `turn after ${rounds.warmUpMs} ms of warm-up; medians of the rounds, for ratios with the lowest and the highest`,
    '- processor time is microseconds per request, by process; `load` is the load generator',
  );
  const all: Compared[] = [];
  if (target !== 'mongodb') {
    const compared = await measureOnSqlite(rounds);
    print('## SQLite', '', comparisonTable(compared));
    all.push(...compared);
  }
  if (target !== 'sqlite' && hasServers) {
    const compared = await measureOnMongo(MONGODB_URL, REDIS_URL, rounds);
    print(`## ${await serverName(MONGODB_URL)} and Redis`, '', comparisonTable(compared));
    all.push(...compared);
  }
  const failures = failureLines(all);
  if (failures.length === 0) return;
  print('## Failed requests', '', ...failures);
  process.exitCode = 1;
});

async function measureOnSqlite(rounds: Rounds): Promise<Compared[]> {
  const floor = await startFloor();
  const product = await startProduct();
  const all: Compared[] = [];
  const add = async (comparison: Comparison, base = floor, target = product) => {
    all.push(await compare(comparison, [base, target], rounds));
  };
  for (const scenario of SCENARIOS) {
    await add({ name: scenario, scenario, connections: CONNECTIONS, minRate: GOALS[scenario] });
  }
  const creations = all.find(({ scenario }) => scenario === 'create') as Compared;
  const [floorRate = 0, productRate = 0] = creations.series.map(({ rounds }) =>
    median(rounds.map(({ ratePerSecond }) => STEADY * ratePerSecond)),
  );
  await add({
    name: `p99 of create at ${STEADY * 100} %`,
    scenario: 'create',
    connections: CONNECTIONS,
    ratesPerSecond: [floorRate, productRate],
    maxP99: MAX_P99,
  });
  for (const scenario of ['get', 'list', 'create'] as const) {
    const name = `${scenario}, ${FEW} connections`;
    await add({ name, scenario, connections: FEW, minRate: GOALS_WITH_FEW[scenario] });
  }
  const logged = await startLogged();
  for (const scenario of ['get', 'list', 'create'] as const) {
    const name = `${scenario}, as npm start runs it`;
    await add({ name, scenario, connections: CONNECTIONS, minRate: GOALS_AS_STARTED[scenario] }, floor, logged);
  }
  for (const scenario of ['get', 'create'] as const) {
    const name = `${scenario}, log and metrics`;
    await add({ name, scenario, connections: CONNECTIONS, minRate: MIN_RATE_OBSERVED }, product, logged);
  }
  const traced = await startTraced();
  for (const scenario of ['get', 'create'] as const) {
    const name = `${scenario}, one of ten traced`;
    await add({ name, scenario, connections: CONNECTIONS, minRate: GOALS_TRACED[scenario] }, product, traced);
  }
  all.push(await measureBesideGuesses(rounds));
  all.push(...(await measureKeys(rounds)));
  return all;
}

/** Starts the product with a request log in a file, and with scraped metrics. */
async function startLogged(): Promise<RunningTarget> {
  const addresses = { core: '127.0.0.1:9464', gateway: '127.0.0.1:9465' };
  const log = openSync(join(temporaryFolder(), 'log'), 'a');
  const own = {
    LOG_LEVEL: 'info',
    CORE_METRICS_ADDRESS: addresses.core,
    GATEWAY_METRICS_ADDRESS: addresses.gateway,
  };
  const target = await startProduct(own, 'with log and metrics', log);
  const timer = setInterval(() => {
    for (const address of Object.values(addresses))
      void fetch(`http://${address}/metrics`)
        .then((read) => read.text())
        .catch(() => {});
  }, SCRAPED_EVERY_MS);
  atTheEnd(() => clearInterval(timer));
  return target;
}

/** Starts the product with one trace in ten exported to a receiver that drops it. */
async function startTraced(): Promise<RunningTarget> {
  const receiver = createServer((request, response) => request.resume().once('end', () => response.end()));
  await once(receiver.listen(0, '127.0.0.1'), 'listening');
  atTheEnd(() => receiver.close());
  const own = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`,
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.1',
  };
  return startProduct(own, 'one of ten traced');
}

/** Compares a caller's creations without and with an attacker who guesses keys. */
async function measureBesideGuesses(rounds: Rounds): Promise<Compared> {
  const DATABASE_URL = newSqliteDatabase();
  const key = await withStore(DATABASE_URL, (store) => createStudioWithKey(store, 'bench'));
  const { url, pids } = await startCoreAndGateway({ DATABASE_URL });
  const alone = await httpTarget('alone', { url, ...key }, pids, NO_LEADS);
  const guesser = await httpTarget('guesser', { url, ...key }, {}, NO_LEADS);
  const beside: RunningTarget = {
    ...alone,
    name: `beside ${GUESSING_CONNECTIONS} that guess`,
    async drive(scenario, pace) {
      const [result, guessed] = await Promise.all([
        alone.drive(scenario, pace),
        guesser.drive('guess', { connections: GUESSING_CONNECTIONS, durationMs: pace.durationMs }),
      ]);
      return { ...result, failures: { ...result.failures, ...guessed.failures } };
    },
  };
  const comparison = {
    name: 'p99 of create, keys guessed',
    scenario: 'create',
    connections: FEW,
    ratesPerSecond: [CALLED_PER_SECOND, CALLED_PER_SECOND],
    maxP99: MAX_P99_BESIDE_GUESSES,
  } as const;
  return compare(comparison, [alone, beside], rounds);
}

/** Compares requests with the keys of many studios to requests with one of these keys. */
async function measureKeys(rounds: Rounds): Promise<Compared[]> {
  const targets = await startWithManyKeys(KEYS);
  const all: Compared[] = [];
  for (const scenario of ['get', 'list', 'create'] as const) {
    const name = `${scenario}, many keys`;
    const comparison = { name, scenario, connections: CONNECTIONS, minRate: GOALS_WITH_ALL_KEYS[scenario] };
    all.push(await compare(comparison, targets, { ...rounds, warmUpMs: KEYS_WARM_UP_MS }));
  }
  return all;
}

async function measureOnMongo(mongoUrl: string, REDIS_URL: string, rounds: Rounds): Promise<Compared[]> {
  const driver = await startBareDriver(mongoUrl);
  const product = await startProduct({ DATABASE_URL: newMongoDatabase(mongoUrl), REDIS_URL });
  const all: Compared[] = [];
  for (const scenario of SCENARIOS) {
    const comparison = { name: scenario, scenario, connections: CONNECTIONS, minRate: GOALS_ON_MONGODB[scenario] };
    all.push(await compare(comparison, [driver, product], rounds));
  }
  return all;
}
