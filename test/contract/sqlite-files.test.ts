import { spawnSync } from 'node:child_process';
import { copyFileSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { errorSummary } from '../../common/error-summary.ts';
import { createCheckpoints } from '../../src/store/sqlite/checkpoints.ts';
import { vacuumFile } from '../../src/store/sqlite/database-file.ts';
import { openedFiles } from '../../src/store/sqlite/opened-files.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../src/store/store.ts';
import { backUp } from '../support/backups.ts';
import { aLead, keysFor, STUDIO_ID } from '../support/builders.ts';
import { ID_BYTES } from '../support/raw-sqlite.ts';
import { SMALL_DISKS } from '../support/small-disk.ts';
import { temporaryFolder } from '../tools/processes.ts';
import { describeIf } from '../tools/servers.ts';
import { arrange, createAnother, lead, READS, WRITES } from './every-call.ts';

const REMOVED =
  /replaced or removed while the database was open, .*: put the right database file in its place, and restart/;

/** Opens a store on a file in its own folder. */
async function opened() {
  const path = join(temporaryFolder(), 'data', 'leads.db');
  const store = openSqliteStore(path);
  onTestFinished(() => store.close());
  await arrange(store);
  return { path, store };
}

const findFault = (call: Promise<unknown>): Promise<string> => call.then(() => 'none', errorSummary);

/** Replaces a file by a copy of its contents. */
function replace(path: string): void {
  copyFileSync(path, `${path}.copy`);
  renameSync(`${path}.copy`, path);
}

const FILE_CHANGES: readonly (readonly [string, (path: string) => void])[] = [
  ['the file is replaced', replace],
  ['the file is removed', (path) => rmSync(path)],
  ['the file is moved', (path) => renameSync(path, `${path}.moved`)],
  ['the log is replaced', (path) => replace(`${path}-wal`)],
  ['the log is removed', (path) => rmSync(`${path}-wal`)],
  ['the index of the log is replaced', (path) => replace(`${path}-shm`)],
  ['the index of the log is removed', (path) => rmSync(`${path}-shm`)],
  ['the folder is removed', (path) => rmSync(dirname(path), { recursive: true })],
  ['the folder is moved', (path) => renameSync(dirname(path), `${dirname(path)}.moved`)],
];

// @proves crashes-48
test.each(WRITES)('$name is not acknowledged as the first write after its files are gone', async ({ name, call }) => {
  const { path, store } = await opened();
  const index = WRITES.findIndex((write) => write.name === name);
  const [, change] = FILE_CHANGES[index % FILE_CHANGES.length] ?? [];
  change?.(path);
  expect(await findFault(call(store))).toMatch(REMOVED);
});

// @proves crashes-48
test.each(FILE_CHANGES)('once %s, the check and every call fail, even after the files are back', async (_, change) => {
  const { path, store } = await opened();
  const folder = dirname(path);
  renameSync(folder, `${folder}.kept`);
  mkdirSync(folder);
  for (const end of ['', '-wal', '-shm']) linkSync(`${folder}.kept/leads.db${end}`, path + end);
  expect(await findFault(store.check())).toBe('none');
  change(path);
  expect(await findFault(store.check())).toMatch(REMOVED);
  rmSync(folder, { recursive: true, force: true });
  renameSync(`${folder}.kept`, folder);
  for (const { name, call } of [...READS, ...WRITES]) expect(await findFault(call(store)), name).toMatch(REMOVED);
  await store.close();
});

// @proves crashes-48
describe('a store goes on writing', () => {
  test('a store keeps writing while others link, open, read, copy and compact its file', async () => {
    const { path, store } = await opened();
    linkSync(path, `${path}.link`);
    expect(await findFault(createAnother(store))).toBe('none');
    new DatabaseSync(path).close();
    expect(await findFault(createAnother(store))).toBe('none');
    expect(await backUp(`sqlite:${path}`, `${path}.backup`)).toEqual([0, expect.anything()]);
    expect(await findFault(createAnother(store))).toBe('none');
    vacuumFile(path);
    expect(await findFault(createAnother(store))).toBe('none');
    rmSync(`${path}.link`);
    expect(await findFault(createAnother(store))).toBe('none');
    expect(await findFault(store.check())).toBe('none');
  });

  test('a store keeps writing to a file behind a symbolic link', async () => {
    const folder = temporaryFolder();
    const link = join(folder, 'leads.db');
    symlinkSync(join(folder, 'other.db'), link);
    const store = openSqliteStore(link);
    onTestFinished(() => store.close());
    await arrange(store);
    expect(await findFault(store.check())).toBe('none');
    rmSync(join(folder, 'other.db-wal'));
    expect(await findFault(createAnother(store))).toMatch(REMOVED);
  });
});

describeIf(SMALL_DISKS.areAvailable, 'a file that is mounted by itself', SMALL_DISKS.remedy, () => {
  test('a file mounted by itself is reported as removed once it loses its last name', () => {
    const script = `
      touch "$1/real.db" "$1/leads.db" && mount --bind "$1/real.db" "$1/leads.db" &&
      exec "$2" --input-type=module -e "
        const { rmSync } = await import('node:fs');
        const { openSqliteStore } = await import('./src/store/sqlite/sqlite-store.ts');
        const store = openSqliteStore(process.argv[1] + '/leads.db');
        await store.check();
        rmSync(process.argv[1] + '/real.db');
        console.log(await store.check().then(() => 'no fault', String));
      " "$1"`;
    const args = ['--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', temporaryFolder(), process.execPath];
    const { stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8' });
    expect(stdout, stderr).toMatch(REMOVED);
  });
});

// @proves crashes-48
test('a file that replaces an open one is not written to and gets no log', async () => {
  const { path, store } = await opened();
  const backup = join(temporaryFolder(), 'backup.db');
  expect(await backUp(`sqlite:${path}`, backup)).toEqual([0, expect.anything()]);
  const later = aLead();
  await store.createLead(later, keysFor(later));
  const bytes = readFileSync(backup);

  linkSync(path, `${path}.same`);
  renameSync(backup, path);
  expect(
    await findFault(store.eraseLead({ studioId: STUDIO_ID, leadId: lead.id, memberId: null, now: new Date() })),
  ).toMatch(REMOVED);
  await store.close();

  expect(readFileSync(path).equals(bytes)).toBe(true);
  expect(statSync(`${path}-wal`).size).toBe(0);
  // The file that was replaced has all acknowledged writes.
  const found = openSqliteStore(`${path}.same`);
  onTestFinished(() => found.close());
  expect(await found.findLead(STUDIO_ID, later.id)).toEqual(later);
});

// @proves crashes-48
test('the checkpoint worker leaves a file alone that replaced its own', async () => {
  const { path, store } = await opened();
  const { identities } = openedFiles(path);
  const other = join(temporaryFolder(), 'other.db');
  await openSqliteStore(other).close();
  const bytes = readFileSync(other);
  renameSync(other, path);
  const checkpoints = createCheckpoints(path, identities);
  checkpoints.erased();
  await checkpoints.close();
  expect(readFileSync(path).equals(bytes)).toBe(true);
  await store.close();
});

/** Creates a database; returns a direct connection to it and a store on it. */
function aDatabase() {
  const path = join(temporaryFolder(), 'leads.db');
  const store = openSqliteStore(path);
  onTestFinished(() => store.close());
  const direct = new DatabaseSync(path, { timeout: 100_000 });
  onTestFinished(() => direct.close());
  return { store, direct };
}

const create = (store: Store, lead = aLead()) => store.createLead(lead, keysFor(lead));

// @proves crashes-29
test('every unique index in SQLite is a table constraint, which nothing can drop', () => {
  const { direct } = aDatabase();
  const unique = direct
    .prepare(`
      SELECT tables.name || ': ' || indexes.name AS name FROM sqlite_schema AS tables, pragma_index_list(tables.name) AS indexes
      WHERE tables.type = 'table' AND "unique" = 1 AND origin = 'c'`)
    .all();
  expect(unique).toEqual([]);
});

test.each([
  ['closed', `UPDATE leads SET stage = 'lost' WHERE id = ${ID_BYTES}`],
  ['deleted', `DELETE FROM leads WHERE id = ${ID_BYTES}`],
])('a lead %s directly in the database does not block its contact', async (_, sql) => {
  const { store, direct } = aDatabase();
  const lead = aLead();
  await create(store, lead);
  direct.prepare(sql).run(lead.id);

  expect(await create(store, aLead({ contact: lead.contact }))).toMatchObject({ kind: 'created' });
});
