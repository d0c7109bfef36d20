import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../../../test/tools/processes.ts';

/** The folder in which `.ci/install-runtimes` installs JavaScript runtimes. */
const RUNTIMES = '/usr/local/lib/javascript-runtimes/node_modules';

/** The programs of these runtimes. */
export const RUNTIME = {
  node20: `${RUNTIMES}/node20/bin/node`,
  node22: `${RUNTIMES}/node22/bin/node`,
  node24: `${RUNTIMES}/node24/bin/node`,
  bun: `${RUNTIMES}/.bin/bun`,
  deno: `${RUNTIMES}/.bin/deno`,
  workerd: `${RUNTIMES}/.bin/workerd`,
};

/** The compiler of the oldest TypeScript that reads the types of the client. */
export const OLDEST_TSC = `${RUNTIMES}/typescript50/bin/tsc`;

/** Compiles the TypeScript client and its drivers for runtimes that accept no types, and returns the folder. */
export async function compiledClient(scratch: string): Promise<string> {
  const folder = mkdtempSync(join(scratch, 'compiled-'));
  const drivers = ['typescript', 'worker', 'workerd'].map((name) => `sdk/conformance/drivers/${name}.ts`);
  const options = ['--ignoreConfig', '--module', 'nodenext', '--target', 'es2022', '--skipLibCheck', '--types', 'node'];
  const rewrite = ['--rewriteRelativeImportExtensions', '--outDir', folder, '--rootDir', 'sdk'];
  await promisify(execFile)('node_modules/.bin/tsc', [...options, ...rewrite, ...drivers], { cwd: ROOT });
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  return folder;
}
