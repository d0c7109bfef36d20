import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../support/processes.ts';
import { sizeOf } from '../support/size-of.ts';
import type { StartWorld } from './live.ts';
import { liveFor } from './lives.ts';
import { type Database, onEachDatabase } from './on-each-database.ts';

/** The duration of the run on each database; seconds. */
const SECONDS = sizeOf('WORLD_SECONDS', { usual: 30, soak: 600 });

/** WORLD_SEED repeats one life. By default the first seed is fixed, and the others are random. */
const SEEDS = process.env.WORLD_SEED ? [Number(process.env.WORLD_SEED)] : [11];
const seconds = process.env.WORLD_SEED ? 0 : SECONDS;

/** The additional time for the last life and for shrinking its plan; milliseconds. */
const LAST_MS = 600_000;

// Concurrent, because each world is idle most of the time.
describe.concurrent('whatever happens', () => {
  onEachDatabase((database, startWorld) => {
    test(`every promise is kept, on ${database}`, { timeout: seconds * 1000 + LAST_MS }, () =>
      expectKept(database, startWorld),
    );
  });
});

/** The maximum number of broken promises in a failure message; the file has all of them. */
const MAX_REPORTED = 10;

async function expectKept(database: Database, startWorld: StartWorld): Promise<void> {
  const { failure } = await liveFor(seconds, SEEDS, startWorld, (line) =>
    process.stdout.write(`World on ${database}: ${line}\n`),
  );
  if (!failure) return;
  const { seed, life, plan, broken, story } = failure;
  const folder = join(ROOT, '.test-report');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `world-${database}-${seed}.txt`);
  const { steps, ...settings } = plan;
  const told = [...broken, '', JSON.stringify(settings), ...steps.map((step) => JSON.stringify(step)), '', story];
  writeFileSync(file, `${told.join('\n')}\n`);
  expect.fail(
    `life ${life} (WORLD_SEED=${seed}) broke promises; its story is in ${file}\n${broken.slice(0, MAX_REPORTED).join('\n')}`,
  );
}
