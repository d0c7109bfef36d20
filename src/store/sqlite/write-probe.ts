import type { DatabaseSync } from 'node:sqlite';

/** The size of a probe, more than most transactions: a smaller one might fit where a creation would not; bytes. */
const PROBE_BYTES = 256 * 1024;

/**
 * Tests whether a transaction can be committed again. It overwrites the same pages of its own table; on a disk without
 * room for the log, it fails like any write.
 */
export function writeProbe(database: DatabaseSync): void {
  database.exec(`
    CREATE TABLE IF NOT EXISTS write_probe (id INTEGER NOT NULL PRIMARY KEY, filler BLOB NOT NULL) STRICT;
    INSERT INTO write_probe (id, filler) VALUES (1, randomblob(${PROBE_BYTES}))
      ON CONFLICT (id) DO UPDATE SET filler = excluded.filler`);
}
