/**
 * What the product costs above the least that could do its work: the same load on a hand-made floor and on the product,
 * in turn.
 *
 *   node bench/bench.ts [--quick] [--only create] [--target product,observed] [--connections 4] [--profile FOLDER]
 *
 * - `--quick`: short rounds; all of it in less than two minutes
 * - `--only`: nothing but these of get, list, replay, create, p99 (create, then its latency), crowds (with few and with many
 *   connections) and keys (with those of many studios), in short rounds
 * - `--target`: `product`, process by process; `start`, as `npm start` runs it; `observed`, with a line about each request and
 *   metrics, and with traces too; `mongodb`, where MONGODB_URL and REDIS_URL say where its servers are. Unless told, all of
 *   them; with `--quick` all but `observed`, with `--only` the first alone
 * - `--connections`: how many keep-alive connections put the load on, each with one request at a time; unless told, 64
 * - `--profile`: CPU profiles of floor, core and gateway go there; what is measured then contains the profiler
 *
 * Prints Markdown to the standard output and its progress to the standard error. Its status is 1 when a request failed.
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

await runBenchmark(() => run(readOptions()));

async function run(options: Options): Promise<void> {
  const { places, connections, profileFolder } = options;
  const { rounds, roundMs, warmUpMs } = options.rounds;
  const print = (...lines: string[]) => console.log(`${lines.join('\n')}\n`);
  print(
    ...describeMachine().map((line) => `- ${line}`),
    `- ${connections} keep-alive connections, ${LEADS} leads before the start, ${rounds} rounds of ${roundMs} ms in turn after ` +
      `${warmUpMs} ms of warming up; medians of the rounds, for ratios with the lowest and the highest`,
    '- processor time is microseconds per request, by process; `load` is the load generator; `stolen` is what part of the ' +
      "processors' time a virtual machine's host gave to others meanwhile",
  );

  const surroundings: Surroundings = {
    generator: startProcess('bench/load-generator.ts'),
    connections,
    leads: LEADS,
    profileFolder,
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
