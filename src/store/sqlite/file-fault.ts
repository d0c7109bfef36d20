import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { readResultCode } from './group-commit.ts';

/** Descriptions of a database file's fault, with what to do, by the code of a file system error. */
const FILE_FAULTS: Readonly<Record<string, string>> = {
  EACCES: 'may not be opened by this user: give them the file and its folder, to read and to write',
  EPERM: 'may not be opened by this user: give them the file and its folder, to read and to write',
  EISDIR: 'is a folder: name a file, which may be in it',
  ENOTDIR: 'cannot be created: a part of its path is a file, not a folder',
  EEXIST: 'cannot be created: a part of its path is a file, not a folder',
  EROFS: 'is on a read-only file system: name another place, or mount it for writing',
  ENOSPC: 'cannot be created, because its disk is full: make room',
};

/** The same by SQLite's result code. */
const SQLITE_FAULTS: Readonly<Record<number, string>> = {
  5: 'is locked by another process: stop that process',
  8: 'is read-only: give this user the file and its folder, to read and to write',
  10: 'cannot be read or written: check whether its disk is full or broken',
  11: 'is damaged: restore a backup',
  13: 'cannot be written, because its disk is full: make room',
  14: 'cannot be opened: check whether this user may write its folder and the files beside it (-wal, -shm), and whether the path is a file',
  26: 'is not a database: name another file, or restore a backup',
};

/** Returns why a database file cannot be opened, and what to do, as the end of the sentence "the database file …". */
export function fileFault(error: unknown, path: string): string {
  const { code, message } = error as { code?: string; message: string };
  const resultCode = readResultCode(error);
  // Without a free inode, SQLite reports that the file cannot be opened, and the system that the disk is full.
  if ((resultCode === 14 || code === 'ENOSPC') && hasNoInodes(path))
    return `cannot be used, because its file system has no inodes left, whatever room it has: delete files (${message})`;
  const known = resultCode === undefined ? FILE_FAULTS[code ?? ''] : SQLITE_FAULTS[resultCode];
  return known === undefined ? `cannot be used: ${message}` : `${known} (${message})`;
}

/** Whether no file can be created beside another. Some file systems count no inodes. */
function hasNoInodes(path: string): boolean {
  const { files, ffree } = statfsSync(nearestFolder(path));
  return files > 0 && ffree === 0;
}

/** Returns the folder of a file, or its nearest existing ancestor. */
export function nearestFolder(path: string): string {
  const folder = dirname(path);
  return existsSync(folder) ? folder : nearestFolder(folder);
}
