import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { PACKAGE_SETTINGS } from '../../common/package-settings.ts';
import { describeWithTools, type Outcome, runCommands } from '../../test/tools/commands.ts';
import { sharedFolder } from '../../test/tools/processes.ts';
import { aServiceWithPackages } from '../../test/tools/served-packages.ts';
import { buildPackages, VERSION } from '../packages/build-packages.ts';
import { PHP_TOOLS } from './support/php-website.ts';
import { PYTHON_TOOL, pythonForTests } from './support/python.ts';

const execute = promisify(execFile);

/** The version of an earlier release's packages. */
const EARLIER = '1.0.77';

const { service, folder, url, readPage, readBlocks } = aServiceWithPackages((folder) => {
  for (const version of [EARLIER, VERSION]) buildPackages(folder, undefined, version);
});

const scratch = sharedFolder();
const anEmptyFolder = () => mkdtempSync(join(scratch(), 'website-'));

/** The PATH without this project's node_modules: a website's server uses the machine's own Node and npm. */
const ownPath = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter);

/** Runs a page's commands in a website's folder, and expects them to succeed. */
async function runIn(website: string, commands: string, env: Record<string, string> = {}): Promise<Outcome> {
  const outcome = await runCommands(`cd ${website}\n${commands}`, { PATH: ownPath, ...env });
  expect({ commands, ...outcome }).toMatchObject({ status: 0, stderr: outcome.status === 0 ? expect.anything() : '' });
  return outcome;
}

/** The pages that show how to install a client. */
const PAGES = ['quick-start', 'clients', 'packages'] as const;

async function findInstallation(page: string, program: string): Promise<string> {
  const commands = (await readBlocks(page)).filter(({ lang }) => lang === 'sh').map(({ text }) => text);
  const [command = ''] = commands.filter((text) => text.split('\n').some((line) => line.startsWith(`${program} `)));
  return command;
}

test('the pages about clients start with the same commands, which install from the deployment', async () => {
  for (const page of [...PAGES, 'outbox']) {
    const [first] = await readBlocks(page);
    expect({ page, first }).toEqual({ page, first: { lang: 'sh', text: await findInstallation('packages', 'npm') } });
    expect(first?.text).toContain(`${url()}/docs/packages/`);
  }
  for (const program of ['pip', 'composer']) {
    const [block, ...others] = await Promise.all(PAGES.map((page) => findInstallation(page, program)));
    expect(block).toContain(`${url()}/docs/packages`);
    for (const other of others) expect(other).toBe(block);
  }
});

/** Creates a lead with a page's program, and expects it to arrive. */
async function expectLead(program: (env: Record<string, string>) => Promise<Outcome>): Promise<void> {
  const { studioId, secret } = await service.aStudioWithKey();
  const { stdout } = await program({ LEAD_INTAKE_KEY: secret });
  expect(stdout).toMatch(/^[\da-f-]{36}\n$/);
  expect(await service.countLeads(studioId)).toBe(1);
}

async function quickStart(language: string): Promise<string> {
  return (await readBlocks('quick-start')).find(({ lang }) => lang === language)?.text ?? '';
}

// @proves packages-1 packages-3
describeWithTools(['npm --version'], 'npm, in an empty folder', () => {
  test('npm installs the client as the page says, and an old lock file survives an upgrade', async () => {
    const website = anEmptyFolder();
    const npm = { npm_config_cache: join(website, '.npm') };
    await runIn(website, await findInstallation('quick-start', 'npm'), npm);
    writeFileSync(join(website, 'create-lead.mjs'), await quickStart('js'));
    await expectLead((env) => runIn(website, 'node create-lead.mjs', env));

    // The lock file of a website from the earlier release has that release's address and checksum.
    await runIn(website, (await findInstallation('quick-start', 'npm')).replace(VERSION, EARLIER), npm);
    const lock = JSON.parse(readFileSync(join(website, 'package-lock.json'), 'utf8'));
    expect(lock.packages[`node_modules/${PACKAGE_SETTINGS.npm}`]).toMatchObject({
      version: EARLIER,
      resolved: expect.stringMatching(new RegExp(`^${url()}/docs/packages/[\\w.-]+-${EARLIER}\\.tgz$`)),
      integrity: expect.stringMatching(/^sha512-/),
    });
    await runIn(website, 'npm ci', { npm_config_cache: join(website, '.other') });
    await expectLead((env) => runIn(website, 'node create-lead.mjs', env));
  });

  test('npm would publish the archive unchanged', async () => {
    const archive = join(folder(), `${PACKAGE_SETTINGS.npm}-${VERSION}.tgz`);
    const { stderr } = await runIn(anEmptyFolder(), `npm publish --loglevel notice --dry-run ${archive}`);
    expect(stderr).toContain('(dry-run)');
  });
});

// @proves packages-1
describeWithTools([PYTHON_TOOL], 'pip, in an empty folder', () => {
  test('pip installs the wheel as the page says and from the simple index, and it creates a lead', async () => {
    const website = anEmptyFolder();
    await runIn(website, 'python3 -m venv env');
    const env = { PATH: `${website}/env/bin${delimiter}${ownPath}`, PIP_DISABLE_PIP_VERSION_CHECK: '1' };
    const program = (more: Record<string, string>) => runIn(website, 'python create_lead.py', { ...env, ...more });
    writeFileSync(join(website, 'create_lead.py'), await quickStart('python'));
    await runIn(website, await findInstallation('quick-start', 'pip'), env);
    await expectLead(program);

    await runIn(website, `pip uninstall --yes ${PACKAGE_SETTINGS.pypi}`, env);
    const [, fromIndex = ''] = /`(pip install --no-deps .*?)`/.exec(await readPage('packages')) ?? [];
    await runIn(website, fromIndex, { ...env, PIP_NO_CACHE_DIR: '1' });
    await expectLead(program);
    const { stdout } = await runIn(website, 'pip show --files --verbose lead_intake && pip check', env);
    expect(stdout).toContain(`Version: ${VERSION}\n`);
    expect(stdout).toContain('py.typed');
    await runIn(
      website,
      `pip download --no-deps --index-url ${url()}/docs/packages/simple/ ${PACKAGE_SETTINGS.pypi}==${EARLIER}`,
      env,
    );
  });

  test('twine would publish the wheels unchanged', async () => {
    const { stdout } = await execute(join(await pythonForTests(), 'twine'), ['check', '--strict', `${folder()}/*.whl`]);
    expect(stdout.match(/PASSED/g)).toHaveLength(2);
  });
});

// @proves packages-1 packages-3 others-17
describeWithTools(PHP_TOOLS, 'Composer, in an empty folder', () => {
  test('Composer installs the client as the page says, and an old lock file still works', async () => {
    const website = anEmptyFolder();
    // Packagist is not part of the deployment.
    writeFileSync(join(website, 'composer.json'), '{ "repositories": [{ "packagist.org": false }] }');
    const env = { COMPOSER_HOME: join(website, 'home'), COMPOSER_ALLOW_SUPERUSER: '1', COMPOSER_NO_INTERACTION: '1' };
    // The page asks for this if the address has no TLS.
    await runIn(website, 'composer config secure-http false', env);
    await runIn(website, await findInstallation('quick-start', 'composer'), env);
    writeFileSync(join(website, 'create-lead.php'), await quickStart('php'));
    await expectLead((more) => runIn(website, 'php create-lead.php', more));

    await runIn(website, `composer require ${PACKAGE_SETTINGS.composer}:${EARLIER}`, env);
    rmSync(join(website, 'vendor'), { recursive: true });
    await runIn(website, 'composer install', { ...env, COMPOSER_CACHE_DIR: '/dev/null' });
    const lock = JSON.parse(readFileSync(join(website, 'composer.lock'), 'utf8'));
    expect(lock.packages).toMatchObject([
      { version: EARLIER, dist: { shasum: expect.stringMatching(/^[\da-f]{40}$/) } },
    ]);
    await expectLead((more) => runIn(website, 'php create-lead.php', more));
    await runIn(website, `composer validate vendor/${PACKAGE_SETTINGS.composer}/composer.json`, env);
  });

  test('Composer refuses an archive that does not match the checksum of its repository', async () => {
    const website = anEmptyFolder();
    const repository = await (await fetch(`${url()}/docs/packages/packages.json`)).text();
    mkdirSync(join(website, 'copy'));
    writeFileSync(join(website, 'copy/packages.json'), repository.replaceAll(/"shasum":"./g, '"shasum":"_'));
    const composer = {
      repositories: [{ type: 'composer', url: `file://${website}/copy` }, { 'packagist.org': false }],
    };
    writeFileSync(join(website, 'composer.json'), JSON.stringify({ ...composer, config: { 'secure-http': false } }));
    const env = { PATH: ownPath, COMPOSER_HOME: join(website, 'home'), COMPOSER_ALLOW_SUPERUSER: '1' };
    const outcome = await runCommands(
      `cd ${website}\ncomposer --no-interaction require ${PACKAGE_SETTINGS.composer}`,
      env,
    );
    expect(outcome.status).not.toBe(0);
    expect(outcome.stderr).toContain('checksum verification of the file failed');
    expect(existsSync(join(website, 'vendor', PACKAGE_SETTINGS.composer))).toBe(false);
  });
});
