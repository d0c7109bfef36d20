import { execFile } from 'node:child_process';
import { createHash, randomInt } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { times } from '../support/builders.ts';
import { ROOT, temporaryFolder } from '../tools/processes.ts';
import { testSize } from '../tools/test-size.ts';
import { DATABASES, type Database, live, plantedBug, simulatedPlanFrom } from './life.ts';
import { type Plan, USUAL } from './plan.ts';
import { plansFrom, REPORTS, simulate } from './simulate.ts';

/** How long random lives run on all databases together; seconds. A third of that is lives of two hours. 0: only the first seeds. */
const SECONDS = testSize('SIMULATION_SECONDS', { usual: 0, soak: 2400 });

/** The first seeds, and the maximum number of steps of their lives. On MongoDB a step takes twice the processor time. */
const [FIRST_SEEDS, FIRST_STEPS] = [[1, 2], 20];
const [SEED_ON_MONGODB, STEPS_ON_MONGODB] = [5, 12];

/** The maximum number of steps of a plan, and of the plan that the command runs twice. */
const STEPS = 80;
const FEWER_STEPS = 5;

/** The first seed of the random lives; the others follow. */
const FIRST_SEED = Number(process.env.SIMULATION_SEED ?? randomInt(2 ** 30));

const visitors = (afterMs: number, callers: number, forMs: number, seed = 1) => ({
  afterMs,
  name: 'visitors',
  choice: { callers, forMs, seed },
});

const refuseInserts = {
  afterMs: 20,
  name: 'refuseCommands',
  choice: { name: 'insert', reply: { ok: 0, code: 2, codeName: 'BadValue', errmsg: 'refused' }, count: 6 },
};

const moveFiles = (isStopped: boolean) => ({ afterMs: 500, name: 'moveFilesAway', choice: { isStopped, forMs: 300 } });

const restoreTwice = (choice: object) => ({
  afterMs: 0,
  name: 'setDatabaseBack',
  choice: { sleeps: false, isServing: true, killedAfterMs: 0, ...choice },
});

const aPlan = (...steps: Plan['steps']): Plan => ({ ...USUAL, steps });

/** Rare lives: what happens, the database and the plan. A restore comes at the end of a life. */
const LIVES: readonly (readonly [what: string, database: Database, plan: Plan])[] = [
  [
    'files are moved away twice, and the database is restored twice',
    'sqlite',
    aPlan(
      visitors(0, 2, 1000),
      moveFiles(true),
      visitors(500, 2, 600),
      moveFiles(false),
      visitors(500, 2, 600),
      restoreTwice({ killedAfterMs: 600 }),
    ),
  ],
  [
    'retention erases leads, and a stopped database is restored',
    'sqlite',
    aPlan({ afterMs: 0, name: 'outliveRetention', choice: {} }, restoreTwice({ sleeps: true, isServing: false }), {
      afterMs: 330_000,
      name: 'setClock',
      choice: { clock: 0, ahead: 0 },
    }),
  ],
  ...(process.env.SOAK ? ['killed', 'suspended'] : ['suspended']).map(
    (how) =>
      [
        `a replica set has a member that stays ${how}`,
        'mongodb',
        aPlan(
          visitors(0, 3, 800),
          { afterMs: 500, name: 'loseMember', choice: { isPrimary: true, how } },
          visitors(500, 3, 800),
          { afterMs: 9000, name: 'stepDown', choice: {} },
          visitors(0, 3, 800),
        ),
      ] as const,
  ),
];

/** The number of seeds tried for a planted bug; any change of the product changes the lives of seeds. */
const SEEDS_FOR_A_BUG = 5;

/** One bug on each database, and more bugs in a soak. `npm run soak:bugs` tries all. */
const BUGS: readonly (readonly [bug: string, database: Database, makePlan: (seed: number) => Plan])[] = [
  ['the contact is checked before the idempotency key', 'sqlite', (seed) => aPlan(visitors(0, 2, 300, seed))],
  [
    'an insert that fails as a whole is reported as created',
    'mongodb',
    (seed) => aPlan(visitors(0, 4, 400, seed), refuseInserts),
  ],
];

const MORE_BUGS: typeof BUGS = [
  [
    'an acknowledgement of an older revision removes a newer one',
    'sqlite',
    (seed) => aPlan(visitors(0, 4, 1500, seed)),
  ],
  [
    'a commit into a file that was removed is acknowledged until the next check',
    'sqlite',
    (seed) => aPlan(visitors(0, 2, 1000, seed), moveFiles(false), visitors(500, 2, 600, seed)),
  ],
  ['after a restore, leads get revisions that a fast clock had given before', 'sqlite', () => aPlan(restoreTwice({}))],
];

// @proves world-1 leads-1 feed-3 feed-1 quota-9
test('two lives of one seed on MongoDB are equal byte by byte, and keep every promise', {
  timeout: 1_800_000,
}, async () => {
  const plan = simulatedPlanFrom(SEED_ON_MONGODB, STEPS_ON_MONGODB, 'mongodb');
  const [one, other] = await Promise.all(times(2, () => live(SEED_ON_MONGODB, plan, { database: 'mongodb' })));
  expect(one?.violations).toEqual([]);
  expect(one?.events).toBeGreaterThan(1000);
  expect(one?.excused).toBeLessThanOrEqual(1 / 3);
  expect([other?.trace, other?.events, other?.story]).toEqual([one?.trace, one?.events, one?.story]);
});

const simulating = (...args: readonly string[]) =>
  promisify(execFile)(process.execPath, [join(import.meta.dirname, 'simulate.ts'), ...args], { cwd: ROOT });

// @proves world-1
test('the command repeats a seed byte by byte, and prints its events', {
  timeout: 1_800_000,
}, async () => {
  const file = join(temporaryFolder(), 'events.txt');
  const life = ['--seed', '2', '--steps', `${FEWER_STEPS}`];
  const [{ stdout }, { stdout: shown }] = await Promise.all([
    simulating(...life),
    simulating(...life, '--trace', file),
  ]);
  const [, events = '', excused, trace] =
    /^seed 2: every promise is kept, .* (\d+) events, (\d+) % of requests are excused, trace ([0-9a-f]{16})\n/.exec(
      stdout,
    ) ?? [];
  expect(stdout).toContain('every promise is kept: lives 1,');
  expect(Number(events)).toBeGreaterThan(1000);
  expect(Number(excused)).toBeLessThanOrEqual(33);
  expect(shown).toMatch(new RegExp(`CRM: puts status of [\\s\\S]*\\n${events} events\\n$`));
  const written = readFileSync(file);
  expect(`${written}`).toMatch(/^[\d.]+ core-1 starts$[\s\S]* \d+<7001 \d+ [0-9a-f]{8}$/m);
  expect(createHash('sha256').update(written).digest('hex').slice(0, 16)).toBe(trace);
});

// @proves world-1 leads-1 feed-3 feed-1 quota-9
test.each(SECONDS > 0 ? DATABASES : (['sqlite'] as const))(
  'every promise is kept in lives on %s',
  { timeout: SECONDS * 1000 + 1_800_000 },
  async (database) => {
    const first = FIRST_SEEDS.map((seed) => ({ seed, plan: simulatedPlanFrom(seed, FIRST_STEPS) }));
    const thirdMs = (SECONDS / DATABASES.length / 3) * 1000;
    const random = [
      { plans: plansFrom(FIRST_SEED, STEPS, database), forMs: 2 * thirdMs, again: '' },
      { plans: plansFrom(FIRST_SEED, STEPS, database, 2), forMs: thirdMs, again: ' --hours 2' },
    ];
    const always = [{ plans: first, forMs: Number.POSITIVE_INFINITY, again: '' }];
    for (const { plans, forMs, again } of SECONDS > 0 ? random : always) {
      const traces: (string | undefined)[] = [];
      const note = (line: string) => traces.push(/trace [0-9a-f]+/.exec(line)?.[0]);
      const { failure, lives, virtualMs } = await simulate(plans, forMs, note, { database, again });
      if (failure) {
        const file = join(REPORTS, `simulation-${database}.txt`);
        writeFileSync(file, failure);
        expect.fail(`${failure.slice(0, 2000)}\nthe whole report is in ${file}`);
      }
      expect(new Set(traces).size).toBe(lives);
      expect(lives).toBeGreaterThanOrEqual(SECONDS > 0 ? 1 : first.length);
      process.stdout.write(
        `Simulation on ${database}: ${lives} lives, ${Math.round(virtualMs / 1000)} simulated seconds\n`,
      );
    }
  },
);

// @proves crashes-48 erasure-10 feed-10 world-1
test.each(LIVES)('every promise is kept while %s', { timeout: 900_000 }, async (_, database, plan) => {
  expect((await live(1, plan, { database })).violations).toEqual([]);
});

test('a planted bug breaks a promise, and the shortened plan is stored and run again', {
  timeout: 900_000,
}, async () => {
  const [file, line] = ['src/usecases/read-leads.ts', "  if (lead === null) throw new Refusal('LEAD_NOT_FOUND');"];
  const at = readFileSync(join(ROOT, file), 'utf8').split('\n').indexOf(line) + 1;
  const changed = line.replace('lead === null', `lead === null || lead.includes('"stage":"new"')`);
  const diff = join(temporaryFolder(), 'bug.diff');
  writeFileSync(
    diff,
    [`--- a/${file}`, `+++ b/${file}`, `@@ -${at} +${at} @@`, `-${line}`, `+${changed}`, ''].join('\n'),
  );
  // One of the two steps of this seed belongs to the scenario, and one of its settings is unusual.
  const life = ['--seed', '62', '--steps', '2', '--scenario', 'readAtOnce', '--bug', diff];
  const { stdout } = await simulating(...life).catch((end) => end);
  expect(stdout).toMatch(/^seed 62: a promise is broken.*\nanswered 201, and then 404 integration_lead_not_found/);
  expect(stdout).toMatch(/\nseed 62 breaks promises at commit [0-9a-f]{40}/);
  expect(stdout).toContain(`--scenario readAtOnce --bug ${diff}`);

  const [, plan = ''] = /--plan (\S+)`/.exec(stdout) ?? [];
  const { commit, ...kept } = JSON.parse(readFileSync(plan, 'utf8'));
  expect(stdout).toContain(commit);
  const steps = [expect.objectContaining({ name: 'readAtOnce' })];
  expect(kept).toEqual({ database: 'sqlite', seed: 62, plan: { ...USUAL, steps } });

  const unheard = { ...kept, plan: { ...kept.plan, logLevel: 'unheard of' } };
  writeFileSync(plan, JSON.stringify({ commit: 'of long ago', ...unheard }));
  const other = await simulating('--plan', plan).catch((end) => end);
  expect(other.stdout).toContain(`this plan broke a promise at commit of long ago; it now runs at ${commit}`);
  expect(other).toMatchObject({ code: 1, stdout: expect.stringMatching(/^the life cannot end: .*LOG_LEVEL/ms) });
  rmSync(plan);
});

test("the README's scenario is one of the scenarios that lives use", () => {
  const example = readFileSync(join(import.meta.dirname, 'scenarios/read-at-once.ts'), 'utf8');
  expect(readFileSync(join(import.meta.dirname, 'README.md'), 'utf8')).toContain(example);
});

test.for(process.env.SOAK ? [...BUGS, ...MORE_BUGS] : BUGS)(
  'a planted bug breaks a promise: %s, on %s',
  { timeout: 1_800_000 },
  async ([bug, database, makePlan]) => {
    const env = plantedBug(bug);
    const violations: string[] = [];
    for (let seed = 1; violations.length === 0 && seed <= SEEDS_FOR_A_BUG; seed += 1)
      violations.push(...(await live(seed, makePlan(seed), { database, env })).violations);
    expect(violations).not.toEqual([]);
  },
);
