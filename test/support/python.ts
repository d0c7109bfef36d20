import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './processes.ts';

/** The version of the release, and so of the client. */
const VERSION: string = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version;

const execute = promisify(execFile);

/** The oldest Python that the client supports, where it is installed. */
const python = spawnSync('bash', ['-c', 'python3.10 --version']).status === 0 ? 'python3.10' : 'python3';

/** A command that succeeds where Python can create virtual environments. */
export const PYTHON_TOOL = `${python} -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))'`;

/**
 * Creates a virtual environment with the client, built as a package, and more packages.
 *
 * @returns the folder of its programs
 */
export async function pythonWithClient(folder: string, ...packages: string[]): Promise<string> {
  const bin = join(folder, 'env/bin');
  const pip = ['-m', 'pip', '--quiet', '--disable-pip-version-check'];
  const run = (...args: string[]) => execute(join(bin, 'python'), [...pip, ...args], { cwd: folder });
  await execute(python, ['-m', 'venv', 'env'], { cwd: folder });
  await run('wheel', '--no-deps', '--wheel-dir', '.', join(ROOT, 'sdk/python'));
  await run('install', `./lead_intake-${VERSION}-py3-none-any.whl`, ...packages);
  return bin;
}
