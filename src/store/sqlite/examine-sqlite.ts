import { existsSync } from 'node:fs';
import { access, constants, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { FileState } from '../database-state.ts';
import { fileFault } from './file-fault.ts';
import { keyIndexFault } from './key-index.ts';
import { schemaVersion } from './migrate.ts';
import { SCHEMA_VERSION } from './schema.ts';

/** The permission bits of group and others. */
const OTHERS = 0o077;

/** Examines a database file and its folder without changing them. Includes what was found before a fault. */
export async function examineSqlite(path: string): Promise<FileState> {
  let found: FileState = { kind: 'file', path, exists: existsSync(path) };
  try {
    if (found.exists) {
      await access(path, constants.R_OK | constants.W_OK);
      const isOpenToOthers = ((await stat(path)).mode & OTHERS) !== 0;
      found = { ...found, contents: { ...examineContents(path), isOpenToOthers } };
    }
    const folder = nearestFolder(path);
    await access(folder, constants.R_OK | constants.W_OK);
    const { bavail, bsize } = await statfs(folder);
    return { ...found, roomBytes: bavail * bsize };
  } catch (error) {
    return { ...found, fault: fileFault(error) };
  }
}

/** @throws Error when the file cannot be read or is not a database */
function examineContents(path: string): Omit<NonNullable<FileState['contents']>, 'isOpenToOthers'> {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const version = schemaVersion(database);
    if (version === SCHEMA_VERSION) return { release: 'this', indexFaults: [keyIndexFault(database) ?? []].flat() };
    if (version === 0) return { release: 'this', indexFaults: [] };
    return { release: version < SCHEMA_VERSION ? '1.0' : 'newer', indexFaults: [] };
  } finally {
    database.close();
  }
}

/** The nearest existing folder above a path. */
function nearestFolder(path: string): string {
  const folder = dirname(path);
  return existsSync(folder) ? folder : nearestFolder(folder);
}
