import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { aForgetfulDisk, describeWithForgetfulDisk } from '../crash/forgetful-disk.ts';
import { ROOT, type RunningProcess, run, temporaryFolder } from '../support/processes.ts';
import { aSmallDisk, describeWithSmallDisks } from '../support/small-disk.ts';

vi.setConfig({ testTimeout: 60_000 });

/** Large enough that writing it takes a while; megabytes. */
const LARGE_MB = 128;

/** A database of this release, with some extra megabytes in it. */
async function aDatabase(megabytes = 1): Promise<string> {
  const path = join(temporaryFolder(), 'leads.db');
  await openSqliteStore(path).close();
  const database = new DatabaseSync(path);
  database.exec(`CREATE TABLE ballast AS WITH RECURSIVE rows (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM rows LIMIT ${megabytes})
    SELECT n, randomblob(1000000) AS bytes FROM rows`);
  database.close();
  return path;
}

interface Options {
  readonly within?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a backup of a database. */
function begin(databaseUrl: string, file: string, { within = [], env = {} }: Options = {}): RunningProcess {
  return run('operator/cli.ts', { args: ['backup', file], env: { DATABASE_URL: databaseUrl, ...env }, within });
}

/** Makes a backup; returns the exit status and the output. */
async function backUp(databaseUrl: string, file: string, options: Options = {}) {
  const running = begin(databaseUrl, file, options);
  return [await running.ended(), running.output()];
}

test('a backup has all current data, nothing that was deleted, and is readable by its owner only', async () => {
  const path = await aDatabase(8);
  const database = new DatabaseSync(path);
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

test('the file of an earlier release is backed up unchanged, before a core migrates it', async () => {
  const folder = temporaryFolder();
  const [path, file] = [join(folder, 'leads.db'), join(folder, 'before.db')];
  copyFileSync(join(ROOT, 'test/upgrade/sqlite-1.0.db'), path);

  expect(await backUp(`sqlite:${path}`, file)).toEqual([0, expect.stringContaining(file)]);

  const contents = [path, file].map((each) => {
    const database = new DatabaseSync(each, { readOnly: true });
    try {
      return {
        ...database.prepare('PRAGMA user_version').get(),
        leads: database.prepare('SELECT * FROM leads ORDER BY id').all(),
      };
    } finally {
      database.close();
    }
  });
  expect(contents[0]?.leads.length).toBeGreaterThan(3);
  expect(contents[1]).toEqual(contents[0]);
  expect(contents[1]).toMatchObject({ user_version: 2 });
});

test('no file is overwritten, and what prevents a backup is reported in one line', async () => {
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
    [`sqlite:${free}`, `${free}.backup`, `the database file ${free} does not exist\n`],
    [`sqlite:${taken}`, free, `the file ${taken} is not a database`],
    ['mongodb://127.0.0.1:1/leads', free, 'DATABASE_URL names a server: back it up with its own tools\n'],
  ] as const) {
    expect(await backUp(databaseUrl, file), reason).toEqual([1, expect.stringContaining(reason)]);
  }
  expect(readdirSync(folder).sort()).toEqual(['taken.db', 'unfinished.db.partial']);
});

test('a terminal shows the progress of a backup; interrupted by Ctrl-C, it leaves no file', async () => {
  const [path, file] = [await aDatabase(LARGE_MB), join(temporaryFolder(), 'backup.db')];
  const terminal = `--import=data:text/javascript,${encodeURIComponent('process.stderr.isTTY = true')}`;
  const running = begin(`sqlite:${path}`, file, { env: { NODE_OPTIONS: terminal } });
  await vi.waitUntil(() => childrenOf(running).length > 0, { timeout: 20_000, interval: 1 });
  const writers = childrenOf(running);
  while ((statSync(`${file}.partial`, { throwIfNoEntry: false })?.size ?? 0) === 0) await sleep(1);
  for (const writer of writers) process.kill(writer, 'SIGSTOP');

  await running.printed(/\[[#.]{25}\] \d+\.\d of 1\d\d\.\d MB, \d+ s left/);
  expect(existsSync(file)).toBe(false);
  running.child.kill('SIGINT');

  expect(await running.ended()).toBe(1);
  expect(running.output()).toContain(`backup interrupted: ${file} was not written`);
  expect(readdirSync(dirname(file))).toEqual([]);
});

describeWithForgetfulDisk('a backup that was reported as written', () => {
  test('survives a power cut whole', async () => {
    const [path, disk] = [await aDatabase(), await aForgetfulDisk()];
    const file = join(disk.folder, 'backup.db');
    expect(await backUp(`sqlite:${path}`, file)).toEqual([0, expect.stringContaining(file)]);

    await disk.failPower({ after: 0, of: '', keepsData: 0, keepsNames: 0, seed: 1 });
    await disk.failed();
    await disk.restorePower();

    expect(existsSync(file)).toBe(true);
    const backup = new DatabaseSync(file, { readOnly: true });
    expect(backup.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
    expect(backup.prepare('SELECT count(*) AS count FROM ballast').get()).toEqual({ count: 1 });
    backup.close();
  });
});

describeWithSmallDisks('a backup to a disk that is full', () => {
  test('fails with that reason, and leaves no file', async () => {
    const [path, disk] = [await aDatabase(2), await aSmallDisk(1024)];
    const file = join(disk.folder, 'backup.db');

    expect(await backUp(`sqlite:${path}`, file, { within: disk.within })).toEqual([
      1,
      expect.stringContaining(`the file ${file}.partial cannot be written, because its disk is full: make room`),
    ]);

    const [command = '', ...args] = [...disk.within, 'ls', disk.folder];
    expect(spawnSync(command, args, { encoding: 'utf8' }).stdout).toBe('');
  });
});

function childrenOf({ child }: RunningProcess): number[] {
  const { stdout } = spawnSync('pgrep', ['-P', `${child.pid}`], { encoding: 'utf8' });
  return stdout.split('\n').filter(Boolean).map(Number);
}
