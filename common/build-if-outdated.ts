import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

/**
 * Whether what was built is missing, or older than one of its sources.
 *
 * @param built the path of a file
 * @param sources patterns of paths within the repository; folders of what is installed, built or tested do not count
 */
export function isOutdated(built: string, sources: readonly string[]): boolean {
  const builtAt = statSync(built, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const exclude = (name: string) => /^(?:node_modules|dist|build|site|test|__pycache__)$/.test(name);
  return globSync(sources, { cwd: ROOT, exclude }).some((source) => statSync(join(ROOT, source)).mtimeMs > builtAt);
}
