import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe } from 'vitest';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { sizeOf } from '../support/size-of.ts';
import { randomRuns } from './random-runs.ts';

/** The number of runs. One takes about 20 ms. */
const RUNS = sizeOf('SOAK_RUNS', { usual: 300, soak: 50_000 });

describe('leads in SQLite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  // @proves leads-12
  randomRuns(RUNS, async () => openSqliteStore(join(folder, 'leads.db')));
});
