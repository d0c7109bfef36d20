import type { PlantedBug } from './planted-bug.ts';

const SERVING_SUITE = 'test/e2e/http/packages.test.ts';
const BUILDING_SUITE = 'test/packages.test.ts';
const PACKAGES = 'gateway/docs/packages.ts';
const SOURCES = 'sdk/packages/sources.ts';

/** Faults of the packages that a deployment hands out. */
export const PACKAGE_BUGS: readonly PlantedBug[] = [
  {
    name: 'a package is sent again to who has it',
    inSoak: true,
    suite: SERVING_SUITE,
    caughtBy: 'is not sent again to who has it: the tag, weakened by a proxy',
    patches: [{ file: 'gateway/operations/packages.ts', find: 'known.includes(etag)', put: 'known === etag' }],
  },
  {
    name: 'a part of an archive is served',
    inSoak: true,
    suite: SERVING_SUITE,
    caughtBy: 'prevents the start of a gateway when it has a part of a file',
    patches: [{ file: PACKAGES, find: 'size !== bytes', put: 'false' }],
  },
  {
    name: 'a kept release names a file outside of its folder',
    suite: SERVING_SUITE,
    caughtBy: 'cannot name a file elsewhere: "../secret"',
    patches: [{ file: PACKAGES, find: '!/^\\w[\\w.+-]*$/.test(name)', put: 'false' }],
  },
  {
    name: 'pages install packages that were not built',
    inSoak: true,
    suite: SERVING_SUITE,
    caughtBy: 'serves them without those of this release, and the pages say that these were not built',
    patches: [{ file: PACKAGES, find: "present ? '' : NOT_BUILT", put: "''" }],
  },
  {
    name: 'an archive has the time of its build',
    inSoak: true,
    suite: BUILDING_SUITE,
    caughtBy: 'are equal byte for byte when they are built again, at another time, in another zone, language and mask',
    patches: [{ file: 'sdk/packages/archives.ts', find: 'mtime: 0', put: 'mtime: Date.now()' }],
  },
  {
    name: 'the record of a wheel has another form of checksums',
    inSoak: true,
    suite: BUILDING_SUITE,
    caughtBy: 'of Python have a record of each file, which installers compare',
    patches: [{ file: SOURCES, find: "$SUM.digest('base64url')", put: "$SUM.digest('hex')" }],
  },
  {
    name: 'the README of the package for npm has the name of this repository',
    suite: BUILDING_SUITE,
    caughtBy: 'are the one place of their names, licence, author and homepage',
    patches: [{ file: SOURCES, find: '$TEXT.replaceAll(name, settings.npm)', put: '$TEXT' }],
  },
];
