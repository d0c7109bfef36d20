import { syncBuiltinESMExports } from 'node:module';
import { replaceRandomSources } from './chance.ts';
import { replaceClocks } from './clock.ts';
import { replaceNetwork } from './network.ts';
import { replaceThreads } from './threads.ts';

/**
 * Replaces what a process hears of the world: time, chance, network and threads. Code that is imported later, unmodified,
 * runs on the machine that is turned on. It cannot be undone: only a process of its own may do it.
 */
export function replaceNode(): void {
  replaceClocks();
  replaceRandomSources();
  replaceNetwork();
  replaceThreads();
  // Modules that import names of built-in modules see the replaced ones.
  syncBuiltinESMExports();
}
