/**
 * Before `npm start`: builds the pages of `/docs` if any of their sources is newer. Without development packages nothing can be built. The
 * service still starts, and `/docs` says what to do.
 */
import { join } from 'node:path';
import { buildIfOutdated } from '../../../common/build-if-outdated.ts';
import { SITE_FOLDER } from '../site.ts';

await buildIfOutdated({
  what: 'the pages of /docs',
  note: 'which takes some ten seconds',
  file: join(SITE_FOLDER, 'hashmap.json'),
  sources: [
    'package-lock.json',
    'CHANGELOG.md',
    'packages/release-*.json',
    'common/rules/*.ts',
    'gateway/{problems,routes/schemas}.ts',
    'gateway/docs/{,.vitepress/}**/*.*',
  ],
  script: 'build:docs',
  build: async () => (await import('./build-site.ts')).buildSite(SITE_FOLDER),
});
