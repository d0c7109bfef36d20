/**
 * Builds the packages before `npm start`, unless they are newer than all of their sources. Without the development dependencies,
 * nothing can be built; the service starts nevertheless, and its `/docs` says that there are no packages.
 */
import { join } from 'node:path';
import { buildIfOutdated } from '../../common/build-if-outdated.ts';
import { PACKAGES_FOLDER } from '../../common/package-settings.ts';
import packageJson from '../../package.json' with { type: 'json' };

await buildIfOutdated({
  what: 'the packages of the clients',
  note: 'which /docs hands out',
  file: join(PACKAGES_FOLDER, `release-${packageJson.version}.json`),
  sources: ['package-lock.json', 'package.json', 'common/package-settings.ts', '{sdk,proto,examples/recipes}/**/*.*'],
  script: 'build:packages',
  build: async () => (await import('./build-packages.ts')).buildPackages(PACKAGES_FOLDER),
});
