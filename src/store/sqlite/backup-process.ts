import { DatabaseSync } from 'node:sqlite';
import { SQLITE_BUSY_MS } from '../../../common/deadlines.ts';
import type { BackupMessage } from './database-file.ts';
import { markBackup } from './restores.ts';

/* The process that writes a backup, nearly all in one statement, which can only be aborted by killing the process. */

const send = (message: BackupMessage) => process.send?.(message);

const [from = '', to = ''] = process.argv.slice(2);
try {
  // Read-only: it does not block writers, and does not convert an earlier release's file.
  const database = new DatabaseSync(from, { readOnly: true, timeout: SQLITE_BUSY_MS });
  const used = database.prepare(
    'SELECT (page_count - freelist_count) * page_size AS bytes FROM pragma_page_count, pragma_freelist_count, pragma_page_size',
  );
  send({ bytes: used.get()?.bytes as number });
  const begunAt = Date.now();
  database.prepare('VACUUM INTO ?').run(to);
  database.close();
  const backup = new DatabaseSync(to);
  markBackup(backup, begunAt);
  backup.close();
} catch (error) {
  const { message, code, errcode } = error as Error & { code?: string; errcode?: number };
  send({ fault: { message, code, errcode } });
}
process.disconnect?.();
