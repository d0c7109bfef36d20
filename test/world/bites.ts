/**
 * Whether lives at random find faults: each planted bug is planted in the processes of one life after the other until a
 * promise is broken. The control has no bug, and is to break none.
 *
 * `npm run soak:bites` runs it. WORLD_BITES: a pattern of the bugs' names; unless given, all that a life may find.
 * WORLD_BITE_LIVES: how many lives are lived with each at most. What came of each is written to `.test-report/bites.md` at
 * once: what was found is not lived again, and with what was not only the lives are that it did not have yet.
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

/** Of every bug's lives, in this order. */
const SEEDS = coveringSeeds(LIVES, STEPS);

/** As long as one life may take, with what comes before and after it. */
const LIFE_MS = 300_000;

const REPORT = join(ROOT, '.test-report');
const TABLE = join(REPORT, 'bites.md');
const COLUMNS = ['planted bug', 'database', 'lives until found', 'seconds', 'the first promise that was broken'];
const MAX_PROMISE = 150;

/** What came of the lives with one bug. */
interface Row {
  readonly name: string;
  readonly database: Database;
  readonly lives: number;
  readonly seconds: number;
  /** The first that was broken; empty: none was. */
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
      // Each bug has the same lives.
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

/** Those whose faults the first version had come first. */
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
