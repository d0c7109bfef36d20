import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import { anAuthority, writeCertificate } from '../tools/certificates.ts';
import { run, temporaryFolder } from '../tools/processes.ts';
import { describeIf, hasCommand } from '../tools/servers.ts';

/** The user id of the service, who has no other rights. */
const USER = 65_534;
const AS_USER = ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups'];

/** The files of a core, by their settings. */
type Files = Readonly<Record<'database' | 'token' | 'callers' | 'cert' | 'key', string>>;

/** Changes of the documented rights, each with the blamed file and words of the fault, or without if all is usable. */
const SITUATIONS: readonly [what: string, change: (files: Files) => void, blamed?: keyof Files, words?: string][] = [
  ['everything is readable by that user alone', () => {}],
  ['the folder of the database cannot be listed', ({ database }) => chmodSync(dirname(database), 0o300), 'database'],
  ['the database cannot be written', ({ database }) => chmodSync(database, 0o400), 'database'],
  ['the log of the database is a file of root', ({ database }) => leftByRoot(`${database}-wal`), 'database', '-wal'],
  ['the token is a file of root', ({ token }) => chownSync(token, 0, 0), 'token'],
  ['the key is a file of root', ({ key }) => chownSync(key, 0, 0), 'key'],
];

function leftByRoot(path: string): void {
  writeFileSync(path, '');
  chmodSync(path, 0o600);
}

const isRoot = process.getuid?.() === 0;
describeIf(isRoot && hasCommand('setpriv'), 'for a user with few rights', 'run it on Linux, as root', () => {
  test.each(SITUATIONS)('doctor finds the same fault as a starting core: %s', async (_, change, blamed, words = '') => {
    const files = await filesOfUser();
    change(files);
    const env = {
      CORE_TOKEN_FILE: files.token,
      CORE_CALLERS_FILE: files.callers,
      CORE_TLS_CERT_FILE: files.cert,
      CORE_TLS_KEY_FILE: files.key,
      DATABASE_URL: `sqlite:${files.database}`,
      NO_COLOR: '1',
    };
    const doctor = run('operator/cli.ts', { args: ['doctor', 'core'], env, within: AS_USER });
    const status = await doctor.ended();
    const core = run('src/main.ts', { env, within: AS_USER });
    const starts = await Promise.race([
      core.printed(/Server listening/).then(() => true),
      core.ended().then(() => false),
    ]);
    expect({ status, starts }).toEqual({ status: blamed ? 1 : 0, starts: blamed === undefined });
    if (blamed === undefined) return;
    expect(doctor.output().match(/^(?:FAULT|warning) .*$/gm)).toEqual([expect.stringContaining(files[blamed])]);
    expect(doctor.output()).toContain(words);
    expect(core.output()).toContain(files[blamed]);
  });
});

/** Creates a database and secrets that the user owns, in separate folders. */
async function filesOfUser(): Promise<Files> {
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  const [data, secrets] = [join(folder, 'data'), join(folder, 'secrets')];
  for (const path of [data, secrets]) mkdirSync(path, { mode: 0o700 });
  const certificate = await (await anAuthority('of the test')).issue('localhost', 'server');
  const files = {
    database: join(data, 'leads.db'),
    token: join(secrets, 'token'),
    callers: join(secrets, 'callers.json'),
    ...writeCertificate(secrets, 'core', certificate),
  };
  writeFileSync(files.token, 'the token of the tests of the doctor');
  writeFileSync(files.callers, '{"callers":{}}');
  await (await openStore(`sqlite:${files.database}`)).close();
  for (const path of Object.values(files)) chmodSync(path, 0o600);
  for (const path of [data, secrets, ...Object.values(files)]) chownSync(path, USER, USER);
  return files;
}
