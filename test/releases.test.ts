import { appendFileSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { PACKAGERS } from '../sdk/packages/sources.ts';
import { canSetClocks, MachineClock } from './support/machine-clock.ts';
import { commandsIn, missingTools, runCommands } from './tools/commands.ts';
import { ROOT, readAddress, run, sharedFolder, temporaryFolder } from './tools/processes.ts';
import { describeIf } from './tools/servers.ts';

const guide = readFileSync(join(ROOT, 'docs/how-to/releases.md'), 'utf8');
const TOOLS = ['git --version', 'command -v ssh-keygen', 'sha256sum --version'];
const scratch = sharedFolder();

/** Runs commands in a folder, and returns their status and output. */
const runIn = (folder: string, commands: string, env: Record<string, string> = {}) =>
  runCommands(`cd ${folder}\n${commands}`, env);

/** Runs blocks of the guide in a folder; each must succeed. */
async function follow(folder: string, names: readonly string[], env: Record<string, string> = {}): Promise<void> {
  for (const name of names) {
    const outcome = await runIn(folder, commandsIn(guide, name), env);
    expect({ name, ...outcome }).toMatchObject({ status: 0 });
  }
}

/** Returns a clone of the last commit with the packages of `npm ci`. */
async function aClone(name: string): Promise<string> {
  const folder = join(scratch(), name);
  expect(await runIn(scratch(), `git clone --quiet --shared ${ROOT} ${name}`)).toMatchObject({ status: 0 });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

// @proves crashes-13
test.runIf(canSetClocks)('no process starts more than a day before the date of its release', async () => {
  const [, date = ''] = /^## \d\S+ - (\S+)$/m.exec(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')) ?? [];
  const folder = temporaryFolder();
  const clock = new MachineClock('machine', folder);
  const env = { ...clock.settings, CORE_TOKEN: 'x'.repeat(43), DATABASE_URL: `sqlite:${folder}/leads.db` };
  const setTo = (hours: number) => clock.set(Math.round((Date.parse(date) - Date.now()) / 1000) + hours * 3600);

  setTo(-25);
  for (const file of ['src/main.ts', 'gateway/main.ts', 'relay/main.ts']) {
    const process = run(file, { env });
    const outcome = await readAddress(process).catch(() => process.ended());
    expect({ file, outcome }).toEqual({ file, outcome: 1 });
    expect(process.output()).toMatch(
      new RegExp(`^the clock of this machine says \\S+Z, but this release is of ${date}: set the clock, .+\n$`),
    );
  }
  setTo(-23);
  await readAddress(run('src/main.ts', { env }));
});

describeIf(missingTools(TOOLS).length === 0, 'a release', 'install git, openssh-client and coreutils', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await aClone('one');
    await follow(folder, ['release-build']);
    // This block of the guide asks for a passphrase; the options answer that.
    const key = commandsIn(guide, 'release-key').trim();
    expect(await runIn(folder, `${key} -q -N ''`)).toMatchObject({ status: 0 });
    await follow(folder, ['release-sign', 'release-verify']);
  });

  /** Copies the release and its public key, so that a test can change the copy. */
  const aCopy = (name: string) => {
    const copy = join(scratch(), name);
    mkdirSync(copy);
    cpSync(join(folder, 'release'), join(copy, 'release'), { recursive: true });
    cpSync(join(folder, 'release-key.pub'), join(copy, 'release-key.pub'));
    return copy;
  };
  const verify = (copy: string) => runIn(copy, commandsIn(guide, 'release-verify'));

  // @proves supply-3
  test('a release has the same bytes whatever the clone, folder, time zone, language and umask', async () => {
    const other = await aClone('another');
    const commands = `umask 077\n${commandsIn(guide, 'release-build')}`;
    const env = { TZ: 'Pacific/Chatham', LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8' };
    expect(await runIn(other, commands, env)).toMatchObject({ status: 0 });
    const names = readdirSync(join(other, 'release'));
    expect(names).toContain('lead-intake.tar');
    expect(names.filter((name) => name.endsWith('.cdx.json'))).toHaveLength(Object.keys(PACKAGERS).length);
    for (const name of names) {
      const [one, two] = [folder, other].map((each) => readFileSync(join(each, 'release', name)));
      expect({ name, isSame: one?.equals(two as Buffer) }).toEqual({ name, isSame: true });
    }
  });

  // @proves supply-4
  test("a release is verified by the operator's key, and all of its files are signed", async () => {
    const copy = aCopy('verified');
    expect(await verify(copy)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('Good "lead-intake-release" signature'),
    });
    const sums = readFileSync(join(copy, 'release/SHA256SUMS'), 'utf8');
    const signed = sums
      .trim()
      .split('\n')
      .map((line) => line.split('  ')[1]);
    const files = readdirSync(join(copy, 'release')).filter((name) => !/^SHA256SUMS(?:\.sig)?$/.test(name));
    expect(files.filter((name) => !signed.includes(name))).toEqual([]);
  });

  // @proves supply-4
  test.each([
    ['another archive', 'lead-intake.tar'],
    ['other checksums', 'SHA256SUMS'],
  ])('a release is refused with %s', async (name, file) => {
    const copy = aCopy(name.replace(' ', '-'));
    appendFileSync(join(copy, 'release', file), '\n');
    expect((await verify(copy)).status).not.toBe(0);
  });

  // @proves supply-4
  test('a release that another key signed, or its key for another purpose, is refused', async () => {
    const stranger = aCopy('stranger');
    const key = commandsIn(guide, 'release-key').trim();
    await runIn(stranger, `mv release-key.pub known.pub; ${key} -q -N ''; rm release/*.sig`);
    await follow(stranger, ['release-sign']);
    await runIn(stranger, 'mv known.pub release-key.pub');
    expect((await verify(stranger)).status).not.toBe(0);

    const purpose = aCopy('purpose');
    await runIn(purpose, `rm release/*.sig; ssh-keygen -Y sign -f ${folder}/release-key -n file release/SHA256SUMS`);
    expect((await verify(purpose)).status).not.toBe(0);
  });
});
