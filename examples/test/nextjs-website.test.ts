import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ROOT, temporaryFolder } from '../../test/tools/processes.ts';

vi.mock('lead-intake-sdk/outbox', () => import('../../sdk/outbox/index.ts'));

test('the Next.js website retries to open its database, and closes it after a failure', async () => {
  const folder = join(temporaryFolder(), 'not-yet');
  const file = join(folder, 'website.db');
  vi.stubEnv('WEBSITE_DATABASE', file);
  const closed = vi.spyOn(DatabaseSync.prototype, 'close');
  onTestFinished(() => {
    vi.unstubAllEnvs();
    closed.mockRestore();
  });
  const { openWebsite } = await import(join(ROOT, 'examples/recipes/nextjs/lib/website.mjs'));
  await expect(openWebsite()).rejects.toThrow('unable to open');
  mkdirSync(folder);
  writeFileSync(file, 'this is no database, '.repeat(1000));
  await expect(openWebsite()).rejects.toThrow('not a database');
  expect(closed).toHaveBeenCalledOnce();
  writeFileSync(file, '');
  const database = await openWebsite();
  onTestFinished(() => database.close());
  expect(database.prepare('SELECT count(*) AS count FROM example_com_leads').get()).toEqual({ count: 0 });
  expect(await openWebsite()).toBe(database);
});
