import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll } from 'vitest';
import { ROOT } from './processes.ts';
import { describeIf } from './servers.ts';

const execute = promisify(execFile);

/** How long a release may take to be fetched and installed; milliseconds. */
const INSTALLED_WITHIN_MS = 300_000;

/** A release, as CHANGELOG names it. */
export interface Release {
  readonly version: string;
  /** The commit that it was made from. */
  readonly commit: string;
}

/** All releases so far, the last one first. */
export const RELEASES: readonly Release[] = [
  ...readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').matchAll(
    /^## (\d+\.\d+\.\d+) - [\d-]+\n\nCommit `([0-9a-f]{40})`\.$/gm,
  ),
].map(([, version = '', commit = '']) => ({ version, commit }));

/**
 * A suite that runs an earlier release from its own commit, with its own packages.
 *
 * @param body gets the folder of that release, which is there once tests run
 */
export function describeWithRelease({ version, commit }: Release, name: string, body: (folder: string) => void): void {
  const isThere = spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: ROOT }).status === 0;
  const folder = join(ROOT, '.generated/releases', commit);
  describeIf(isThere, name, `clone the repository with its history, which has release ${version}`, () => {
    beforeAll(() => install(commit, folder), INSTALLED_WITHIN_MS);
    body(folder);
  });
}

/** Takes a commit's files and installs its packages, unless that was done before; what is half done is done anew. */
async function install(commit: string, folder: string): Promise<void> {
  if (existsSync(folder)) return;
  const beginning = `${folder}.${process.pid}`;
  await mkdir(beginning, { recursive: true });
  try {
    const archive = join(beginning, 'archive.tar');
    await execute('git', ['archive', '--output', archive, commit], { cwd: ROOT });
    await execute('tar', ['-xf', archive], { cwd: beginning });
    await rm(archive);
    // What its own `npm ci` prints for people is of no interest here.
    await execute('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: beginning });
    await rename(beginning, folder);
  } finally {
    await rm(beginning, { recursive: true, force: true });
  }
}
