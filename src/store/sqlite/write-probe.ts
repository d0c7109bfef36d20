import type { DatabaseSync } from 'node:sqlite';

/** How much a probe writes: more than most transactions. What is written over finds room where a creation would not; bytes. */
const PROBE_BYTES = 256 * 1024;

/**
 * Writes something, to see whether a transaction can be committed again. Always over the same pages of a table of its own,
 * which it makes itself: on a full disk that has no room for the log, it fails like any other.
 */
export function writeProbe(database: DatabaseSync): void {
  database.exec(`
    CREATE TABLE IF NOT EXISTS write_probe (id INTEGER NOT NULL PRIMARY KEY, filler BLOB NOT NULL) STRICT;
    INSERT INTO write_probe (id, filler) VALUES (1, randomblob(${PROBE_BYTES}))
      ON CONFLICT (id) DO UPDATE SET filler = excluded.filler`);
}
