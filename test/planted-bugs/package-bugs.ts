import type { PlantedBug } from './planted-bug.ts';

const SERVING_SUITE = 'test/e2e/http/packages.test.ts';
const BUILDING_SUITE = 'test/packages.test.ts';
const PACKAGES = 'gateway/docs/packages.ts';
const SOURCES = 'sdk/packages/sources.ts';

/** Faults of the packages that a deployment hands out. */
export const PACKAGE_BUGS: readonly PlantedBug[] = [
  {
    name: 'a kept release names a file outside of its folder',
    suite: SERVING_SUITE,
    caughtBy: 'cannot name a file elsewhere: "../secret"',
    patches: [{ file: PACKAGES, find: '!/^\\w[\\w.+-]*$/.test(name)', put: 'false' }],
  },
  {
    name: 'the README of the package for npm has the name of this repository',
    suite: BUILDING_SUITE,
    caughtBy: 'are the one place of their names, licence, author and homepage',
    patches: [{ file: SOURCES, find: '$TEXT.replaceAll(name, settings.npm)', put: '$TEXT' }],
  },
];
