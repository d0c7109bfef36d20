import { statSync } from 'node:fs';
import { StoreUnavailable } from '../store.ts';
import { fileFault } from './file-fault.ts';
import { openDatabase } from './open-database.ts';
import { resultCodeOf, SQLITE_BUSY } from './result-codes.ts';

/** The size of a file before and after; bytes. */
export interface Vacuumed {
  readonly before: number;
  readonly after: number;
}

/**
 * Rewrites a database file without deleted and overwritten data, pieces of which may remain in split or moved pages
 * despite `secure_delete`. Blocks writers meanwhile.
 *
 * @throws StoreUnavailable when the file is in use, or its disk has no room for the copy
 */
export function vacuumFile(path: string): Vacuumed {
  const before = statSync(path, { throwIfNoEntry: false })?.size;
  if (before === undefined) throw new StoreUnavailable(`the database file ${path} does not exist`);
  const database = openDatabase(path);
  try {
    database.exec('VACUUM');
    // The log still contains the old pages.
    const { busy } = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number };
    if (busy !== 0)
      throw new StoreUnavailable(
        'the log still contains erased data, because other processes are reading: run it again',
      );
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    const isBusy = resultCodeOf(error) === SQLITE_BUSY;
    const reason = isBusy ? 'is being written to: run it again, or stop the core first' : fileFault(error);
    throw new StoreUnavailable(`the database file ${path} ${reason}`, error);
  } finally {
    database.close();
  }
  return { before, after: statSync(path).size };
}
