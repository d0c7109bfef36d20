/**
 * Measures the cost of a studio's growth: the same calls on a database with few leads and on one with a hundred times as many, at
 * the store port and as requests to the product.
 *
 *   node bench/growth.ts [--quick] [--leads NUMBER]
 *
 * Measures SQLite, and MongoDB if MONGODB_URL is set. `--leads` is the size of SQLite's large database; `--quick` uses a tenth of the
 * leads. Prints Markdown to standard output and progress to standard error.
 */
import { parseArgs } from 'node:util';
import type { Access } from './growth-access.ts';
import { type Engine, type LoadedDatabase, loadDatabase, mongo, sqlite } from './growth-database.ts';
import { measureLoad } from './growth-load.ts';
import { BATCH, leadsAdded, type Measurement, measure, ROUNDS } from './growth-measure.ts';
import { accessProduct } from './growth-product.ts';
import { growthTable, requestTable } from './growth-report.ts';
import { accessStore } from './growth-store.ts';
import { describeMachine } from './machine.ts';
import { failureLines, goalTable, sectionTable } from './report.ts';
import { runBenchmark } from './run-benchmark.ts';

await runBenchmark(async () => {
  const { quick, leads } = parseArgs({
    options: { quick: { type: 'boolean', default: false }, leads: { type: 'string', default: '1000000' } },
  }).values;
  if (!/^[1-9]\d{4,8}$/.test(leads)) throw new Error(`--leads: ${leads} is not a number from 10000 to 999999999`);
  print(
    ...describeMachine().map((line) => `- ${line}`),
    `- milliseconds, medians of ${ROUNDS} rounds, in a round the mean of creations and the median of the others; a ratio is ` +
      'the median of the ratios of the rounds, with the lowest and the highest',
    '- processor time is microseconds per request, core and gateway together',
  );
  await measureEngine(sqlite(Number(leads)), quick);
  const { MONGODB_URL } = process.env;
  if (MONGODB_URL) await measureEngine(await mongo(MONGODB_URL), quick);
});

async function measureEngine(engine: Engine, quick: boolean): Promise<void> {
  const [smallSize, largeSize] = engine.sizes.map((size) => (quick ? size / 10 : size)) as [number, number];
  const large = await loadDatabase(engine, largeSize);
  const small = await loadDatabase(engine, smallSize);
  const databases = [small, large] as const;

  const atStore = await measureBy(accessStore);
  print(`## ${engine.name}, at the store port`, '', growthTable(databases, atStore));
  const asRequests = await measureBy((database) => accessProduct(database, BATCH));
  print(`## ${engine.name}, as requests`, '', requestTable(databases, asRequests));
  print(`Each database grew by ${2 * leadsAdded(engine)} leads meanwhile, a half of them in each table.`);
  const load = await measureLoad(`${engine.name}, creations at the highest rate`, databases, quick);
  print(`## ${load.title}`, '', sectionTable(load), '', goalTable(load.goals), '', ...failureLines(load));

  async function measureBy(accessTo: (database: LoadedDatabase) => Promise<Access>): Promise<Measurement[]> {
    const accesses = [await accessTo(small), await accessTo(large)] as const;
    const measurements = await measure(engine, accesses);
    for (const access of accesses) await access.close();
    return measurements;
  }
}

function print(...lines: string[]): void {
  console.log(`${lines.join('\n')}\n`);
}
