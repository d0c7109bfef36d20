import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

/** Something that `npm start` builds before it starts the service. */
interface Built {
  /** Its name in a sentence, and what the reader should know about it. */
  readonly what: string;
  readonly note: string;
  /** The built file whose age stands for the age of the whole build. */
  readonly file: string;
  /** Glob patterns within the repository. Folders that are installed, built or only tested are skipped. */
  readonly sources: readonly string[];
  /** The npm script that also builds it. */
  readonly script: string;
  readonly build: () => Promise<unknown>;
}

/** Builds something that is missing or older than its sources. Reports a failure in one sentence: the service can start without it. */
export async function buildIfOutdated({ what, note, file, sources, script, build }: Built): Promise<void> {
  try {
    if (!isOutdated(file, sources)) return;
    console.log(`Building ${what}, ${note}.`);
    await build();
  } catch (error) {
    const reason = (error as Error).message.split('\n', 1);
    console.error(`building ${what} failed: ${reason}; npm run ${script} tries again`);
  }
}

function isOutdated(file: string, sources: readonly string[]): boolean {
  const builtAt = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const exclude = (name: string) => /^(?:node_modules|dist|build|site|test|__pycache__)$/.test(name);
  return globSync(sources, { cwd: ROOT, exclude }).some((source) => statSync(join(ROOT, source)).mtimeMs > builtAt);
}
