import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import { access, constants, link, open, rename, rm, stat, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { FileContents, FileState } from '../database-state.ts';
import { StoreUnavailable } from '../port/faults.ts';
import { fileFault, nearestFolder } from './file-fault.ts';
import { isLocked, readResultCode } from './group-commit.ts';
import { openDatabase } from './open-database.ts';
import { isBackup, withDatabase } from './restores.ts';
import { SCHEMA_OF_1_2, SCHEMA_VERSION, schemaVersion } from './schema.ts';
import { syncFolder } from './sync-folder.ts';

/* The work of commands on a database file. */

const OTHERS = 0o077;

/** Examines a database file and its folder without changing them. Includes the findings before a fault. */
export async function examineSqlite(path: string): Promise<FileState> {
  let found: FileState = { kind: 'file', path, exists: !isAbsent(path) };
  try {
    const folder = nearestFolder(path);
    await access(folder, constants.R_OK | constants.W_OK);
    if (found.exists) {
      await access(path, constants.R_OK | constants.W_OK);
      found = { ...found, contents: examineContents(path, ((await stat(path)).mode & OTHERS) !== 0) };
    }
    const { bavail, bsize } = await statfs(folder);
    return { ...found, roomBytes: bavail * bsize };
  } catch (error) {
    return { ...found, fault: fileFault(error, path) };
  }
}

/** The releases by schema version. */
const RELEASES: Readonly<Record<number, '1.2' | 'this'>> = {
  0: 'this',
  [SCHEMA_OF_1_2]: '1.2',
  [SCHEMA_VERSION]: 'this',
};

/** @throws Error when the file cannot be read or is not a database */
function examineContents(path: string, isOpenToOthers: boolean): FileContents {
  return withDatabase(path, { readOnly: true }, (database) => {
    const version = schemaVersion(database);
    const release = RELEASES[version] ?? (version < SCHEMA_VERSION ? 'earlier' : 'newer');
    return { release, isOpenToOthers, isBackup: isBackup(database) };
  });
}

/** Whether a file does not exist or is empty. A process may die between creating the file and its first write. */
export const isAbsent = (path: string): boolean => !existsSync(path) || statSync(path).size === 0;

export const absentFileError = (path: string): StoreUnavailable =>
  new StoreUnavailable(
    `the database file ${path} ${existsSync(path) ? 'is empty' : 'does not exist'}: DATABASE_URL names it`,
  );

export interface Vacuumed {
  readonly before: number;
  readonly after: number;
}

/**
 * Rewrites a database file without deleted and overwritten data. Despite `secure_delete`, split or moved pages may
 * still contain some. Blocks writers meanwhile.
 *
 * @throws StoreUnavailable when the file is in use, or its disk has no room for the copy
 */
export function vacuumFile(path: string): Vacuumed {
  if (isAbsent(path)) throw absentFileError(path);
  const before = statSync(path).size;
  const { database, files } = openDatabase(path);
  try {
    database.exec('VACUUM');
    // The log still contains the old pages.
    const { busy } = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number };
    if (busy !== 0)
      throw new StoreUnavailable(
        'the log still contains erased data, because other processes are reading: run it again',
      );
    files.check();
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    const reason = isLocked(error)
      ? 'is being written to: run it again, or stop the core first'
      : fileFault(error, path);
    throw new StoreUnavailable(`the database file ${path} ${reason}`, error);
  } finally {
    database.close();
  }
  return { before, after: statSync(path).size };
}

const PROGRESS_INTERVAL_MS = 500;

/** The error codes of file systems without hard links, such as exFAT. */
const WITHOUT_LINKS: ReadonlySet<string | undefined> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);

/** SQLite's result codes for faults of the source file: damaged, not a database. */
const SOURCE_FAULTS: readonly (number | undefined)[] = [11, 26];

/** A report of the process that writes a backup: the approximate size, or why it failed. */
export type BackupMessage = { readonly bytes: number } | { readonly fault: ProcessFault };

interface ProcessFault {
  readonly message: string;
  readonly code?: string | undefined;
  readonly errcode?: number | undefined;
}

export interface BackupWatch {
  /** Called periodically with the bytes written and the approximate total. */
  onProgress?(written: number, total: number): void;
  readonly ending?: AbortSignal;
}

export interface Backup {
  readonly file: string;
  readonly bytes: number;
}

/**
 * Writes a snapshot of a database file, without deleted data, to a new file that only its owner can read. Other
 * processes may read and write meanwhile. Until everything is on the disk, the file is called `FILE.partial`. An
 * aborted backup leaves no file.
 *
 * @throws StoreUnavailable with what is wrong with either file and what to do; the reason of `watch.ending`
 */
export async function backUpFile(path: string, file: string, watch: BackupWatch): Promise<Backup> {
  const partial = `${file}.partial`;
  if (isAbsent(path)) throw absentFileError(path);
  if (existsSync(file)) throw existsAlreadyError(file);
  await makeFile(partial);
  try {
    await write(path, partial, watch);
    const { size } = await stat(partial);
    await renameToNew(partial, file).catch((error) => {
      throw error.code === 'EEXIST' ? existsAlreadyError(file) : error;
    });
    // SQLite has synced the file itself.
    syncFolder(dirname(resolve(file)));
    return { file, bytes: size };
  } catch (error) {
    // A killed process leaves SQLite's journal behind.
    for (const end of ['', '-journal']) await rm(partial + end, { force: true });
    throw 'syscall' in (error as Error) ? createFileFault(partial, error) : error;
  }
}

/** Renames a file, but unlike `rename` never replaces one that was created meanwhile. */
async function renameToNew(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
    await rm(from);
  } catch (error) {
    if (!WITHOUT_LINKS.has((error as NodeJS.ErrnoException).code)) throw error;
    // Replaces only the empty file created here.
    await (await open(to, 'wx', 0o600)).close();
    await rename(from, to);
  }
}

const existsAlreadyError = (file: string): StoreUnavailable =>
  new StoreUnavailable(`${file} exists already: name another file`);

async function makeFile(partial: string): Promise<void> {
  try {
    await (await open(partial, 'wx', 0o600)).close();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw createFileFault(partial, error);
    throw new StoreUnavailable(`${partial} exists: another backup is running, or was killed; if so, remove the file`);
  }
}

/** Runs the backup process, and kills it when `ending` aborts. */
async function write(path: string, partial: string, { onProgress, ending }: BackupWatch): Promise<void> {
  ending?.throwIfAborted();
  const child = fork(new URL('./backup-process.ts', import.meta.url), [path, partial], { stdio: 'ignore' });
  const kill = () => child.kill('SIGKILL');
  ending?.addEventListener('abort', kill);
  let total: number | undefined;
  let fault: ProcessFault | undefined;
  child.on('message', (message: BackupMessage) => {
    if ('bytes' in message) total = message.bytes;
    else fault = message.fault;
  });
  const progress = setInterval(() => {
    if (total !== undefined)
      stat(partial).then(
        ({ size }) => onProgress?.(size, total ?? size),
        () => {},
      );
  }, PROGRESS_INTERVAL_MS);
  try {
    const [status, signal] = await once(child, 'close');
    ending?.throwIfAborted();
    if (fault) throw createFileFault(isSourceFault(total, fault) ? path : partial, fault);
    if (status !== 0) throw new StoreUnavailable(`the backup process ended with ${signal ?? `status ${status}`}`);
  } finally {
    clearInterval(progress);
    ending?.removeEventListener('abort', kill);
  }
}

const isSourceFault = (total: number | undefined, fault: unknown): boolean =>
  total === undefined || SOURCE_FAULTS.includes(readResultCode(fault));

const createFileFault = (file: string, error: unknown): StoreUnavailable =>
  new StoreUnavailable(`the file ${file} ${fileFault(error, file)}`);
