import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../support/processes.ts';
import { sizeOf } from '../support/size-of.ts';
import { type Database, onEachDatabase } from './on-each-database.ts';
import type { StartWorld } from './run-plan.ts';
import { runSimulations } from './run-simulations.ts';

/** The duration of the run on each database; seconds. On SQLite, test/simulation has more in less time. */
const SECONDS = {
  SQLite: sizeOf('WORLD_SECONDS', { usual: 0, soak: 600 }),
  MongoDB: sizeOf('WORLD_SECONDS', { usual: 30, soak: 600 }),
};

/** WORLD_SEED repeats one simulation. By default the first seed is fixed, and the others are random. */
const SEEDS = process.env.WORLD_SEED ? [Number(process.env.WORLD_SEED)] : [11];
const secondsOn = (database: Database) => (process.env.WORLD_SEED ? 0 : SECONDS[database]);

/** The additional time for the last simulation and for shrinking its plan; milliseconds. */
const LAST_MS = 600_000;

// Concurrent, because each world is idle most of the time.
describe.concurrent('random simulations', () => {
  onEachDatabase((database, startWorld) => {
    // @proves world-1 leads-12 feed-3
    test(`keep every promise, on ${database}`, { timeout: secondsOn(database) * 1000 + LAST_MS }, () =>
      expectKept(database, startWorld),
    );
  });
});

/** The maximum number of broken promises in a failure message; the file has all of them. */
const MAX_REPORTED = 10;

async function expectKept(database: Database, startWorld: StartWorld): Promise<void> {
  const { failure } = await runSimulations(secondsOn(database), SEEDS, startWorld, (line) =>
    process.stdout.write(`World on ${database}: ${line}\n`),
  );
  if (!failure) return;
  const { seed, number, plan, violations, trace } = failure;
  const folder = join(ROOT, '.test-report');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `world-${database}-${seed}.txt`);
  const { steps, ...settings } = plan;
  const lines = [...violations, '', JSON.stringify(settings), ...steps.map((step) => JSON.stringify(step)), '', trace];
  writeFileSync(file, `${lines.join('\n')}\n`);
  expect.fail(
    `simulation ${number} (WORLD_SEED=${seed}) broke promises; its plan and trace are in ${file}\n${violations.slice(0, MAX_REPORTED).join('\n')}`,
  );
}
