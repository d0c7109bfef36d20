import { statSync } from 'node:fs';
import { StoreUnavailable } from '../store.ts';
import { fileFault } from './file-fault.ts';
import { openDatabase } from './open-database.ts';
import { resultCodeOf, SQLITE_BUSY } from './result-codes.ts';

/** What a file took before and takes after; bytes. */
export interface Vacuumed {
  readonly before: number;
  readonly after: number;
}

/**
 * Writes a database file anew, without what was deleted or written over in it: pages that were split or moved about may keep pieces of
 * that, whatever is done as it is deleted. Whoever writes to the file waits meanwhile.
 *
 * @throws StoreUnavailable when others keep the file busy, or its disk has no room for the copy
 */
export function vacuumFile(path: string): Vacuumed {
  const before = statSync(path, { throwIfNoEntry: false })?.size;
  if (before === undefined) throw new StoreUnavailable(`the database file ${path} is not there`);
  const database = openDatabase(path);
  try {
    database.exec('VACUUM');
    // The log has the pages of before.
    const { busy } = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number };
    if (busy !== 0) throw new StoreUnavailable('others are reading: what was erased is in the log still; do it again');
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    const isBusy = resultCodeOf(error) === SQLITE_BUSY;
    const says = isBusy ? 'is being written to: do it again, or stop the core meanwhile' : fileFault(error);
    throw new StoreUnavailable(`the database file ${path} ${says}`, error);
  } finally {
    database.close();
  }
  return { before, after: statSync(path).size };
}
