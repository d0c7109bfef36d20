import { existsSync } from 'node:fs';
import { access, constants, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { inOneLine } from '../../common/in-one-line.ts';
import { examineMongo } from '../../src/store/mongo/examine-mongo.ts';
import { examineSqlite } from '../../src/store/sqlite/examine-sqlite.ts';
import { fileFault } from '../../src/store/sqlite/file-fault.ts';
import { type Finding, Notes } from './finding.ts';

/** Below this, a disk counts as nearly full; bytes. */
const LITTLE_ROOM = 1024 ** 3;

/** Below this, a write need not find the room that it takes; bytes. */
const NO_ROOM = 1024 ** 2;

/** The bits of a file's mode by which others than its owner get at it. */
const OTHERS = 0o077;

/** Looks at the database that an address names, and changes nothing in it. */
export async function examineStore(databaseUrl: string): Promise<readonly Finding[]> {
  return databaseUrl.startsWith('sqlite:')
    ? examineFile(databaseUrl.slice('sqlite:'.length))
    : examineMongoDb(databaseUrl);
}

async function examineFile(path: string): Promise<readonly Finding[]> {
  const notes = new Notes('database');
  try {
    if (existsSync(path)) {
      await access(path, constants.R_OK | constants.W_OK);
      const { schema, knownSchema, indexFaults } = examineSqlite(path);
      if (schema > knownSchema) notes.fault(`SQLite at ${path} was written by a newer release: use that`);
      else if (schema < knownSchema)
        notes.warning(`SQLite at ${path} is of an earlier release: a core that starts converts it`);
      else notes.well(`SQLite at ${path} can be read and written`);
      for (const fault of indexFaults) notes.fault(toldOf(fault));
      if (((await stat(path)).mode & OTHERS) !== 0) {
        notes.warning(`others on this machine may open ${path}, in which people's names are: chmod 600`);
      }
    } else {
      notes.warning(`there is none at ${path} yet: a core that starts makes it`);
    }
    const folder = nearestFolder(path);
    await access(folder, constants.W_OK);
    const { bavail, bsize } = await statfs(folder);
    const room = bavail * bsize;
    if (room < NO_ROOM) notes.fault(`its disk is full, ${Math.round(room / 1024)} KB are left: nothing is written`);
    else if (room < LITTLE_ROOM) {
      notes.warning(`its disk has ${Math.round(room / 1024 ** 2)} MB left: when it is full, nothing is written`);
    }
  } catch (error) {
    notes.fault(`SQLite at ${path} ${fileFault(error)}`);
  }
  return notes.findings;
}

/** The folder that is there already. */
function nearestFolder(path: string): string {
  const folder = dirname(path);
  return existsSync(folder) ? folder : nearestFolder(folder);
}

async function examineMongoDb(url: string): Promise<readonly Finding[]> {
  const notes = new Notes('database');
  try {
    const askedAt = Date.now();
    const { version, topology, time, indexFaults } = await examineMongo(url);
    notes.well(`MongoDB ${version} answers (${topology})`);
    notes.clock('MongoDB', time, askedAt, 0);
    if (topology === 'standalone server') {
      notes.warning('a standalone server loses its last writes with its disk: use a replica set');
    }
    for (const fault of indexFaults) notes.fault(toldOf(fault));
  } catch (error) {
    notes.fault(
      `MongoDB does not answer: ${inOneLine(error)}. Look at DATABASE_URL, the network, and the server's log`,
    );
  }
  return notes.findings;
}

const toldOf = (indexFault: string) =>
  `${indexFault}. Until it is as it must be, nothing is created; a core makes what is missing as soon as it can`;
