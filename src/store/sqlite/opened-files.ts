import { realpathSync, statSync } from 'node:fs';
import { StoreUnavailable } from '../port/faults.ts';

/** The device and inode of files, by path. */
export type Identities = ReadonlyMap<string, string | undefined>;

export type OpenedFiles = ReturnType<typeof openedFiles>;

/**
 * The files of an open database. If they are replaced or removed, SQLite keeps writing to the old ones, and
 * acknowledged data is lost. Each commit and each check of the store therefore compares them with the files at their
 * paths. Must be called before SQLite opens the file.
 */
export function openedFiles(path: string) {
  const identities = new Map([[path, readIdentity(path)]]);
  let fault: StoreUnavailable | undefined;

  /** @throws StoreUnavailable once a check has found a file gone */
  function requireFound(): void {
    if (fault !== undefined) throw fault;
  }

  return {
    identities,
    requireFound,

    /** Adds the log and its index once SQLite has opened them. They are beside the target of a symbolic link. */
    addLog(): void {
      const found = realpathSync(path);
      for (const end of ['-wal', '-shm']) identities.set(found + end, readIdentity(found + end));
    },

    /**
     * Compares the files. Once a file is gone it stays so, because others may have written to a file in its place.
     *
     * @param onGone called once, when a file is found gone
     * @throws StoreUnavailable when a file was replaced or removed; another Error when a path cannot be examined
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

/** Returns a path with another file or none. @throws Error when a path cannot be examined */
export function replacedPath(identities: Identities): string | undefined {
  for (const [path, identity] of identities) if (readIdentity(path) !== identity) return path;
  return undefined;
}

/** Returns undefined if no file has this name. A file that is itself a mount point stays visible after its last link is removed. */
function readIdentity(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && found.nlink > 0n ? `${found.dev}:${found.ino}` : undefined;
}
