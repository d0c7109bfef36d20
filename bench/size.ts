/**
 * Measures the bytes, memory and processor time that a deployment takes.
 *
 *   node bench/size.ts [--leads NUMBER] [--seconds NUMBER]
 *
 * - `--leads`: the size of the database whose bytes, start, backup, vacuum, export and import are measured
 * - `--seconds`: the duration of each load
 *
 * Measures SQLite, and MongoDB with Redis if MONGODB_URL and REDIS_URL are set. Prints Markdown to standard output and progress to standard
 * error. Other load on the machine affects durations, but hardly bytes and processor time.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { aConsumer, BY } from '../test/support/builders.ts';
import {
  bytesOnDisk,
  createStudioWithKey,
  fillStudio,
  newMongoDatabase,
  newSqliteDatabase,
  serverName,
  withStore,
} from './database.ts';
import { CLI, command, cpuTimeUs, measureSeconds, runBenchmark, temporaryFolder } from './processes.ts';
import { describeMachine, number, print, table } from './report.ts';
import { httpTarget, startCoreAndGateway } from './targets.ts';
import { LEADS } from './workload.ts';

/** Creations per second. The highest rate needs one processor core; a hundredth of it is a busy website. */
const RATES = [0, 1, 100, 1000];
const CONNECTIONS = 16;

const SECONDS_OF_YEAR = 365 * 86_400;
const GB = 1e9;

/** The bytes that each lead takes in one place. */
interface BytesOfLead {
  readonly where: string;
  readonly bytes: number;
}

/** Fills a database, and measures it and the commands that read or write it as a whole. */
async function measureSqlite(size: number): Promise<BytesOfLead[]> {
  console.error(`SQLite, ${size} leads`);
  const url = newSqliteDatabase();
  await withStore(url, (store) => fillStudio(store, 'busy-studio', size));
  const plain = await bytesOnDisk(url);
  const folder = temporaryFolder();
  // The core comes last, because a vacuum of millions of leads does not end while a core reads.
  const rows: [name: string, seconds: number][] = [
    ['`backup`', await command(url, 'backup', join(folder, 'copy.db'))],
    ['`vacuum`', await command(url, 'vacuum')],
    ['`leads export`', await measureSeconds(() => exportTo(url, join(folder, 'leads.csv')))],
    ['start of a core and a gateway', await measureSeconds(() => startCoreAndGateway({ DATABASE_URL: url }))],
  ];
  const imported = newSqliteDatabase();
  await withStore(imported, (store) => createStudioWithKey(store, 'busy-studio'));
  // The sources of the export do not exist in this studio.
  const importing = ['leads', 'import', 'busy-studio', join(folder, 'leads.csv'), '--columns', 'sourceId='];
  rows.push(['`leads import`', await command(imported, ...importing)]);
  const cells = rows.map(([name, duration]) => [name, number(duration, 1), number(size / duration, 0)]);
  print('## What takes time on SQLite', '', table(['', 'seconds', 'leads/s'], 1, cells));
  // Each lead has one delivery as long as nobody acknowledges it.
  const waiting = newSqliteDatabase();
  await withStore(waiting, async (store) => {
    await store.createConsumer(aConsumer({ name: 'crm' }), BY);
    await fillStudio(store, 'busy-studio', LEADS * 10);
    while (!(await store.distributeLeadChanges()));
  });
  const without = newSqliteDatabase();
  await withStore(without, (store) => fillStudio(store, 'busy-studio', LEADS * 10));
  return [
    { where: 'SQLite', bytes: plain / size },
    {
      where: 'a change that a consumer has not acknowledged',
      bytes: ((await bytesOnDisk(waiting)) - (await bytesOnDisk(without))) / (LEADS * 10),
    },
  ];
}

async function exportTo(url: string, file: string): Promise<void> {
  const args = [CLI, 'leads', 'export'];
  const output = openSync(file, 'w');
  const child = spawn(process.execPath, args, {
    env: { ...process.env, DATABASE_URL: url },
    stdio: ['ignore', output, 'inherit'],
  });
  await once(child, 'exit');
}

/** Measures the processes and their logs at each rate. */
async function measureLoads(seconds: number): Promise<BytesOfLead[]> {
  const url = newSqliteDatabase();
  const key = await withStore(url, (store) => createStudioWithKey(store, 'bench'));
  const log = join(temporaryFolder(), 'log');
  const { url: address, pids } = await startCoreAndGateway(
    { DATABASE_URL: url, LOG_LEVEL: 'info' },
    openSync(log, 'a'),
  );
  const target = await httpTarget('product', { url: address, ...key }, pids, { leads: [], cursors: [] });
  const processes = Object.entries(pids);
  const rows: string[][] = [];
  let bytesOfLog = 0;
  for (const rate of RATES) {
    console.error(`${rate} leads/s`);
    const before = { log: statSync(log).size, cpu: processes.map(([, pid]) => cpuTimeUs(pid)) };
    const pace = { connections: CONNECTIONS, durationMs: seconds * 1000, ratePerSecond: rate };
    if (rate === 0) await sleep(pace.durationMs);
    else bytesOfLog = (await target.drive('create', pace)).answered;
    if (rate > 0) bytesOfLog = (statSync(log).size - before.log) / bytesOfLog;
    rows.push([
      rate.toLocaleString('en'),
      ...processes.flatMap(([, pid], index) => [
        number(residentBytes(pid) / 1e6, 0),
        number((100 * (cpuTimeUs(pid) - (before.cpu[index] ?? 0))) / (seconds * 1e6), 1),
      ]),
    ]);
  }
  const heads = processes.flatMap(([name]) => [`${name} MB`, `${name} %`]);
  print('## A core and a gateway, on SQLite', '', table(['leads/s', ...heads], 0, rows));
  return [{ where: 'the logs of core and gateway, with `LOG_LEVEL=info`', bytes: bytesOfLog }];
}

async function measureMongo(mongoUrl: string, size: number): Promise<BytesOfLead> {
  console.error(`MongoDB, ${size} leads`);
  const url = newMongoDatabase(mongoUrl);
  await withStore(url, (store) => fillStudio(store, 'busy-studio', size));
  return { where: await serverName(mongoUrl), bytes: (await bytesOnDisk(url)) / size };
}

/** Measures the quota counters of many keys, each of a different studio. */
async function measureRedis(REDIS_URL: string): Promise<void> {
  const redis = new Redis(REDIS_URL);
  const used = async () => Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
  const DATABASE_URL = newSqliteDatabase();
  const studios = await withStore(DATABASE_URL, (store) =>
    Promise.all(Array.from({ length: LEADS }, (_, index) => fillStudio(store, `s-${index}`, 1))),
  );
  const { url, pids } = await startCoreAndGateway({ DATABASE_URL, REDIS_URL, QUOTA_WINDOW_SECONDS: '3600' });
  const before = await used();
  for (const { key } of studios) {
    const headers = { authorization: `Bearer ${key.secret}` };
    await (await fetch(`${url}/v1/integrations/leads?limit=1`, { headers })).text();
  }
  print(
    `Redis keeps ${number((await used()) - before, 0)} bytes for ${LEADS} keys that send within a window (${Object.keys(pids).join(', ')}).`,
  );
  redis.disconnect();
}

/** Extrapolates the measured bytes to a year. */
function printYears(all: readonly BytesOfLead[]): void {
  const rates = RATES.filter((rate) => rate > 0);
  const rows = all.map(({ where, bytes }) => [
    where,
    number(bytes, 0),
    ...rates.map((rate) => number((bytes * rate * SECONDS_OF_YEAR) / GB, 0)),
  ]);
  const heads = rates.map((rate) => `GB of a year at ${rate.toLocaleString('en')}/s`);
  print('## Bytes of a lead', '', table(['', 'bytes', ...heads], 1, rows));
}

function residentBytes(pid: number | undefined): number {
  return 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

await runBenchmark(async () => {
  const { leads, seconds } = parseArgs({
    options: { leads: { type: 'string', default: '100000' }, seconds: { type: 'string', default: '10' } },
  }).values;
  for (const value of [leads, seconds]) if (!/^[1-9]\d{0,8}$/.test(value)) throw new Error(`${value} is not a number`);
  const { MONGODB_URL, REDIS_URL } = process.env;
  print(...describeMachine(), `- ${Number(leads).toLocaleString('en')} leads; loads of ${seconds} s`);
  const bytes = await measureSqlite(Number(leads));
  bytes.push(...(await measureLoads(Number(seconds))));
  if (MONGODB_URL) bytes.push(await measureMongo(MONGODB_URL, Number(leads)));
  if (REDIS_URL) await measureRedis(REDIS_URL);
  printYears(bytes);
});
