/**
 * Compares the product with a floor: a hand-made process that does the minimum. Both get the same load in turn.
 *
 *   node bench/bench.ts [--quick] [--only create] [--target product,observed]
 *
 * - `--quick`: short rounds; less than two minutes in all
 * - `--only`: only these of get, list, replay, create, p99 (create, then its latency), crowds (few and many connections) and keys
 *   (those of many studios), in short rounds
 * - `--target`: `product`, a core and a gateway; `start`, as `npm start` runs them; `observed`, with request logs and metrics, and
 *   with traces, too; `mongodb`, on the servers of MONGODB_URL and REDIS_URL. Default: all; with `--quick` all but `observed`, with
 *   `--only` the first
 *
 * Prints Markdown to standard output and progress to standard error. The exit status is 1 when a request failed.
 */
import { describeMachine } from './machine.ts';
import { measureOnMongo } from './on-mongo.ts';
import { measureOnSqlite } from './on-sqlite.ts';
import { type Options, readOptions } from './options.ts';
import { startProcess } from './processes.ts';
import { failureLines, goalTable, type Section, sectionTable } from './report.ts';
import { runBenchmark } from './run-benchmark.ts';
import type { Surroundings } from './targets.ts';

const LEADS = 1000;
const CONNECTIONS = 64;

await runBenchmark(() => run(readOptions()));

async function run(options: Options): Promise<void> {
  const { places } = options;
  const { rounds, roundMs, warmUpMs } = options.rounds;
  const print = (...lines: string[]) => console.log(`${lines.join('\n')}\n`);
  print(
    ...describeMachine().map((line) => `- ${line}`),
    `- ${CONNECTIONS} keep-alive connections, ${LEADS} leads before the start, ${rounds} rounds of ${roundMs} ms in turn after ` +
      `${warmUpMs} ms of warm-up; medians of the rounds, for ratios with the lowest and the highest`,
    '- processor time is microseconds per request, by process; `load` is the load generator; `stolen` is the part of the ' +
      "processors' time that a virtual machine's host gave to other guests",
  );

  const surroundings: Surroundings = {
    generator: startProcess('bench/load-generator.ts'),
    connections: CONNECTIONS,
    leads: LEADS,
  };
  const sections: Section[] = [];
  const add = (section: Section) => {
    sections.push(section);
    print(`## ${section.title}`, '', sectionTable(section));
  };
  if (places.some((place) => place !== 'mongodb')) add(await measureOnSqlite(surroundings, options));
  const { MONGODB_URL, REDIS_URL } = process.env;
  if (places.includes('mongodb')) {
    if (MONGODB_URL && REDIS_URL) add(await measureOnMongo(MONGODB_URL, REDIS_URL, surroundings, options));
    else print('Not measured on MongoDB: MONGODB_URL and REDIS_URL are not both set.');
  }
  print('## Targets', '', goalTable(sections.flatMap(({ goals }) => goals)));

  const failures = sections.flatMap(failureLines);
  if (failures.length === 0) return;
  print('## Failed requests', '', ...failures);
  process.exitCode = 1;
}
