import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe } from 'vitest';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { randomRuns } from './random-runs.ts';

describe('leads in SQLite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  randomRuns(1000, async () => openSqliteStore(join(folder, 'leads.db')));
});
