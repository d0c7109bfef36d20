import { realpathSync, statSync } from 'node:fs';
import { StoreUnavailable } from '../port/faults.ts';

/** Device and inode of files, by their paths. */
export type Identities = ReadonlyMap<string, string | undefined>;

/**
 * The files of an open database. SQLite goes on writing to files that were replaced or removed, where nobody finds what was
 * acknowledged. So they are compared with the files at their paths: after each commit, and with each check of the store.
 */
export class OpenedFiles {
  readonly identities = new Map<string, string | undefined>();
  readonly #path: string;
  #fault: StoreUnavailable | undefined;

  /** To be created before SQLite opens the file. */
  constructor(path: string) {
    this.#path = path;
    this.#add(path);
  }

  /** Adds the log and its index once SQLite has opened them, beside the file to which a symbolic link leads. */
  addLog(): void {
    const path = realpathSync(this.#path);
    for (const end of ['-wal', '-shm']) this.#add(path + end);
  }

  #add(path: string): void {
    this.identities.set(path, identityOf(path));
  }

  /**
   * Compares the files. Once one of them has gone they stay gone, because others may have written to a file in its place.
   *
   * @param onGone called once, when that is found
   * @throws StoreUnavailable when a file was replaced or removed; another Error when a path cannot be looked at
   */
  check(onGone: () => void = () => {}): void {
    const path = this.#fault ? undefined : replacedPath(this.identities);
    if (path !== undefined) {
      this.#fault = new StoreUnavailable(
        `${path} was replaced or removed while the database was open, so nothing is read or written any more: put the right database file in its place, and restart this process`,
      );
      onGone();
    }
    this.requireFound();
  }

  /** @throws StoreUnavailable once a check has found a file to be gone */
  requireFound(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }
}

/** Returns a path at which another file or none is now. @throws Error when a path cannot be looked at */
export function replacedPath(identities: Identities): string | undefined {
  for (const [path, identity] of identities) if (identityOf(path) !== identity) return path;
  return undefined;
}

/** Undefined: no file has this name; one that is mounted by itself has lost its last name. */
function identityOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && found.nlink > 0n ? `${found.dev}:${found.ino}` : undefined;
}
