import { readFile, stat } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { errorSummary } from './error-summary.ts';
import type { SettingFile } from './settings.ts';

/** The time between two checks of the files; milliseconds. */
const CHECK_INTERVAL_MS = 1000;

/** Whether the files of each kind that are watched cannot be used as they are now; by what they contain. */
const unusable = new Map<string, boolean>();

/** The kinds of files that are watched, and whether they cannot be used as they are now. */
export const unusableFiles: ReadonlyMap<string, boolean> = unusable;

/** Files to watch, and what to do when they change. */
export interface WatchedFiles {
  /** What they contain, for the log: `certificates`. */
  readonly what: string;
  /** With their contents at the start of the process, which are in use. */
  readonly files: readonly SettingFile[];
  /**
   * Puts the contents of the files, in their order, to use. Returns further fields for the log line.
   *
   * @throws Error that says what is wrong without revealing secrets; the previous contents stay in use
   */
  readonly reload: (...contents: string[]) => object;
}

/**
 * Reads files every second and reloads them once two consecutive reads return the same new contents, because several
 * files are not replaced in one step. It compares contents, because a file watcher misses a changed symbolic link above
 * the file, which is how Kubernetes updates secrets. A fault is logged once.
 *
 * @returns stops watching
 */
export function watchFiles(watched: WatchedFiles, log: Logger): () => void {
  const watcher = new Watcher(watched, log);
  let isStopped = watched.files.length === 0;
  let timer: NodeJS.Timeout | undefined;
  const schedule = () => {
    if (isStopped) return;
    timer = setTimeout(() => watcher.check().finally(schedule), CHECK_INTERVAL_MS).unref();
  };
  schedule();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}

class Watcher {
  readonly #watched: WatchedFiles;
  readonly #log: Logger;
  readonly #paths: readonly string[];
  #inUse: readonly string[];
  /** The contents at the last check. */
  #found: readonly string[];
  #loggedFault: string | undefined;

  constructor(watched: WatchedFiles, log: Logger) {
    this.#watched = watched;
    this.#log = log;
    this.#paths = watched.files.map(({ path }) => path);
    this.#inUse = watched.files.map(({ contents }) => contents.reveal());
    this.#found = this.#inUse;
    if (watched.files.length > 0) unusable.set(watched.what, false);
  }

  async check(): Promise<void> {
    try {
      const before = this.#found;
      this.#found = await Promise.all(this.#paths.map(contentsOf));
      if (!isDeepStrictEqual(this.#found, before)) return;
      if (!isDeepStrictEqual(this.#found, this.#inUse)) this.#reload(this.#found);
      this.#loggedFault = undefined;
      unusable.set(this.#watched.what, false);
    } catch (error) {
      this.#logFault(errorSummary(error));
    }
  }

  #reload(contents: readonly string[]): void {
    const { what, reload } = this.#watched;
    const fields = reload(...contents);
    this.#inUse = contents;
    this.#log.info({ files: this.#paths, ...fields }, `${what} reloaded`);
  }

  #logFault(fault: string): void {
    unusable.set(this.#watched.what, true);
    if (fault === this.#loggedFault) return;
    this.#loggedFault = fault;
    this.#log.warn({ files: this.#paths, fault }, `${this.#watched.what} not reloaded: their files cannot be used`);
  }
}

async function contentsOf(path: string): Promise<string> {
  try {
    // Reading a pipe would block.
    if (!(await stat(path)).isFile()) throw Object.assign(new Error(), { code: 'not a regular file' });
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new Error(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}
