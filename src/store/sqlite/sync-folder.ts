import { closeSync, fsyncSync, openSync } from 'node:fs';

/** Syncs a folder, so that its new files survive a power failure. SQLite does that only for its own files. */
export function syncFolder(folder: string): void {
  const opened = openSync(folder, 'r');
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}
