/**
 * Before `npm start`: builds the pages of `/docs` unless those that are there are newer than all that they are made of. Without the
 * packages of development nothing can be built; the service starts nevertheless, and `/docs` says what to do.
 */
import { join } from 'node:path';
import { isOutdated } from '../../../common/is-outdated.ts';
import { SITE_FOLDER } from '../site.ts';

const SOURCES = [
  'package-lock.json',
  'CHANGELOG.md',
  'packages/release-*.json',
  'common/rules/*.ts',
  'gateway/{problems,routes/schemas}.ts',
  'gateway/docs/{,.vitepress/}**/*.*',
];

try {
  if (isOutdated(join(SITE_FOLDER, 'hashmap.json'), SOURCES)) {
    console.log('Building the pages of /docs, which takes some ten seconds.');
    const { buildSite } = await import('./build-site.ts');
    await buildSite(SITE_FOLDER);
  }
} catch (error) {
  const reason = (error as Error).message.split('\n', 1);
  console.error(`building the pages of /docs failed: ${reason}; npm run build:docs tries again`);
}
