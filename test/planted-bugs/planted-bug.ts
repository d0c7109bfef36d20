import { join } from 'node:path';
import type { Plugin } from 'vitest/config';
import { type Patch, patched } from './patch.ts';

const ROOT = join(import.meta.dirname, '../..');

/** A faulty variant of the product, and the test that must fail on it. */
export interface PlantedBug {
  /** States the fault. */
  readonly name: string;
  readonly patches: readonly Patch[];
  /** The smallest suite that has the test, relative to the root. */
  readonly suite: string;
  /** The title of the test, without those of its suites. */
  readonly caughtBy: string;
  /** Whether the fault is visible through the public API, so that the conformance suite must catch it, too. */
  readonly isSeenOutside?: true;
}

/** The results of the tests on one variant, by title, without the titles of their suites. */
export interface VariantReport {
  readonly variant: string;
  /** The tests that failed by an assertion. */
  readonly caught: readonly string[];
  /** All other errors. */
  readonly errors: readonly string[];
}

/**
 * Returns a plugin that makes Vitest load the product with the faults. All variants share a cache of the files without a
 * fault, because transforming those again would take most of the time.
 */
export function plant(patches: readonly Patch[]): Plugin {
  const findPatches = (id: string) => patches.filter(({ file }) => id.split('?')[0] === join(ROOT, file));
  return {
    name: 'planted-bug',
    enforce: 'pre',
    api: { vitest: { ignoreFsModuleCache: true } },
    configureVitest({ defineCacheKeyGenerator }) {
      defineCacheKeyGenerator(({ id }) => JSON.stringify(findPatches(id)));
    },
    transform(code, id) {
      const ofFile = findPatches(id);
      return ofFile.length === 0 ? undefined : ofFile.reduce(patched, code);
    },
  };
}
