import { readFile, stat } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { errorSummary } from './error-summary.ts';
import type { SettingFile } from './settings.ts';

/** How long after a look at the files the next one begins; milliseconds. */
const LOOK_MS = 1000;

/** Files that are read again when they change, and what is done then. */
export interface WatchedFiles {
  /** What they are, as the log calls it: `certificates`. */
  readonly what: string;
  /** With what they had when the process started, which is in use. */
  readonly files: readonly SettingFile[];
  /**
   * Puts to use what the files have now, in their order. Gives what the log tells of it besides.
   *
   * @throws Error that says what is wrong with it, and nothing secret: then the former stays in use, and it is tried again
   */
  readonly take: (...contents: string[]) => object;
}

/**
 * Looks every second whether files have other contents, and has them taken once two looks have found the same: they are written
 * one after the other, and perhaps not each of them at once. Contents are compared, because a watch on a file sees nothing of
 * a link above it that leads elsewhere, which is how Kubernetes changes secrets. Why they cannot be taken is told once.
 *
 * @returns ends that
 */
export function watchFiles(followed: WatchedFiles, log: Logger): () => void {
  const follower = new Follower(followed, log);
  let isOver = followed.files.length === 0;
  let timer: NodeJS.Timeout | undefined;
  const wait = () => {
    if (isOver) return;
    timer = setTimeout(() => follower.look().finally(wait), LOOK_MS).unref();
  };
  wait();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

class Follower {
  readonly #followed: WatchedFiles;
  readonly #log: Logger;
  readonly #paths: readonly string[];
  /** What is in use, and what the last look has found. */
  #taken: readonly string[];
  #found: readonly string[];
  /** What was told to be wrong with the files as they are. */
  #fault: string | undefined;

  constructor(followed: WatchedFiles, log: Logger) {
    this.#followed = followed;
    this.#log = log;
    this.#paths = followed.files.map(({ path }) => path);
    this.#taken = followed.files.map(({ contents }) => contents.reveal());
    this.#found = this.#taken;
  }

  async look(): Promise<void> {
    try {
      const before = this.#found;
      this.#found = await Promise.all(this.#paths.map(contentsOf));
      if (!isDeepStrictEqual(this.#found, before)) return;
      if (!isDeepStrictEqual(this.#found, this.#taken)) this.#take(this.#found);
      this.#fault = undefined;
    } catch (error) {
      this.#tell(errorSummary(error));
    }
  }

  #take(contents: readonly string[]): void {
    const { what, take } = this.#followed;
    const told = take(...contents);
    this.#taken = contents;
    this.#log.info({ files: this.#paths, ...told }, `${what} are in use as their files have them now`);
  }

  #tell(fault: string): void {
    if (fault === this.#fault) return;
    this.#fault = fault;
    this.#log.warn(
      { files: this.#paths, fault },
      `${this.#followed.what} stay as they were: their files cannot be used`,
    );
  }
}

async function contentsOf(path: string): Promise<string> {
  try {
    // A pipe would have whoever reads it wait, and nobody would know.
    if (!(await stat(path)).isFile()) throw Object.assign(new Error(), { code: 'it is no regular file' });
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new Error(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}
