/**
 * Measures whether random simulations find faults: runs simulations with each planted bug until a promise is broken. The control has no
 * bug, and must break no promise.
 *
 * `npm run soak:bugs` runs it. WORLD_BUGS: a pattern for the bugs' names; by default all bugs that a simulation can find.
 * WORLD_SIMULATIONS_PER_BUG: their maximum number. Each result is written to `.test-report/found-bugs.md` immediately: a
 * later run skips the bugs that were found, and runs only the missing simulations of the others.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ALL_BUGS, databaseOf } from '../planted-bugs/planted-bugs.ts';
import { live, simulatedPlanFrom } from '../simulation/life.ts';
import { ROOT } from '../support/processes.ts';
import { coveringSeeds } from './covering-seeds.ts';
import { type Database, onEachDatabase } from './on-each-database.ts';
import type { StartWorld } from './run-plan.ts';
import { type Failure, runSimulations, STEPS } from './run-simulations.ts';
import { UNDETECTABLE_BUGS } from './undetectable-bugs.ts';

const PATTERN = process.env.WORLD_BUGS ? new RegExp(process.env.WORLD_BUGS) : undefined;
const MAX_SIMULATIONS = Number(process.env.WORLD_SIMULATIONS_PER_BUG ?? 6);

/** The seeds of every bug's simulations, in this order. */
const SEEDS = coveringSeeds(MAX_SIMULATIONS, STEPS);

/** The maximum duration of one simulation, with setup and shutdown; milliseconds. */
const SIMULATION_MS = 300_000;

/** The unchanged product. */
const CONTROL = 'control';

const REPORT = join(ROOT, '.test-report');
const TABLE = join(REPORT, 'found-bugs.md');
const COLUMNS = ['planted bug', 'database', 'simulations until found', 'seconds', 'the first promise that was broken'];
const MAX_PROMISE = 150;

/** The result of the simulations with one bug. */
interface Row {
  readonly name: string;
  readonly database: Database;
  readonly simulations: number;
  readonly seconds: number;
  /** The first broken promise; empty: none. */
  readonly promise: string;
}

onEachDatabase(
  testsOn,
  (['SQLite', 'MongoDB'] as const).filter((database) => variantsOn(database).length > 0),
);

function testsOn(database: Database, startWorld: StartWorld): void {
  const variants = variantsOn(database);
  test.each(variants.map((name, index) => [name, index + 1] as const))(
    `on ${database}: %s`,
    { timeout: MAX_SIMULATIONS * SIMULATION_MS },
    async (name, place) => {
      const before = rowOf(database, name) ?? { name, database, simulations: 0, seconds: 0, promise: '' };
      // Every bug has the same seeds; earlier runs have used the first ones.
      const seeds = SEEDS.slice(before.simulations);
      const begin = performance.now();
      const report = (line: string) =>
        process.stdout.write(`${place} of ${variants.length} on ${database}: ${name}: ${line}\n`);
      const bug = name === CONTROL ? {} : { PLANTED_BUG: name };
      const { simulations, failure } =
        database === 'SQLite'
          ? await simulateSeeds(seeds, bug, report)
          : await runSimulations(0, seeds, (settings, plan) => startWorld({ ...settings, ...bug }, plan), report);
      if (failure) writeTrace(database, name, failure);
      const seconds = before.seconds + Math.round((performance.now() - begin) / 1000);
      const promise = failure?.violations[0]?.replaceAll(/[\s|]+/g, ' ').slice(0, MAX_PROMISE) ?? '';
      writeRow({ name, database, simulations: before.simulations + simulations, seconds, promise });
      if (name === CONTROL) expect(failure?.violations ?? []).toEqual([]);
      else expect(failure, `is not found in ${MAX_SIMULATIONS} simulations`).toBeDefined();
    },
  );
}

/** Lives the lives of the seeds on simulated machines until a promise is broken. */
async function simulateSeeds(
  seeds: readonly number[],
  bug: Readonly<Record<string, string>>,
  report: (line: string) => void,
): Promise<{
  readonly simulations: number;
  readonly failure: Pick<Failure, 'seed' | 'violations' | 'trace'> | undefined;
}> {
  const env = { ...bug, NODE_OPTIONS: `--import=${new URL('../planted-bugs/plant-in-process.ts', import.meta.url)}` };
  for (const [index, seed] of seeds.entries()) {
    const { violations, story } = await live(seed, simulatedPlanFrom(seed, STEPS), { env });
    report(`seed ${seed}: ${violations[0] ?? 'every promise is kept'}`);
    if (violations.length > 0) return { simulations: index + 1, failure: { seed, violations, trace: story } };
  }
  return { simulations: seeds.length, failure: undefined };
}

/** Returns the bugs to run on a database. */
function variantsOn(database: Database): string[] {
  const bugs = ALL_BUGS.filter((bug) => databaseOf(bug) === database).map(({ name }) => name);
  return [CONTROL, ...bugs]
    .filter((name) => (PATTERN ? PATTERN.test(name) : !(name in UNDETECTABLE_BUGS)))
    .filter((name) => {
      const { simulations = 0, promise = '' } = rowOf(database, name) ?? {};
      return promise === '' && simulations < MAX_SIMULATIONS;
    });
}

function rows(): Row[] {
  if (!existsSync(TABLE)) return [];
  const lines = readFileSync(TABLE, 'utf8').trimEnd().split('\n').slice(2);
  return lines.map((line) => {
    const [, name = '', database, simulations = '', seconds, promise = ''] = line.split('|').map((cell) => cell.trim());
    return {
      name,
      database: database as Database,
      simulations: Number(/\d+/.exec(simulations)),
      seconds: Number(seconds),
      promise,
    };
  });
}

function rowOf(database: Database, name: string): Row | undefined {
  return rows().find((row) => row.database === database && row.name === name);
}

function writeRow(row: Row): void {
  mkdirSync(REPORT, { recursive: true });
  const others = rows().filter(({ database, name }) => database !== row.database || name !== row.name);
  const lines = [...others, row].map(({ name, database, simulations, seconds, promise }) =>
    [name, database, promise === '' ? `not in ${simulations}` : simulations, seconds, promise].join(' | '),
  );
  const table = [COLUMNS.join(' | '), COLUMNS.map(() => '---').join('|'), ...lines];
  writeFileSync(TABLE, table.map((line) => `| ${line} |\n`).join(''));
}

function writeTrace(
  database: Database,
  name: string,
  { seed, violations, trace }: Pick<Failure, 'seed' | 'violations' | 'trace'>,
): void {
  mkdirSync(REPORT, { recursive: true });
  const file = `bug-${database}-${name.replaceAll(/\W+/g, '-').slice(0, 80)}.txt`;
  writeFileSync(join(REPORT, file), `WORLD_SEED=${seed}\n${violations.join('\n')}\n\n${trace}\n`);
}
