import { resultCodeOf } from './result-codes.ts';

/** What an error of the file system means for a database file, and what to do about it. */
const FILE_FAULTS: Readonly<Record<string, string>> = {
  EACCES: 'may not be opened by this user: give them the file and its folder, to read and to write',
  EPERM: 'may not be opened by this user: give them the file and its folder, to read and to write',
  EISDIR: 'is a folder: name a file, which may be in it',
  ENOTDIR: 'cannot be: a part of its path is a file, and no folder',
  EEXIST: 'cannot be: a part of its path is a file, and no folder',
  EROFS: 'is on a file system that can only be read: name another place, or mount it for writing',
  ENOSPC: 'cannot be made, because its disk is full: make room',
};

/** The same for SQLite's own result codes. */
const SQLITE_FAULTS: Readonly<Record<number, string>> = {
  5: 'is held by another process that does not let go: end that one',
  8: 'can only be read: give this user the file and its folder, to read and to write',
  10: 'cannot be read or written: look at its disk, whether it is full or broken',
  11: 'is damaged: restore a backup',
  13: 'cannot be written, because its disk is full: make room',
  14: 'cannot be opened: look whether this user may write its folder, and whether what is there is a file',
  26: 'is not a database: name another file, or restore a backup',
};

/** What keeps a database file from being opened, and what to do, as the end of the sentence "the database file …". */
export function fileFault(error: unknown): string {
  const { code, message } = error as { code?: string; message: string };
  const resultCode = resultCodeOf(error);
  const known = resultCode === undefined ? FILE_FAULTS[code ?? ''] : SQLITE_FAULTS[resultCode];
  return known === undefined ? `cannot be used: ${message}` : `${known} (${message})`;
}
