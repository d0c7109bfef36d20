/**
 * Measures whether random lives find faults: runs lives with each planted bug until a promise is broken. The control has no
 * bug, and must break no promise.
 *
 * `npm run soak:bites` runs it. WORLD_BITES: a pattern for the bugs' names; by default all bugs that a life can find.
 * WORLD_BITE_LIVES: the maximum number of lives per bug. Each result is written to `.test-report/bites.md` immediately: a
 * later run skips the bugs that were found, and runs only the missing lives of the others.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ALL_BUGS, CONTROL, databaseOf } from '../planted-bugs/planted-bugs.ts';
import { VERSION_ONE_FAULTS } from '../planted-bugs/version-one-bugs.ts';
import { ROOT } from '../support/processes.ts';
import { coveringSeeds } from './covering-seeds.ts';
import type { StartWorld } from './live.ts';
import { type Failure, liveFor, STEPS } from './lives.ts';
import { NOT_LIVED } from './not-lived.ts';
import { type Database, onEachDatabase } from './on-each-database.ts';

const PATTERN = process.env.WORLD_BITES ? new RegExp(process.env.WORLD_BITES) : undefined;
const LIVES = Number(process.env.WORLD_BITE_LIVES ?? 6);

/** The seeds of every bug's lives, in this order. */
const SEEDS = coveringSeeds(LIVES, STEPS);

/** The maximum duration of one life, with setup and shutdown; milliseconds. */
const LIFE_MS = 300_000;

const REPORT = join(ROOT, '.test-report');
const TABLE = join(REPORT, 'bites.md');
const COLUMNS = ['planted bug', 'database', 'lives until found', 'seconds', 'the first promise that was broken'];
const MAX_PROMISE = 150;

/** The result of the lives with one bug. */
interface Row {
  readonly name: string;
  readonly database: Database;
  readonly lives: number;
  readonly seconds: number;
  /** The first broken promise; empty: none. */
  readonly promise: string;
}

onEachDatabase(
  bitesOn,
  (['SQLite', 'MongoDB'] as const).filter((database) => variantsOn(database).length > 0),
);

function bitesOn(database: Database, startWorld: StartWorld): void {
  const variants = variantsOn(database);
  test.each(variants.map((name, index) => [name, index + 1] as const))(
    `on ${database}: %s`,
    { timeout: LIVES * LIFE_MS },
    async (name, place) => {
      const before = rowOf(database, name) ?? { name, database, lives: 0, seconds: 0, promise: '' };
      // Every bug has the same seeds; earlier runs have used the first ones.
      const seeds = SEEDS.slice(before.lives);
      const begin = performance.now();
      const { lives, failure } = await liveFor(
        0,
        seeds,
        (settings, plan) => startWorld(name === CONTROL ? settings : { ...settings, PLANTED_BUG: name }, plan),
        (line) => process.stdout.write(`${place} of ${variants.length} on ${database}: ${name}: ${line}\n`),
      );
      if (failure) writeStory(database, name, failure);
      const seconds = before.seconds + Math.round((performance.now() - begin) / 1000);
      const promise = failure?.broken[0]?.replaceAll(/[\s|]+/g, ' ').slice(0, MAX_PROMISE) ?? '';
      writeRow({ name, database, lives: before.lives + lives, seconds, promise });
      if (name === CONTROL) expect(failure?.broken ?? []).toEqual([]);
      else expect(failure, `is not found in ${LIVES} lives`).toBeDefined();
    },
  );
}

/** Returns the bugs to run on a database; faults of the first version come first. */
function variantsOn(database: Database): string[] {
  const first = [CONTROL, ...Object.values(VERSION_ONE_FAULTS).flat()];
  const rankOf = (name: string) => (first.includes(name) ? first.indexOf(name) : first.length);
  const bugs = ALL_BUGS.filter((bug) => databaseOf(bug) === database).map(({ name }) => name);
  return [CONTROL, ...bugs]
    .filter((name) => (PATTERN ? PATTERN.test(name) : !(name in NOT_LIVED)))
    .filter((name) => {
      const { lives = 0, promise = '' } = rowOf(database, name) ?? {};
      return promise === '' && lives < LIVES;
    })
    .toSorted((a, b) => rankOf(a) - rankOf(b));
}

function rows(): Row[] {
  if (!existsSync(TABLE)) return [];
  const lines = readFileSync(TABLE, 'utf8').trimEnd().split('\n').slice(2);
  return lines.map((line) => {
    const [, name = '', database, lives = '', seconds, promise = ''] = line.split('|').map((cell) => cell.trim());
    return {
      name,
      database: database as Database,
      lives: Number(/\d+/.exec(lives)),
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
  const lines = [...others, row].map(({ name, database, lives, seconds, promise }) =>
    [name, database, promise === '' ? `not in ${lives}` : lives, seconds, promise].join(' | '),
  );
  const table = [COLUMNS.join(' | '), COLUMNS.map(() => '---').join('|'), ...lines];
  writeFileSync(TABLE, table.map((line) => `| ${line} |\n`).join(''));
}

function writeStory(database: Database, name: string, { seed, broken, story }: Failure): void {
  mkdirSync(REPORT, { recursive: true });
  const file = `bite-${database}-${name.replaceAll(/\W+/g, '-').slice(0, 80)}.txt`;
  writeFileSync(join(REPORT, file), `WORLD_SEED=${seed}\n${broken.join('\n')}\n\n${story}\n`);
}
