import { DatabaseSync } from 'node:sqlite';
import { SQLITE_BUSY_MS } from '../../../common/deadlines.ts';
import type { BackupMessage } from './backup.ts';

/*
 * The process in which a backup is written: SQLite does that in one statement, which nobody can break off but by ending it.
 */

const tell = (message: BackupMessage) => process.send?.(message);

const [from = '', to = ''] = process.argv.slice(2);
try {
  // Nobody who writes waits for a reader, and an earlier release's file stays one.
  const database = new DatabaseSync(from, { readOnly: true, timeout: SQLITE_BUSY_MS });
  const used = database.prepare(
    'SELECT (page_count - freelist_count) * page_size AS bytes FROM pragma_page_count, pragma_freelist_count, pragma_page_size',
  );
  tell({ bytes: used.get()?.bytes as number });
  database.prepare('VACUUM INTO ?').run(to);
  database.close();
} catch (error) {
  const { message, code, errcode } = error as Error & { code?: string; errcode?: number };
  tell({ fault: { message, code, errcode } });
}
process.disconnect?.();
