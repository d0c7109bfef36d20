import { errorSummary } from '../../common/error-summary.ts';
import type { FileState, ServerState } from '../../src/store/database-state.ts';
import { examineDatabase } from '../../src/store/open-store.ts';
import { type Finding, Notes } from './finding.ts';

/** Below this, a disk counts as nearly full; bytes. */
const LITTLE_ROOM = 1024 ** 3;

/** Below this, a write need not find the room that it takes; bytes. */
const NO_ROOM = 1024 ** 2;

/** Looks at the database that an address names, and changes nothing in it. */
export async function examineStore(databaseUrl: string): Promise<readonly Finding[]> {
  const notes = new Notes('database');
  const askedAt = Date.now();
  const state = await examineDatabase(databaseUrl);
  switch (state.kind) {
    case 'file':
      noteFile(notes, state);
      break;
    case 'server':
      noteServer(notes, state, askedAt);
      break;
    case 'silent server':
      notes.fault(
        `${state.product} does not answer: ${errorSummary(state.reason)}. Look at DATABASE_URL, the network, and the server's log`,
      );
  }
  return notes.findings;
}

function noteFile(notes: Notes, { path, isThere, contents, roomBytes, fault }: FileState): void {
  if (!isThere) notes.warning(`there is none at ${path} yet: a core that starts makes it`);
  if (contents) noteContents(notes, path, contents);
  if (roomBytes !== undefined) noteRoom(notes, roomBytes);
  if (fault !== undefined) notes.fault(`SQLite at ${path} ${fault}`);
}

function noteContents(
  notes: Notes,
  path: string,
  { release, isOpenToOthers, indexFaults }: NonNullable<FileState['contents']>,
): void {
  if (release === 'newer')
    notes.fault(
      `SQLite at ${path} was written by a newer release: start that, or go back to the copy of before its first start`,
    );
  else if (release === 'earlier')
    notes.warning(`SQLite at ${path} is of an earlier release: a core that starts converts it`);
  else if (release === 'half-converted')
    notes.warning(
      `SQLite at ${path} is half converted from an earlier release: a core is at it, or goes on as it starts`,
    );
  else notes.well(`SQLite at ${path} can be read and written`);
  for (const fault of indexFaults) notes.fault(toldOf(fault));
  if (isOpenToOthers) {
    notes.warning(`others on this machine may open ${path}, in which people's names are: chmod 600`);
  }
}

function noteRoom(notes: Notes, roomBytes: number): void {
  if (roomBytes < NO_ROOM) {
    notes.fault(`its disk is full, ${Math.round(roomBytes / 1024)} KB are left: nothing is written`);
  } else if (roomBytes < LITTLE_ROOM) {
    notes.warning(`its disk has ${Math.round(roomBytes / 1024 ** 2)} MB left: when it is full, nothing is written`);
  }
}

function noteServer(
  notes: Notes,
  { product, version, topology, time, indexFaults }: ServerState,
  askedAt: number,
): void {
  notes.well(`${product} ${version} answers (${topology})`);
  notes.clock(product, time, askedAt, 0);
  if (topology === 'standalone server') {
    notes.warning('a standalone server loses its last writes with its disk: use a replica set');
  }
  for (const fault of indexFaults) notes.fault(toldOf(fault));
}

const toldOf = (indexFault: string) =>
  `${indexFault}. Until it is as it must be, nothing is created; a core makes what is missing as soon as it can`;
