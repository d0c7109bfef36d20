import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { archiveNames, PACKAGE_SETTINGS } from '../../../common/package-settings.ts';
import { ROOT } from '../../../test/tools/processes.ts';
import { VERSION } from '../../packages/build-packages.ts';
import { PACKAGERS } from '../../packages/sources.ts';

const execute = promisify(execFile);

/** The oldest Python that the client supports, or the machine's if that is missing. */
const python = spawnSync('bash', ['-c', 'python3.10 --version']).status === 0 ? 'python3.10' : 'python3';

/** A command that succeeds where Python can create virtual environments. */
export const PYTHON_TOOL = `flock --version && ${python} -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))'`;

/** Drivers for the database servers of websites. */
export const DATABASE_DRIVERS = ['psycopg[binary]==3.3.9', 'PyMySQL==1.2.4'];

/** The packages that the client's tests need. */
const PACKAGES = [
  'SQLAlchemy==2.1.9',
  'Flask==3.1.3',
  ...DATABASE_DRIVERS,
  'mypy==2.4.1',
  'standardwebhooks==1.1.0',
  'twine==7.0.0',
];

/**
 * Returns the folder of programs of a virtual environment with the client and the packages of its tests. All suites and runs share it,
 * because it takes long to build. A change of the client rebuilds it.
 */
export async function pythonForTests(): Promise<string> {
  const sources = globSync('{pyproject.toml,README.md,src/**/*.py}', { cwd: join(ROOT, 'sdk/python') }).toSorted();
  const hash = createHash('sha256').update(PACKAGES.join(' '));
  for (const file of sources) hash.update(file).update(readFileSync(join(ROOT, 'sdk/python', file)));
  const folder = join(ROOT, '.generated/python');
  mkdirSync(folder, { recursive: true });
  const install = `grep -qs "$3" "$0/made" || { rm -rf "$0"/*; ${INSTALL}\necho "$3" > "$0/made"; }`;
  const args = [folder, python, wheelIn(dirname(folder)), hash.digest('hex'), ...PACKAGES];
  await execute('flock', [`${folder}.lock`, 'bash', '-ec', install, ...args]);
  return join(folder, 'env/bin');
}

/** Builds the wheel and renames it into place, because other runs may be installing it. Returns its path. */
function wheelIn(folder: string): string {
  const file = join(folder, archiveNames(PACKAGE_SETTINGS, VERSION).python);
  const next = `${file}.${process.pid}`;
  writeFileSync(next, PACKAGERS.python(PACKAGE_SETTINGS, VERSION).archive);
  renameSync(next, file);
  return file;
}

/** Commands with these arguments: a folder, a Python, the client's wheel, a hash, and more packages. */
const INSTALL = `
  "$1" -m venv "$0/env"
  "$0/env/bin/python" -m pip --quiet --disable-pip-version-check install "$2" "\${@:4}"`;
