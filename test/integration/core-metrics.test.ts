import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { type CoreMetrics, createCoreMetrics } from '../../src/rpc/observation.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { temporaryFolder } from '../support/processes.ts';

test('after a failed count, lead changes are counted again with the next collection', async () => {
  const path = join(temporaryFolder(), 'leads.db');
  const store = openSqliteStore(path);
  onTestFinished(() => store.close());
  const { registry, watchLeadChanges } = createCoreMetrics();
  watchLeadChanges(store);
  const database = new DatabaseSync(path, { timeout: 100_000 });
  onTestFinished(() => database.close());

  database.exec('ALTER TABLE leads RENAME TO moved_leads');
  expect(await countIn(registry)).toBe('Nan');
  database.exec('ALTER TABLE moved_leads RENAME TO leads');

  expect(await countIn(registry)).toBe('0');
});

async function countIn(registry: CoreMetrics['registry']): Promise<string | undefined> {
  return /^lead_intake_core_changes_waiting (\S+)$/m.exec(await registry.metrics())?.[1];
}
