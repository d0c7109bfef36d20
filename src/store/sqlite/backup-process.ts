import type { BackupMessage } from './database-file.ts';
import { copyDatabase } from './restores.ts';

/* The process that writes a backup. Only killing it aborts the statement that does nearly all the work. */

const send = (message: BackupMessage) => process.send?.(message);

const [from = '', to = ''] = process.argv.slice(2);
try {
  copyDatabase(from, to, (database) => {
    const used = database.prepare(
      'SELECT (page_count - freelist_count) * page_size AS bytes FROM pragma_page_count, pragma_freelist_count, pragma_page_size',
    );
    send({ bytes: used.get()?.bytes as number });
  });
} catch (error) {
  const { message, code, errcode } = error as Error & { code?: string; errcode?: number };
  send({ fault: { message, code, errcode } });
}
process.disconnect?.();
