/**
 * Before `npm start`: builds the packages unless those that are there are newer than all that they are made of. Without the packages
 * of development nothing can be built; the service starts nevertheless, and its `/docs` says that there are none.
 */
import { join } from 'node:path';
import { isOutdated } from '../../common/is-outdated.ts';
import { PACKAGES_FOLDER } from '../../common/package-settings.ts';
import packageJson from '../../package.json' with { type: 'json' };

const SOURCES = [
  'package-lock.json',
  'package.json',
  'common/package-settings.ts',
  '{sdk,proto,examples/recipes}/**/*.*',
];

try {
  if (isOutdated(join(PACKAGES_FOLDER, `release-${packageJson.version}.json`), SOURCES)) {
    console.log('Building the packages of the clients, which /docs hands out.');
    const { buildPackages } = await import('./build-packages.ts');
    buildPackages(PACKAGES_FOLDER);
  }
} catch (error) {
  const reason = (error as Error).message.split('\n', 1);
  console.error(`building the packages of the clients failed: ${reason}; npm run build:packages tries again`);
}
