/**
 * Before `npm start`: builds the packages unless those that are there are newer than all that they are made of. Without the packages
 * of development nothing can be built; the service starts nevertheless, and its `/docs` says that there are none.
 */
import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGES_FOLDER } from '../../common/package-settings.ts';
import packageJson from '../../package.json' with { type: 'json' };

const SOURCES = [
  'package-lock.json',
  'package.json',
  'common/package-settings.ts',
  '{sdk,proto,examples/recipes}/**/*.*',
];

try {
  if (areOutdated()) {
    console.log('Building the packages of the clients, which /docs hands out.');
    const { buildPackages } = await import('./build-packages.ts');
    buildPackages(PACKAGES_FOLDER);
  }
} catch (error) {
  const reason = (error as Error).message.split('\n', 1);
  console.error(`building the packages of the clients failed: ${reason}; npm run build:packages tries again`);
}

function areOutdated(): boolean {
  const built = statSync(join(PACKAGES_FOLDER, `release-${packageJson.version}.json`), { throwIfNoEntry: false });
  if (!built) return true;
  const root = join(import.meta.dirname, '../..');
  const exclude = (name: string) => /^(?:node_modules|dist|build|test|__pycache__)$/.test(name);
  const sources = globSync(SOURCES, { cwd: root, exclude });
  return sources.some((source) => statSync(join(root, source)).mtimeMs > built.mtimeMs);
}
