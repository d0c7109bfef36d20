import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './processes.ts';

/** The version of the release, and so of the client. */
const VERSION: string = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version;

const execute = promisify(execFile);

/** The oldest Python that the client supports, where it is installed. */
const python = spawnSync('bash', ['-c', 'python3.10 --version']).status === 0 ? 'python3.10' : 'python3';

/** A command that succeeds where Python can create virtual environments. */
export const PYTHON_TOOL = `flock --version && ${python} -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))'`;

/** What tests of the client need beside it. */
const PACKAGES = [
  'SQLAlchemy==2.1.9',
  'psycopg[binary]==3.3.9',
  'PyMySQL==1.2.4',
  'mypy==2.4.1',
  'standardwebhooks==1.1.0',
];

/**
 * Creates a virtual environment with the client, built as a package, and with nothing that it does not need.
 *
 * @returns the folder of its programs
 */
export async function pythonWithClient(folder: string): Promise<string> {
  await execute('bash', ['-ec', INSTALL, folder, python, ROOT, VERSION]);
  return join(folder, 'env/bin');
}

/**
 * Returns the folder of the programs of a virtual environment with the client and what its tests need. All suites and runs share it,
 * because it takes long to make: it is made anew when the client has changed.
 */
export async function pythonForTests(): Promise<string> {
  const sources = globSync('{pyproject.toml,README.md,src/**/*.py}', { cwd: join(ROOT, 'sdk/python') }).toSorted();
  const hash = createHash('sha256').update(PACKAGES.join(' '));
  for (const file of sources) hash.update(file).update(readFileSync(join(ROOT, 'sdk/python', file)));
  const folder = join(ROOT, '.generated/python');
  mkdirSync(folder, { recursive: true });
  const install = `grep -qs "$4" "$0/made" || { rm -rf "$0"/*; ${INSTALL}\necho "$4" > "$0/made"; }`;
  const args = [folder, python, ROOT, VERSION, hash.digest('hex'), ...PACKAGES];
  await execute('flock', [`${folder}.lock`, 'bash', '-ec', install, ...args]);
  return join(folder, 'env/bin');
}

/** Commands for a folder, a Python, the root of the project, a version, anything, and more packages. */
const INSTALL = `
  "$1" -m venv "$0/env"
  pip() { "$0/env/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
  pip wheel --no-deps --wheel-dir "$0" "$2/sdk/python"
  pip install "$0/lead_intake-$3-py3-none-any.whl" "\${@:5}"`;
