import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll } from 'vitest';
import { ROOT } from '../tools/processes.ts';
import { describeIf } from '../tools/servers.ts';

const execute = promisify(execFile);

/** The timeout for installing a release; milliseconds. */
const INSTALL_TIMEOUT_MS = 900_000;

const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8');

/** The first heading of CHANGELOG.md: `Unreleased`, or this release. */
const [, current] = /^## (\S+)/m.exec(changelog) ?? [];

/** The version of the previous release and the commit that it was built from, as listed in CHANGELOG.md. */
const [, version = '', commit = ''] =
  [...changelog.matchAll(/^## (\d+\.\d+\.\d+) - [\d-]+\n\nCommit `([0-9a-f]{40})`\.$/gm)].find(
    ([, each]) => each !== current,
  ) ?? [];

/**
 * Defines a suite that runs the previous release from its commit, with its own packages.
 *
 * @param body gets the folder of the release, which exists once tests run
 */
export function describeWithLastRelease(name: string, body: (folder: string) => void): void {
  const isThere = spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: ROOT }).status === 0;
  const folder = join(ROOT, '.generated/releases', commit);
  describeIf(isThere, name, `clone the repository with its history, which has release ${version}`, () => {
    beforeAll(() => install(commit, folder), INSTALL_TIMEOUT_MS);
    body(folder);
  });
}

/** Extracts a commit's files and installs its packages, unless an earlier run has done so. */
async function install(commit: string, folder: string): Promise<void> {
  if (existsSync(folder)) return;
  const incomplete = `${folder}.${process.pid}`;
  await mkdir(incomplete, { recursive: true });
  try {
    const archive = join(incomplete, 'archive.tar');
    await execute('git', ['archive', '--output', archive, commit], { cwd: ROOT });
    await execute('tar', ['-xf', archive], { cwd: incomplete });
    await rm(archive);
    // The last two options suppress advice.
    await execute('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: incomplete });
    await rename(incomplete, folder).catch((error: unknown) => {
      // Another suite may have been faster.
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(incomplete, { recursive: true, force: true });
  }
}
