import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { ConsumerStart } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { ROOT, temporaryFolder } from '../tools/processes.ts';
import { sizeOf } from '../tools/size-of.ts';
import { DATABASES, type Database, live, plantedBug, simulatedPlanFrom } from './life.ts';
import { type Plan, USUAL } from './plan.ts';
import { plansFrom, REPORTS, simulate } from './simulate.ts';

/** The duration of lives at random, on all databases together, a third of it of lives of two hours; seconds. Without them, the lives are those of the first seeds: always the same. */
const SECONDS = sizeOf('SIMULATION_SECONDS', { usual: 0, soak: 3600 });
const FIRST_SEEDS = { sqlite: [1, 2, 3], mongodb: [5] } as const;

/** The maximum number of steps of those lives: on MongoDB a step takes twice the processor. */
const FIRST_STEPS = { sqlite: 40, mongodb: 20 } as const;

/** The maximum number of steps of a plan, and of one that is lived several times. */
const STEPS = 80;
const FEWER_STEPS = 5;

/** The first seed of the random lives; the others follow. */
const FIRST_SEED = Number(process.env.SIMULATION_SEED ?? randomInt(2 ** 30));

/** The number of seeds that are tried for a planted bug. */
const SEEDS_FOR_A_BUG = 5;

const visitors = (afterMs: number, callers: number, forMs: number, seed = 1) => ({
  afterMs,
  name: 'visitors',
  choice: { callers, forMs, seed },
});

const refuseInserts = {
  afterMs: 100,
  name: 'refuseCommands',
  choice: { name: 'insert', reply: { ok: 0, code: 2, codeName: 'BadValue', errmsg: 'refused' }, count: 2 },
};

/**
 * Planted bugs, a database, and the steps of a seed. The life of the first seed or of one of the next finds the bug.
 * `npm run soak:bugs` tries the others.
 */
const BUGS: readonly (readonly [bug: string, database: Database, stepsOf: (seed: number) => Plan['steps']])[] = [
  ['the contact is checked before the idempotency key', 'sqlite', (seed) => [visitors(0, 2, 300, seed)]],
  ['an acknowledgement of an older revision removes a newer one', 'sqlite', (seed) => [visitors(0, 4, 1500, seed)]],
  [
    'an insert that fails as a whole is reported as created',
    'mongodb',
    (seed) => [visitors(0, 4, 600, seed), refuseInserts],
  ],
];

// @proves world-1
test('two lives of one seed are the same, byte by byte, and others are not', { timeout: 1_800_000 }, async () => {
  const twice = DATABASES.map(async (database) => {
    const plan = simulatedPlanFrom(2, FEWER_STEPS, database);
    const [one, other] = await Promise.all([live(2, plan, { database }), live(2, plan, { database })]);
    expect(one.violations).toEqual([]);
    expect(one.events).toBeGreaterThan(1000);
    expect(one.excused).toBeLessThanOrEqual(1 / 3);
    expect([other.trace, other.events, other.story]).toEqual([one.trace, one.events, one.story]);
    return one.trace;
  });
  expect(new Set(await Promise.all(twice)).size).toBe(DATABASES.length);
});

// @proves world-1 leads-10 leads-12 feed-3 quota-9 quota-11 quota-12
test.each(DATABASES)(
  'every promise is kept in lives on %s',
  { timeout: SECONDS * 1000 + 1_800_000 },
  async (database) => {
    const first = FIRST_SEEDS[database].map((seed) => ({
      seed,
      plan: simulatedPlanFrom(seed, FIRST_STEPS[database], database),
    }));
    const thirdMs = (SECONDS / DATABASES.length / 3) * 1000;
    const random = [
      { plans: plansFrom(FIRST_SEED, STEPS, database), forMs: 2 * thirdMs, again: '' },
      { plans: plansFrom(FIRST_SEED, STEPS, database, 2), forMs: thirdMs, again: ' --hours 2' },
    ];
    const always = [{ plans: first, forMs: Number.POSITIVE_INFINITY, again: '' }];
    for (const { plans, forMs, again } of SECONDS > 0 ? random : always) {
      const { failure, lives, virtualMs } = await simulate(plans, forMs, () => {}, { database, again });
      if (failure) {
        const file = join(REPORTS, `simulation-${database}.txt`);
        writeFileSync(file, failure);
        expect.fail(`${failure.slice(0, 2000)}\nthe whole story is in ${file}`);
      }
      expect(lives).toBeGreaterThanOrEqual(SECONDS > 0 ? 1 : first.length);
      process.stdout.write(
        `Simulation on ${database}: ${lives} lives, ${Math.round(virtualMs / 1000)} simulated seconds\n`,
      );
    }
  },
);

// @proves erasure-10
test('in a life of some minutes a core erases what a studio no longer keeps', { timeout: 900_000 }, async () => {
  const steps = [
    { afterMs: 0, name: 'outliveRetention', choice: {} },
    { afterMs: 330_000, name: 'setClock', choice: { clock: 0, ahead: 0 } },
  ];
  expect((await live(1, { ...USUAL, steps })).violations).toEqual([]);
});

const moveFiles = (isStopped: boolean) => {
  const move = { afterMs: 500, name: 'moveFilesAway', choice: { isStopped, forMs: 300 } };
  return { ...USUAL, steps: [visitors(0, 2, 1000), move, visitors(500, 2, 600)] };
};

// @proves crashes-48
test.each([true, false])(
  'nothing is lost that a core acknowledges once its files were moved away (stopped in order: %s)',
  { timeout: 900_000 },
  async (isStopped) => {
    expect((await live(1, moveFiles(isStopped))).violations).toEqual([]);
  },
);

// @proves world-1
test.each(['killed', 'suspended'])(
  'a replica set serves without a member that is %s',
  { timeout: 900_000 },
  async (how) => {
    const steps = [
      visitors(0, 3, 1500),
      { afterMs: 1000, name: 'loseMember', choice: { isPrimary: true, how } },
      visitors(500, 3, 1500),
      { afterMs: 9000, name: 'stepDown', choice: {} },
      visitors(0, 3, 1500),
    ];
    expect((await live(1, { ...USUAL, steps }, { database: 'mongodb' })).violations).toEqual([]);
  },
);

const setBack = (choice: object) => ({
  ...USUAL,
  steps: [
    { afterMs: 0, name: 'setDatabaseBack', choice: { sleeps: false, isServing: true, killedAfterMs: 0, ...choice } },
  ],
});

// @proves feed-10
test.each([
  ['while it follows', { killedAfterMs: 600 }],
  ['while it sleeps, before the core starts', { sleeps: true, isServing: false }],
])('a copy becomes what a database is that is set back twice, %s', { timeout: 900_000 }, async (_, choice) => {
  expect((await live(1, setBack(choice))).violations).toEqual([]);
});

const simulating = (...args: readonly string[]) =>
  promisify(execFile)('npm', ['run', '-s', 'simulate', '--', '--seed', '2', '--steps', '5', ...args], { cwd: ROOT });

test('npm run simulate lives the life of a seed, and writes its events', { timeout: 900_000 }, async () => {
  const { stdout } = await simulating();
  const [, events = ''] =
    /^seed 2: every promise is kept, .* (\d+) events, \d+ % of requests are excused, trace [0-9a-f]{16}\n/.exec(
      stdout,
    ) ?? [];
  expect(stdout).toContain('every promise is kept: lives 1,');
  const file = join(temporaryFolder(), 'events.txt');
  const { stdout: shown } = await simulating('--trace', file);
  expect(shown).toMatch(new RegExp(`CRM: puts status of [\\s\\S]*\\n${events} events\\n$`));
  expect(readFileSync(file, 'utf8')).toMatch(/^[\d.]+ core-1 starts$[\s\S]* \d+<7001 \d+ [0-9a-f]{8}$/m);
});

test('lives of one scenario, on what a diff makes of the sources, say first what a caller would', {
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
  // The one step of this seed is of the scenario.
  const life = ['--seed', '5', '--steps', '1', '--scenario', 'readAtOnce', '--bug', diff];
  const { stdout } = await simulating(...life).catch((end) => end);
  expect(stdout).toMatch(/^seed 5: a promise is broken.*\nanswered 201, and then 404 integration_lead_not_found/);
  expect(stdout).toContain(`--scenario readAtOnce --bug ${diff}`);
});

test("the README's scenario is one of those that are lived", () => {
  const example = readFileSync(join(import.meta.dirname, 'scenarios/read-at-once.ts'), 'utf8');
  expect(readFileSync(join(import.meta.dirname, 'README.md'), 'utf8')).toContain(example);
});

test('a plan that breaks a promise is kept with its commit, and lived again', { timeout: 900_000 }, async () => {
  const logLevel = 'unheard of';
  const plan = { ...USUAL, logLevel, steps: [visitors(0, 1, 1), visitors(0, 1, 2)] };
  const { failure = '' } = await simulate([{ seed: 2, plan }], Number.POSITIVE_INFINITY);
  expect(failure).toMatch(/^the life cannot end: .*\n(?:.*\n)*?\nseed 2 breaks promises at commit [0-9a-f]{40}/);
  const [, file = ''] = /--plan (\S+)`/.exec(failure) ?? [];
  const { commit, ...kept } = JSON.parse(readFileSync(file, 'utf8'));
  expect(failure).toContain(commit);
  expect(kept).toEqual({ database: 'sqlite', seed: 2, plan: { ...USUAL, logLevel, steps: [expect.anything()] } });
  const again = () =>
    promisify(execFile)('npm', ['run', '-s', 'simulate', '--', '--plan', file], { cwd: ROOT }).catch((end) => end);
  expect(await again()).toMatchObject({ code: 1, stdout: expect.stringMatching(/^the life cannot end: .*LOG_LEVEL/s) });
  writeFileSync(file, JSON.stringify({ commit: 'of long ago', ...kept }));
  expect((await again()).stdout).toContain(`it broke a promise at commit of long ago, and is lived at ${commit}`);
  rmSync(file);
});

test('npm run simulate -- --from stops a debugger before an event', { timeout: 900_000 }, async () => {
  const { child } = promisify(execFile)('npm', 'run -s simulate -- --seed 2 --steps 5 --from 50'.split(' '), {
    cwd: ROOT,
  });
  let told = '';
  child.stderr?.on('data', (chunk) => {
    told += chunk;
  });
  const address = await vi.waitFor(() => /ws:\S+/.exec(told)?.[0] ?? expect.fail(`no address yet: ${told}`), 60_000);
  const inspector = new WebSocket(address);
  await once(inspector, 'open');
  const paused = new Promise<object>((resolve) => {
    inspector.addEventListener('message', ({ data }) => {
      const { method, params } = JSON.parse(data);
      if (method === 'Debugger.paused') resolve(params.callFrames[0]);
    });
  });
  for (const [id, method] of ['Debugger.enable', 'Runtime.runIfWaitingForDebugger'].entries()) {
    inspector.send(JSON.stringify({ id: id + 1, method }));
  }
  expect(await paused).toMatchObject({ functionName: 'runUntil' });
  const ended = once(child, 'close');
  inspector.close();
  expect(await ended).toEqual([0, null]);
});

describe.concurrent('a planted bug breaks a promise', () => {
  test.for(BUGS)('%s, on %s', { timeout: 1_800_000 }, async ([bug, database, stepsOf]) => {
    const env = plantedBug(bug);
    const violations: string[] = [];
    // Any change of the product changes what happens in the life of a seed.
    for (let seed = 1; violations.length === 0 && seed <= SEEDS_FOR_A_BUG; seed += 1)
      violations.push(...(await live(seed, { ...USUAL, steps: stepsOf(seed) }, { database, env })).violations);
    expect(violations).not.toEqual([]);
  });

  test('when the files of a database are moved away', { timeout: 600_000 }, async () => {
    const env = plantedBug('a commit into a file that was removed is acknowledged until the next check');
    expect((await live(1, moveFiles(false), { env })).violations).not.toEqual([]);
  });

  test('when consumers of a busy core on MongoDB follow what visitors do', { timeout: 600_000 }, async () => {
    const env = plantedBug('on MongoDB, a lead is told with the kinds of an older state');
    const kept = { start: ConsumerStart.NOW, name: 'own', studios: [], end: 'kept', forMs: 3000 };
    const consumer = { ...kept, isAsleep: false, isResent: false, setsAside: false, watches: false, core: 0 };
    const steps = [{ afterMs: 0, name: 'comeAndGoAsConsumer', choice: consumer }, visitors(500, 6, 2000, 2)];
    const plan = { ...USUAL, busyShare: 0.005, steps };
    expect((await live(2, plan, { database: 'mongodb', env })).violations.join()).toContain('but not');
  });

  test('when a database is set back', { timeout: 600_000 }, async () => {
    const env = plantedBug('leads of a restored database come at revisions that clocks ahead had given before');
    expect((await live(1, setBack({}), { env })).violations).not.toEqual([]);
  });
});
