import { syncBuiltinESMExports } from 'node:module';
import { replaceRandomSources } from './chance.ts';
import { replaceClocks } from './clock.ts';
import { replaceNetwork } from './network.ts';
import { replaceThreads } from './threads.ts';

/**
 * Replaces a process's view of the world: time, chance, network and threads. Unmodified code that is imported later runs on
 * the current machine. This cannot be undone, so only a dedicated process may do it.
 */
export function replaceNode(): void {
  replaceClocks();
  replaceRandomSources();
  replaceNetwork();
  replaceThreads();
  // Makes named imports of built-in modules see the replacements.
  syncBuiltinESMExports();
}
