import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { DriverClock } from '../../sdk/conformance/driver-clock.ts';
import { buildPackages } from '../../sdk/packages/build-packages.ts';
import { openForm } from '../../sdk/test/support/forms.ts';
import { expectPage } from '../../sdk/test/support/outbox-page.ts';
import { PHP_TOOLS } from '../../sdk/test/support/php-website.ts';
import { testRecipe, testRecipeOnServers } from '../../sdk/test/support/recipe-situations.ts';
import { queryFile } from '../../sdk/test/support/website-databases.ts';
import { commandsIn, describeWithTools, runCommands, startCommands, watchCommands } from '../../test/tools/commands.ts';
import { ROOT, sharedFolder } from '../../test/tools/processes.ts';
import { aServiceWithPackages } from '../../test/tools/served-packages.ts';
import { freePort } from '../../test/tools/servers.ts';

const { service, url: serviceUrl } = aServiceWithPackages(buildPackages);
const recipe = readFileSync(join(ROOT, 'examples/recipes/laravel/README.md'), 'utf8');
const LARAVEL = `php -r 'require "Illuminate/autoload.php";'`;

// @proves leads-27
describeWithTools([...PHP_TOOLS, LARAVEL], 'the contact form with Laravel', () => {
  const scratch = sharedFolder();
  let env: Record<string, string>;
  let clock: DriverClock;
  let server: ReturnType<typeof startCommands> | undefined;
  afterAll(() => {
    server?.kill('SIGKILL');
    clock?.remove();
  });
  beforeAll(async () => {
    clock = new DriverClock();
    const { secret } = await service.aStudioWithKey();
    const site = join(scratch(), 'site');
    cpSync(join(ROOT, 'examples/test/laravel-website'), site, { recursive: true });
    for (const folder of [
      'bootstrap/cache',
      'database',
      'storage/cache',
      'storage/framework',
      'storage/sessions',
      'storage/views',
    ])
      mkdirSync(join(site, folder), { recursive: true });
    writeFileSync(join(site, 'database/website.sqlite'), '');
    env = {
      SITE: site,
      ADDRESS: `127.0.0.1:${await freePort()}`,
      APP_KEY: `base64:${randomBytes(32).toString('base64')}`,
      LEAD_INTAKE_URL: service.url,
      LEAD_INTAKE_KEY: secret,
      LEAD_INTAKE_READ_KEY: secret,
      LEAD_INTAKE_PAGE_PASSWORD: 'of the office: ä',
      COMPOSER_HOME: scratch(),
      COMPOSER_ALLOW_SUPERUSER: '1',
    };
    const { status, stderr } = await runCommands(commandsIn(recipe, 'laravel-set-up'), {
      ...env,
      LEAD_INTAKE_URL: serviceUrl(),
    });
    expect(status, stderr).toBe(0);
    const command = 'cd "$SITE" && exec php -S "$ADDRESS" -t public public/index.php';
    server = startCommands(command, { ...env, ...clock.env });
    await vi.waitUntil(() => fetch(`http://${env.ADDRESS}/contact`).catch(() => false), {
      timeout: 60_000,
      interval: 100,
    });
  });

  const query = (sql: string) => queryFile(join(env.SITE ?? '', 'database/website.sqlite'), sql);
  const run = (mark: string, more: Record<string, string> = {}) =>
    runCommands(`cd "$SITE"\n${commandsIn(recipe, mark)}`, { ...env, ...more });
  const silent = { status: 0, stdout: '', stderr: '' };
  const send = (more: Record<string, string> = {}) => {
    query("UPDATE example_com_leads SET next_attempt_at = 0 WHERE state = 'waiting'");
    return run('laravel-send', more);
  };

  test('a lead is reported until it is discarded, and keeps its table from being dropped', {
    concurrent: false,
  }, async () => {
    const form = () => openForm(`http://${env.ADDRESS}/contact`);
    const grace = { name: 'Grace', email: 'grace@example.org' };
    await (await form()).send(grace);
    await (await form()).send({ ...grace, message: 'On Monday, please.' });
    expect(await send()).toEqual(silent);

    const { stdout } = await run('laravel-report');
    expect(stdout).toMatch(/^\S{36}, already_open: .+\n {2}\{.+"note":"On Monday, please\."\}\n$/);
    const drop = () => runCommands('cd "$SITE" && php artisan migrate:rollback --force', env);
    expect((await drop()).status).not.toBe(0);
    const KEY = stdout.slice(0, 36);
    const retry = commandsIn(recipe, 'laravel-discard').replace('discard', 'retry');
    expect(await runCommands(`cd "$SITE"\n${retry}`, { ...env, KEY })).toEqual(silent);
    expect(query("SELECT idempotency_key AS id FROM example_com_leads WHERE state = 'waiting'")).toEqual([{ id: KEY }]);
    expect(await send()).toEqual(silent);
    expect((await run('laravel-report')).stdout).toBe(stdout);
    expect(await run('laravel-discard', { KEY })).toEqual(silent);
    expect(await run('laravel-report')).toEqual(silent);
    expect((await run('laravel-discard', { KEY: 'none' })).status).not.toBe(0);
    const { stdout: scheduled } = await runCommands('cd "$SITE" && php artisan schedule:list', env);
    for (const what of ['send', 'report']) expect(scheduled).toContain(`artisan' leads ${what}`);
    expect((await drop()).status).toBe(0);
    expect(query("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'example_com%'")).toEqual([]);
    expect((await runCommands('cd "$SITE" && php artisan migrate --force', env)).status).toBe(0);
  });

  test('a visitor keeps the entered texts when the session has ended or the table is missing', {
    concurrent: false,
  }, async () => {
    const typed = { name: 'Hedy', email: 'hedy@example.org', message: 'On Monday, please.' };
    const form = await openForm(`http://${env.ADDRESS}/contact`);
    for (const file of globSync(join(env.SITE ?? '', 'storage/sessions/*'))) rmSync(file);
    query('ALTER TABLE example_com_leads RENAME TO away');
    const answer = await form.send(typed);
    query('ALTER TABLE away RENAME TO example_com_leads');
    expect(answer).toMatchObject({ status: 500, text: expect.stringContaining('It could not be stored') });
    expect(answer.form?.entered).toEqual(typed);
    expect((await form.send(typed)).text).toContain('Thank you');
    query('DELETE FROM example_com_leads');
  });

  // @proves page-4
  test('the office page shows the leads that need attention only with the password', {
    concurrent: false,
  }, async ({ onTestFinished }) => {
    const table = 'example_com_leads (idempotency_key, capture, state, attempts, created_at, next_attempt_at, reason)';
    const capture = '{"displayName":"Ada","contact":{"type":"email","value":"nowhere"}}';
    query(`INSERT INTO ${table} VALUES ('${randomUUID()}', '${capture}', 'refused', 1, ${Date.now()}, 0, '400 no')`);
    const rows = () => query('SELECT state, capture FROM example_com_leads');
    const url = `http://${env.ADDRESS}/office/leads`;
    await expectPage({ url, password: 'of the office: ä', rows });
    query('DELETE FROM example_com_leads');

    const other = { ...env, ADDRESS: `127.0.0.1:${await freePort()}`, LEAD_INTAKE_PAGE_PASSWORD: '' };
    const open = startCommands('cd "$SITE" && exec php -S "$ADDRESS" -t public public/index.php', other);
    onTestFinished(() => void open.kill('SIGKILL'));
    const headers = { authorization: `Basic ${btoa('office:')}` };
    const asked = await vi.waitFor(() => fetch(`http://${other.ADDRESS}/office/leads`, { headers }), {
      timeout: 60_000,
    });
    expect([asked.status, await asked.text()]).toEqual([503, 'LEAD_INTAKE_PAGE_PASSWORD must be set.']);
  });

  test('the report states the number of leads when it does not print them all', { concurrent: false }, async () => {
    const numbers = 'WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 200)';
    query(`INSERT INTO example_com_leads (idempotency_key, capture, state, attempts, created_at, next_attempt_at)
      ${numbers} SELECT i || '-', '{}', 'refused', 1, i, i FROM n`);
    expect((await run('laravel-report')).stdout).toMatch(/^(\d+-, refused: \n.+\n){100}and more: 101 in all\n$/);
    query('DELETE FROM example_com_leads');
  });

  test('a killed pass does not keep later ones from sending', { concurrent: false }, async ({ onTestFinished }) => {
    const { studioId, secret } = await service.aStudioWithKey();
    const server = createServer((socket) => socket.on('error', () => {}));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const schedule = 'cd "$SITE" && php artisan schedule:run';
    const settings = { ...env, LEAD_INTAKE_KEY: secret };
    const add = async (name: string) => {
      const form = await openForm(`http://${env.ADDRESS}/contact`);
      await form.send({ name, email: `${name}@example.org` });
    };

    await add('grace');
    const silent = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const pass = watchCommands(schedule, { ...settings, LEAD_INTAKE_URL: silent });
    await once(server, 'connection');
    await pass.kill();
    await add('joan');
    expect(await runCommands(schedule, settings)).toMatchObject({ status: 0 });

    expect(await service.countLeads(studioId)).toBe(1);
    query('DELETE FROM example_com_leads');
  });

  testRecipe(service, () => ({
    clock,
    empty: async () => query('DELETE FROM example_com_leads'),
    open: () => openForm(`http://${env.ADDRESS}/contact`),
    send,
    report: async () => (await run('laravel-report')).stdout,
  }));

  testRecipeOnServers(service, ['MariaDB', 'PostgreSQL'], 1, async ({ address }, settings, onTestFinished) => {
    const { kind, host, port, user, password, database } = address as Record<string, string>;
    const own: Record<string, string> = {
      ...env,
      ...settings,
      ADDRESS: `127.0.0.1:${await freePort()}`,
      DB_CONNECTION: kind === 'mariadb' ? 'mysql' : 'pgsql',
      DB_HOST: `${host}`,
      DB_PORT: `${port}`,
      DB_DATABASE: `${database}`,
      DB_USERNAME: `${user}`,
      DB_PASSWORD: `${password}`,
    };
    const { status, stdout } = await runCommands('cd "$SITE" && php artisan migrate --force', own);
    expect(status, stdout).toBe(0);
    const website = startCommands('cd "$SITE" && exec php -S "$ADDRESS" -t public public/index.php', own);
    onTestFinished(() => void website.kill('SIGKILL'));
    return {
      open: () => vi.waitFor(() => openForm(`http://${own.ADDRESS}/contact`), { timeout: 60_000, interval: 100 }),
      send: () => run('laravel-send', own),
    };
  });
});
