import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { StoreUnavailable } from '../store.ts';
import { fileFault } from './file-fault.ts';
import { resultCodeOf } from './result-codes.ts';

/** How often it is looked how far a backup is; milliseconds. */
const CHECK_INTERVAL_MS = 500;

/** SQLite's result codes for what is wrong with the file that is read: damaged, and no database. */
const FAULTS_OF_SOURCE: readonly (number | undefined)[] = [11, 26];

/** What the process that writes a backup tells. */
export type BackupMessage =
  | { /** About as much as there is to write. */ readonly bytes: number }
  | {
      readonly fault: {
        readonly message: string;
        readonly code?: string | undefined;
        readonly errcode?: number | undefined;
      };
    };

/** Who follows a backup. */
export interface BackupWatch {
  /** Is told now and then how far it is; bytes, of about so many. */
  onProgress?(written: number, total: number): void;
  /** Breaks it off. */
  readonly ending?: AbortSignal;
}

/** A backup that was written. */
export interface Backup {
  readonly file: string;
  readonly bytes: number;
}

/**
 * Writes a database file as it is at this moment into a new file for its owner alone, without what was deleted from it. Others go on
 * reading and writing. Until all is on the disk the file is called `FILE.partial`; of one that is broken off nothing stays.
 *
 * @throws StoreUnavailable with what is wrong with either file and what to do about it; the reason of `watch.ending`
 */
export async function backUpFile(path: string, file: string, watch: BackupWatch): Promise<Backup> {
  const partial = `${file}.partial`;
  if (!existsSync(path)) throw new StoreUnavailable(`the database file ${path} is not there`);
  expectNew(file);
  await makeFile(partial);
  try {
    await write(path, partial, watch);
    const { size } = await stat(partial);
    expectNew(file);
    await rename(partial, file);
    // The file itself SQLite has synced.
    await sync(dirname(resolve(file)));
    return { file, bytes: size };
  } catch (error) {
    // SQLite's journal stays where its process is killed.
    for (const end of ['', '-journal']) await rm(partial + end, { force: true });
    throw 'syscall' in (error as Error) ? faultOf(partial, error) : error;
  }
}

function expectNew(file: string): void {
  if (existsSync(file)) throw new StoreUnavailable(`${file} is there already: name another file`);
}

async function makeFile(partial: string): Promise<void> {
  try {
    await (await open(partial, 'wx', 0o600)).close();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw faultOf(partial, error);
    throw new StoreUnavailable(`${partial} is there: another backup is under way, or was killed; then remove it`);
  }
}

/** Has the one statement done that writes it, and ends it with `watch.ending`. */
async function write(path: string, partial: string, { onProgress, ending }: BackupWatch): Promise<void> {
  ending?.throwIfAborted();
  const child = fork(new URL('./backup-process.ts', import.meta.url), [path, partial], { stdio: 'ignore' });
  const end = () => child.kill('SIGKILL');
  ending?.addEventListener('abort', end);
  let total: number | undefined;
  let fault: Extract<BackupMessage, { fault: unknown }>['fault'] | undefined;
  child.on('message', (message: BackupMessage) => {
    if ('bytes' in message) total = message.bytes;
    else fault = message.fault;
  });
  const looks = setInterval(() => {
    if (total !== undefined)
      stat(partial).then(
        ({ size }) => onProgress?.(size, total ?? size),
        () => {},
      );
  }, CHECK_INTERVAL_MS);
  try {
    const [status, signal] = await once(child, 'close');
    ending?.throwIfAborted();
    if (fault) throw faultOf(isOfSource(total, fault) ? path : partial, fault);
    if (status !== 0) throw new StoreUnavailable(`the backup was ended by ${signal ?? `status ${status}`}`);
  } finally {
    clearInterval(looks);
    ending?.removeEventListener('abort', end);
  }
}

const isOfSource = (total: number | undefined, fault: unknown): boolean =>
  total === undefined || FAULTS_OF_SOURCE.includes(resultCodeOf(fault));

const faultOf = (file: string, error: unknown): StoreUnavailable =>
  new StoreUnavailable(`the file ${file} ${fileFault(error)}`);

async function sync(folder: string): Promise<void> {
  const opened = await open(folder, 'r');
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}
