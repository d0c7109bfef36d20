import { join } from 'node:path';
import type { Plugin } from 'vitest/config';
import { type Patch, patched } from './patch.ts';

const ROOT = join(import.meta.dirname, '../..');

/** A faulty variant of the product, and the test that must not let it pass. */
export interface PlantedBug {
  /** What the variant does wrong. */
  readonly name: string;
  readonly patches: readonly Patch[];
  /** The suite, from the root: the smallest that has the test. */
  readonly suite: string;
  /** The test's own title. */
  readonly caughtBy: string;
  /** Whether who only uses the public API can see it: then the conformance kit must not let it pass either. */
  readonly isSeenOutside?: true;
  /** Tried when PLANTED_BUGS asks for all: what it tells, a variant that is tried every time tells as well. */
  readonly inSoak?: true;
}

/** What became of the tests under one variant; the titles are the tests' own. */
export interface VariantReport {
  readonly variant: string;
  readonly passed: readonly string[];
  /** Those in which an expectation was not met. */
  readonly caught: readonly string[];
  /** Whatever else went wrong. */
  readonly errors: readonly string[];
}

/**
 * Has a test runner load the product with the faults in it. What it keeps of files without a fault, it keeps for all variants: to
 * read them anew for each would cost most of the time.
 */
export function plant(patches: readonly Patch[]): Plugin {
  const patchesOf = (id: string) => patches.filter(({ file }) => id.split('?')[0] === join(ROOT, file));
  return {
    name: 'planted-bug',
    enforce: 'pre',
    api: { vitest: { ignoreFsModuleCache: true } },
    configureVitest({ defineCacheKeyGenerator }) {
      defineCacheKeyGenerator(({ id }) => JSON.stringify(patchesOf(id)));
    },
    transform(code, id) {
      const ofFile = patchesOf(id);
      return ofFile.length === 0 ? undefined : ofFile.reduce(patched, code);
    },
  };
}
