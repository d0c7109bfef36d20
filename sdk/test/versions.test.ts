import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../test/tools/processes.ts';

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const { version } = JSON.parse(read('package.json')) as { version: string };

test.each([
  ['sdk/package.json', /"version": "(.*)"/],
  ['sdk/php/composer.json', /"version": "(.*)"/],
  ['sdk/python/pyproject.toml', /^version = "(.*)"/m],
  ['Dockerfile', /org\.opencontainers\.image\.version="(.*?)"/],
  ['sdk/outcomes.ts', /'lead-intake-node\/(.*)'/],
  ['sdk/php/src/Internal/Outcomes.php', /'lead-intake-php\/(.*)'/],
  ['sdk/python/src/lead_intake/_outcomes.py', /"lead-intake-python\/(.*)"/],
])('%s has the version of the release', (file, pattern) => {
  expect(pattern.exec(read(file))?.[1]).toBe(version);
});
