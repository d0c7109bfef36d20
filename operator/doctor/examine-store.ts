import { errorSummary } from '../../common/error-summary.ts';
import type { FileContents, FileState, ServerState } from '../../src/store/database-state.ts';
import { earlierReleaseError } from '../../src/store/earlier-release.ts';
import { examineDatabase } from '../../src/store/open-store.ts';
import type { Notes } from './finding.ts';

/** A disk with less free space is nearly full; bytes. */
const LOW_SPACE_BYTES = 1024 ** 3;

/** With less free space, a write may fail; bytes. */
const NO_SPACE_BYTES = 1024 ** 2;

/** Examines a database without changing it. */
export async function examineStore(notes: Notes, databaseUrl: string): Promise<void> {
  const state = await examineDatabase(databaseUrl);
  switch (state.kind) {
    case 'file':
      return noteFile(notes, state);
    case 'server':
      return noteServer(notes, state);
    case 'silent server':
      return notes.fault(
        state.isWrong
          ? `${state.product} answers, and cannot be used: ${(state.reason as Error).message}`
          : `${state.product} does not answer: ${errorSummary(state.reason)}. Check DATABASE_URL, the network, and the server's log`,
      );
  }
}

function noteFile(notes: Notes, { path, exists, contents, roomBytes, fault }: FileState): void {
  if (!exists && fault === undefined) notes.warning(`there is none at ${path} yet: a core creates it when it starts`);
  if (contents) noteContents(notes, path, contents);
  if (roomBytes !== undefined) noteRoom(notes, roomBytes);
  if (fault !== undefined) notes.fault(`SQLite at ${path} ${fault}`);
}

function noteContents(notes: Notes, path: string, { release, isOpenToOthers, isBackup }: FileContents): void {
  if (release === 'newer')
    notes.fault(
      `SQLite at ${path} was written by a newer release: run that release, or restore the copy from before its first start`,
    );
  else if (release === 'earlier') notes.fault(earlierReleaseError(`SQLite at ${path}`).message);
  else if (release === '1.2')
    notes.warning(
      `SQLite at ${path} is of release 1.2: the next core that starts brings it to this one, and keeps a copy`,
    );
  else notes.ok(`SQLite at ${path} can be read and written`);
  if (isBackup) notes.warning(`${path} is a backup, and consumers do not know it: run \`lead-intake restored\``);
  if (isOpenToOthers) {
    notes.warning(`others on this machine may open ${path}, which has personal data: chmod 600`);
  }
}

function noteRoom(notes: Notes, roomBytes: number): void {
  if (roomBytes < NO_SPACE_BYTES) {
    notes.fault(`its disk is full, with ${Math.round(roomBytes / 1024)} KB left, so writes fail: free some space`);
  } else if (roomBytes < LOW_SPACE_BYTES) {
    notes.warning(
      `its disk has ${Math.round(roomBytes / 1024 ** 2)} MB left; writes fail when it is full: free some space`,
    );
  }
}

function noteServer(notes: Notes, { product, version, topology, indexFaults }: ServerState): void {
  notes.ok(`${product} ${version} answers (${topology})`);
  if (topology === 'standalone server') {
    notes.warning('a standalone server loses data with its disk: use a replica set');
  }
  for (const fault of indexFaults) notes.fault(indexFaultText(fault));
}

const indexFaultText = (indexFault: string) =>
  `${indexFault}. No leads are created until it is fixed; a running core creates missing indexes as soon as it can`;
