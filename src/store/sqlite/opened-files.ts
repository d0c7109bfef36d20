import { realpathSync, statSync } from 'node:fs';
import { StoreUnavailable } from '../port/faults.ts';

/** Device and inode of files, by their paths. */
export type Identities = ReadonlyMap<string, string | undefined>;

export type OpenedFiles = ReturnType<typeof openedFiles>;

/**
 * The files of an open database. SQLite goes on writing to files that were replaced or removed, where nobody finds what was
 * acknowledged. So they are compared with the files at their paths: after each commit, and with each check of the store.
 * To be called before SQLite opens the file.
 */
export function openedFiles(path: string) {
  const identities = new Map([[path, readIdentity(path)]]);
  let fault: StoreUnavailable | undefined;

  /** @throws StoreUnavailable once a check has found a file to be gone */
  function requireFound(): void {
    if (fault !== undefined) throw fault;
  }

  return {
    identities,
    requireFound,

    /** Adds the log and its index once SQLite has opened them, beside the file to which a symbolic link leads. */
    addLog(): void {
      const found = realpathSync(path);
      for (const end of ['-wal', '-shm']) identities.set(found + end, readIdentity(found + end));
    },

    /**
     * Compares the files. Once one of them has gone they stay gone, because others may have written to a file in its place.
     *
     * @param onGone called once, when that is found
     * @throws StoreUnavailable when a file was replaced or removed; another Error when a path cannot be looked at
     */
    check(onGone: () => void = () => {}): void {
      const gone = fault ? undefined : replacedPath(identities);
      if (gone !== undefined) {
        fault = new StoreUnavailable(
          `${gone} was replaced or removed while the database was open, so nothing is read or written any more: put the right database file in its place, and restart this process`,
        );
        onGone();
      }
      requireFound();
    },
  };
}

/** Returns a path at which another file or none is now. @throws Error when a path cannot be looked at */
export function replacedPath(identities: Identities): string | undefined {
  for (const [path, identity] of identities) if (readIdentity(path) !== identity) return path;
  return undefined;
}

/** Undefined: no file has this name; one that is mounted by itself has lost its last name. */
function readIdentity(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && found.nlink > 0n ? `${found.dev}:${found.ino}` : undefined;
}
