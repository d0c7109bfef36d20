import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { aDatabase, backUp, beginBackup } from '../support/backups.ts';
import { wrongWith } from '../support/doctor.ts';
import { type RunningProcess, run, temporaryFolder } from '../tools/processes.ts';

/** The size of a database that takes a while to write; megabytes. */
const LARGE_MB = 128;

// @proves backups-2
test('a backup has all current data and no deleted data, and only its owner can read it', async () => {
  const path = await aDatabase(8);
  const database = new DatabaseSync(path, { timeout: 100_000 });
  database.exec('DELETE FROM ballast WHERE n > 2');
  const file = join(temporaryFolder(), 'backup.db');

  expect(await backUp(`sqlite:${path}`, file)).toEqual([0, expect.stringContaining(file)]);
  database.close();

  const { mode, size } = statSync(file);
  expect(mode & 0o777).toBe(0o600);
  expect(size).toBeLessThan(3e6);
  const backup = new DatabaseSync(file, { readOnly: true });
  expect(backup.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
  expect(backup.prepare('SELECT count(*) AS count FROM ballast').get()).toEqual({ count: 2 });
  backup.close();
  expect(readdirSync(dirname(file))).toEqual([basename(file)]);
});

// @proves backups-2
test('a backup overwrites no file and reports in one line what prevents it', async () => {
  const [path, folder] = [await aDatabase(), temporaryFolder()];
  const [taken, unfinished, free] = ['taken.db', 'unfinished.db', 'free.db'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(taken, 'something else');
  writeFileSync(`${unfinished}.partial`, '');
  for (const [databaseUrl, file, reason] of [
    [`sqlite:${path}`, taken, `${taken} exists already: name another file\n`],
    [`sqlite:${path}`, path, `${path} exists already: name another file\n`],
    [`sqlite:${path}`, unfinished, `${unfinished}.partial exists: another backup is running, or was killed`],
    [`sqlite:${path}`, join(folder, 'nowhere/backup.db'), 'ENOENT'],
    [`sqlite:${free}`, `${free}.backup`, `the database file ${free} does not exist: DATABASE_URL names it\n`],
    [`sqlite:${unfinished}.partial`, free, 'unfinished.db.partial is empty: DATABASE_URL names it\n'],
    [`sqlite:${taken}`, free, `the file ${taken} is not a database`],
    ['mongodb://127.0.0.1:1/leads', free, 'DATABASE_URL names a server: back it up with its own tools\n'],
  ] as const) {
    expect(await backUp(databaseUrl, file), reason).toEqual([1, expect.stringContaining(reason)]);
  }
  expect(readdirSync(folder).sort()).toEqual(['taken.db', 'unfinished.db.partial']);
});

test('a backup does not overwrite a file created while it was being written', async () => {
  const [path, file] = [await aDatabase(), join(temporaryFolder(), 'backup.db')];
  // The file appears at the last moment: when the finished backup gets its name.
  const late = `import fs from 'node:fs/promises';
    import { writeFileSync } from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    for (const name of ['rename', 'link', 'copyFile', 'cp']) {
      const real = fs[name];
      fs[name] = (...args) => (writeFileSync(${JSON.stringify(file)}, 'something else'), real(...args));
    }
    syncBuiltinESMExports();`;
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(late)}`;

  const [status, stderr] = await backUp(`sqlite:${path}`, file, { env: { NODE_OPTIONS } });
  // Backups that take longer than a second print their progress first.
  expect([status, `${stderr}`.split('\n').at(-2)]).toEqual([1, `${file} exists already: name another file`]);
  expect(readFileSync(file, 'utf8')).toBe('something else');
  expect(readdirSync(dirname(file))).toEqual([basename(file)]);
});

// @proves backups-2 sqlite-5
test('a backup shows its progress on a terminal, and leaves no file after Ctrl-C', async () => {
  const [path, file] = [await aDatabase(LARGE_MB), join(temporaryFolder(), 'backup.db')];
  const terminal = `--import=data:text/javascript,${encodeURIComponent('process.stderr.isTTY = true')}`;
  const running = beginBackup(`sqlite:${path}`, file, { env: { NODE_OPTIONS: terminal } });
  await expect.poll(() => listChildren(running), { interval: 1 }).not.toEqual([]);
  const writers = listChildren(running);
  while ((statSync(`${file}.partial`, { throwIfNoEntry: false })?.size ?? 0) === 0) await sleep(1);
  for (const writer of writers) process.kill(writer, 'SIGSTOP');

  await running.printed(/\d+\.\d of 1\d\d\.\d MB/);
  expect(existsSync(file)).toBe(false);
  running.child.kill('SIGINT');

  expect(await running.ended()).toBe(1);
  expect(running.output()).toContain(`backup interrupted: ${file} was not written`);
  expect(readdirSync(dirname(file))).toEqual([]);
});

// @proves backups-3
test('doctor and the core report a restored backup until an operator records the restore', async () => {
  const path = await aDatabase();
  const [file, again, databaseUrl] = [
    ...['one', 'two'].map((name) => join(temporaryFolder(), name)),
    `sqlite:${path}`,
  ] as [string, string, string];
  const findEpoch = async (file: string) => {
    const store = openSqliteStore(file);
    try {
      return await store.findEpoch();
    } finally {
      await store.close();
    }
  };
  const doctorReportsBackup = async (file: string) =>
    (await wrongWith('database', 'core', { DATABASE_URL: `sqlite:${file}` })).some((finding) =>
      finding.includes('is a backup, and consumers do not know it: run `lead-intake restored`'),
    );
  const beforeIt = Date.now();
  expect((await backUp(databaseUrl, file))[0]).toBe(0);
  const begunAt = (await findEpoch(file)).backedUpAt?.getTime();
  expect(begunAt).toBeGreaterThanOrEqual(beforeIt);
  expect(begunAt).toBeLessThanOrEqual(Date.now());
  expect([await doctorReportsBackup(path), await doctorReportsBackup(file)]).toEqual([false, true]);
  const core = run('src/main.ts', { env: { DATABASE_URL: `sqlite:${file}` } });
  await core.printed(/the database is a backup, and consumers do not know it/);
  core.child.kill('SIGTERM');
  expect(await core.ended()).toBe(0);

  // A backup of the restored database is missing the same changes as the first backup.
  expect((await backUp(`sqlite:${file}`, again))[0]).toBe(0);
  expect((await findEpoch(again)).backedUpAt?.getTime()).toBe(begunAt);
  const args = ['--json', 'restored', '--to', new Date().toISOString()];
  const noted = { restoredTo: new Date((begunAt ?? 0) - 300_000), backedUpAt: null };
  // Repeating the command, with or without a time, changes nothing for consumers.
  for (const each of [args, args, ['--json', 'restored']]) {
    const noting = run('operator/cli.ts', { args: each, env: { DATABASE_URL: `sqlite:${again}` } });
    expect(await noting.ended()).toBe(0);
    expect(JSON.parse(noting.output()).restoredTo).toBe(noted.restoredTo.toISOString());
    expect(await findEpoch(again)).toMatchObject(noted);
  }
  expect(await doctorReportsBackup(again)).toBe(false);
});

function listChildren({ child: { pid } }: RunningProcess): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
}
