import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { aForgetfulDisk, describeWithForgetfulDisk } from '../crash/forgetful-disk.ts';
import { aDatabase, backUp } from '../support/backups.ts';
import { aSmallDisk, describeWithSmallDisks } from '../support/small-disk.ts';

// @proves backups-2 sqlite-4
describeWithForgetfulDisk('a backup on a disk that forgets unsynced writes', () => {
  test('a backup survives a power cut once it was reported as written', async () => {
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

// @proves backups-2
describeWithSmallDisks('a backup to a full disk', () => {
  test('a backup to a full disk fails with that reason and leaves no file', async () => {
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
