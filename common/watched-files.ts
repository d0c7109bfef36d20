import { readFile, stat } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { errorSummary } from './error-summary.ts';
import type { SettingFile } from './settings.ts';

/** The time between two checks of the files; milliseconds. */
const CHECK_INTERVAL_MS = 1000;

/** The watched kinds of files, and whether their current contents are unusable. */
export const unusableFiles = new Map<string, boolean>();

export interface WatchedFiles {
  /** The name of their contents in the log: `certificates`. */
  readonly what: string;
  /** The files with the contents that are in use at the start; undefined for a setting that names none. */
  readonly files: readonly (SettingFile | undefined)[];
  /**
   * Applies the contents of the files, in their order. Returns further fields for the log line.
   *
   * @throws Error that says what is wrong without revealing secrets; the previous contents stay in use
   */
  readonly reload: (...contents: string[]) => object;
}

/**
 * Reads files every second, and reloads them once two consecutive reads return the same new contents: several files are not replaced in one
 * step. Compares contents, because a file watcher misses a changed symbolic link above the file. Kubernetes updates secrets that way. Logs
 * a fault once.
 *
 * @returns stops watching
 */
export function watchFiles({ what, files: named, reload }: WatchedFiles, log: Logger): () => void {
  const files = named.filter((file) => file !== undefined);
  if (files.length === 0) return () => {};
  const paths = files.map(({ path }) => path);
  let inUse: readonly string[] = files.map(({ contents }) => contents.reveal());
  let found = inUse;
  let loggedFault: string | undefined;
  unusableFiles.set(what, false);

  const check = async () => {
    try {
      const before = found;
      found = await Promise.all(paths.map(readContents));
      if (!isDeepStrictEqual(found, before)) return;
      if (!isDeepStrictEqual(found, inUse)) {
        const fields = reload(...found);
        inUse = found;
        log.info({ files: paths, ...fields }, `${what} reloaded`);
      } else if (loggedFault !== undefined) {
        log.info({ files: paths }, `${what} as before: their files can be used again`);
      }
      loggedFault = undefined;
      unusableFiles.set(what, false);
    } catch (error) {
      const fault = errorSummary(error);
      unusableFiles.set(what, true);
      if (fault !== loggedFault) log.warn({ files: paths, fault }, `${what} not reloaded: their files cannot be used`);
      loggedFault = fault;
    }
  };

  let isStopped = false;
  let timer: NodeJS.Timeout;
  const schedule = () => {
    timer = setTimeout(() => check().finally(() => isStopped || schedule()), CHECK_INTERVAL_MS).unref();
  };
  schedule();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}

async function readContents(path: string): Promise<string> {
  try {
    // Reading a pipe would block.
    if (!(await stat(path)).isFile()) throw Object.assign(new Error(), { code: 'not a regular file' });
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new Error(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}
