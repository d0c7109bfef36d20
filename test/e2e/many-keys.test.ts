import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { newId } from '../../src/domain/new-id.ts';
import { times } from '../support/builders.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { CORE_TOKEN } from '../support/service.ts';
import { readAddress, run, temporaryFolder } from '../tools/processes.ts';

const REVOKED = 2300;

/** Starts a core whose studio has one live key and thousands of newer revoked ones. */
async function aCoreWithManyKeys() {
  const path = join(temporaryFolder(), 'leads.db');
  const DATABASE_URL = `sqlite:${path}`;
  const core = run('src/main.ts', { env: { DATABASE_URL, CORE_TOKEN } });
  const clients = connectToCore(await readAddress(core), CORE_TOKEN);
  onTestFinished(() => clients.close());
  const { studioId, memberId, apiKeyId: live } = await arrangeStudio(clients);
  const revoked = times(REVOKED, () => newId());
  const database = new DatabaseSync(path, { timeout: 100_000 });
  database.exec('BEGIN IMMEDIATE');
  const insert = database.prepare(`
    INSERT INTO api_keys (
      studio_id, id, member_id, name, scopes, created_at, expires_at, revoked_at, secret_sha256, secret_hint, slot
    ) VALUES (?, ?, ?, 'Revoked', 'leads.read', 1, 2, 1, randomblob(32), 'abcd', ?)`);
  for (const id of revoked) insert.run(studioId, id, memberId, id);
  database.exec('COMMIT');
  database.close();
  return { DATABASE_URL, apiKeys: clients.apiKeys, studio: { studioId, memberId }, live, newest: revoked.toReversed() };
}

// @proves hostile-2 bounds-57
test('a studio with thousands of revoked keys lists its live keys first, then all page by page', async () => {
  const { apiKeys, studio, live, newest } = await aCoreWithManyKeys();
  /** Returns all pages. A size of 0 asks for the default, as clients without paging do. */
  const readPages = async (pageSize: number) => {
    const pages: string[][] = [];
    let pageToken = '';
    do {
      const page = await apiKeys.listApiKeys({ ...studio, pageSize, pageToken });
      pages.push(page.apiKeys.map(({ id }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    return pages;
  };

  for (const [pageSize, size] of [
    [0, 1000],
    [150, 150],
    [1, 100],
    [5000, 1000],
  ] as const) {
    const [first = [], ...others] = await readPages(pageSize);
    expect(first).toEqual([...newest.slice(0, size - 1), live]);
    expect(others.flat()).toEqual(newest.slice(size - 1));
    expect(Math.max(...others.map(({ length }) => length))).toBe(size);
  }
  for (const page of [{ pageSize: -1 }, { pageToken: 'x' }])
    await expect(apiKeys.listApiKeys({ ...studio, ...page })).rejects.toThrow(/not valid/);
});
