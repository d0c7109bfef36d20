import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { DriverClock } from '../../sdk/conformance/driver-clock.ts';
import { buildPackages } from '../../sdk/packages/build-packages.ts';
import { openForm } from '../../sdk/test/support/forms.ts';
import { PHP_TOOLS } from '../../sdk/test/support/php-website.ts';
import { testRecipe, testRecipeOnServers } from '../../sdk/test/support/recipe-situations.ts';
import { queryFile } from '../../sdk/test/support/website-databases.ts';
import { commandsIn, describeWithTools, runCommands, startCommands } from '../../test/tools/commands.ts';
import { ROOT, sharedFolder } from '../../test/tools/processes.ts';
import { aServiceWithPackages } from '../../test/tools/served-packages.ts';
import type { StudioWithKey } from '../../test/tools/served-service.ts';
import { freePort } from '../../test/tools/servers.ts';
import { startProxy, type TcpProxy } from '../../test/tools/tcp-proxy.ts';

const { service, url: serviceUrl } = aServiceWithPackages(buildPackages);
const recipe = readFileSync(join(ROOT, 'examples/recipes/php-form/README.md'), 'utf8');

// @proves leads-27 arrival-1 arrival-7
describeWithTools(PHP_TOOLS, 'the contact form in plain PHP', () => {
  const scratch = sharedFolder();
  let studio: StudioWithKey;
  let proxy: TcpProxy;
  let clock: DriverClock;
  let env: Record<string, string>;
  let server: ReturnType<typeof startCommands>;
  afterAll(async () => {
    server.kill('SIGKILL');
    await proxy.stop();
    clock.remove();
  });
  beforeAll(async () => {
    clock = new DriverClock();
    studio = await service.aStudioWithKey();
    proxy = await startProxy('127.0.0.1', Number(new URL(service.url).port));
    const site = join(scratch(), 'site');
    env = {
      SITE: site,
      DATABASE: `sqlite:${join(site, 'website.db')}`,
      ADDRESS: `127.0.0.1:${await freePort()}`,
      LEAD_INTAKE_URL: `http://127.0.0.1:${proxy.port}`,
      LEAD_INTAKE_KEY: studio.secret,
      COMPOSER_HOME: scratch(),
      COMPOSER_ALLOW_SUPERUSER: '1',
    };
    const { status, stderr } = await runCommands(commandsIn(recipe, 'php-form-set-up'), {
      ...env,
      LEAD_INTAKE_URL: serviceUrl(),
    });
    expect(status, stderr).toBe(0);
    await serve();
  });

  const serve = () => {
    server = startCommands(commandsIn(recipe, 'php-form-serve'), { ...env, ...clock.env });
    return vi.waitUntil(() => form().catch(() => false), { timeout: 60_000, interval: 50 });
  };
  const form = async () => (await fetch(`http://${env.ADDRESS}/form.php`)).text();
  const send = (fields: Record<string, string>) =>
    fetch(`http://${env.ADDRESS}/form.php`, { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' });
  const query = (sql: string) => queryFile(join(env.SITE ?? '', 'website.db'), sql);
  const rows = () => query('SELECT * FROM example_com_leads ORDER BY created_at');
  const run = (mark: string, more: Record<string, string> = {}) =>
    runCommands(commandsIn(recipe, mark), { ...env, ...more });
  const silent = { status: 0, stdout: '', stderr: '' };
  /** Makes all leads due and runs the cron job that sends them. */
  const sendByCron = (more: Record<string, string> = {}) => {
    query("UPDATE example_com_leads SET next_attempt_at = 0 WHERE state = 'waiting'");
    return run('php-form-send', more);
  };

  test('the PHP form responds before it sends a lead, and its jobs retry, report and compare leads', {
    concurrent: false,
  }, async () => {
    const page = await form();
    const [, random = ''] = /name="page" value="([^"]+)"/.exec(page) ?? [];
    expect(await form()).not.toContain(random);
    expect(page).not.toContain(studio.secret);
    const grace = { name: 'Grace "Amazing" Hopper', email: 'grace@example.org', note: 'Zoë 😀', page: random };

    // The service does not respond. If the page waited for the attempt, the table would already have its reason.
    proxy.silence();
    const answer = await send(grace);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, 'thanks.html']);
    expect(rows()).toMatchObject([{ state: 'waiting', reason: null }]);
    await vi.waitUntil(() => rows().some(({ reason }) => String(reason).startsWith('no answer')), { timeout: 50_000 });
    expect(await service.countLeads(studio.studioId)).toBe(0);

    proxy.heal();
    expect(await sendByCron()).toEqual(silent);
    expect(rows()).toMatchObject([{ state: 'delivered', capture: null }]);
    expect(await run('php-form-report')).toEqual(silent);

    // A visitor with an open lead gets no second one. The message is reported until somebody discards it.
    await send({ ...grace, note: 'A second message' });
    await vi.waitUntil(() => rows().some(({ state }) => state === 'already_open'), { timeout: 50_000 });
    expect(await service.countLeads(studio.studioId)).toBe(1);
    const { stdout: message } = await run('php-form-report');
    expect(message).toMatch(/^\S{36}, from \S+, already_open: .+\n {2}\{.+"note":"A second message"\}\n$/);
    expect(await run('php-form-discard', { KEY: message.slice(0, 36) })).toEqual(silent);
    expect(await run('php-form-report')).toEqual(silent);
    expect((await run('php-form-discard', { KEY: 'none' })).status).toBe(1);

    const { stdout: arrived } = await run('php-form-compare');
    expect(arrived).toMatch(/^1 sent since \S{10}, 1 there\.\n$/);
    query(`UPDATE example_com_leads SET lead_id = '${randomUUID()}' WHERE state = 'delivered'`);
    const { stdout: lost } = await run('php-form-compare');
    expect(lost).toMatch(
      /^1 sent since \S{10}, 0 there\. None is there: .+\n\S{36}, from \S+, lead \S{36}: not there: .+\n$/,
    );
    query(`INSERT INTO example_com_leads (idempotency_key, capture, state, attempts, created_at, next_attempt_at)
      VALUES ('${randomUUID()}', '{}', 'refused', 1, 1, 1)`);
    query("UPDATE example_com_leads_memo SET token = '0' WHERE name = 'waiting'");
    const told = {
      status: 0,
      stdout: expect.stringMatching(/^1 leads have waited .+\n {2}1: not tried yet\n$/),
      stderr: '',
    };
    expect(await sendByCron()).toEqual(told);
    expect(await sendByCron()).toEqual(silent);
    query('DELETE FROM example_com_leads');
  });

  test('the PHP form keeps input that it cannot store, and refuses a list in place of a text', {
    concurrent: false,
  }, async () => {
    const grace = { name: 'Grace', email: 'grace@example.com', note: 'x', page: 'x' };
    const before = rows().length;
    query('ALTER TABLE enquiries RENAME TO lost');
    const failed = await send(grace);
    query('ALTER TABLE lost RENAME TO enquiries');
    expect([failed.status, await failed.text()]).toEqual([500, expect.stringContaining('value="grace@example.com"')]);
    // PHP parses this field as a list.
    const faulty = await send({ ...grace, 'name[]': 'Ada' });
    expect(await faulty.text()).toContain('<p role="alert">Name must be 1 to 160 characters long.</p>');
    expect(rows()).toHaveLength(before);
  });

  testRecipe(service, () => ({
    clock,
    empty: async () => query('DELETE FROM example_com_leads'),
    async use(settings) {
      const ended = once(server, 'exit');
      server.kill('SIGKILL');
      await ended;
      env = { ...env, ...settings };
      await serve();
    },
    open: () => openForm(`http://${env.ADDRESS}/form.php`),
    send: sendByCron,
    report: async () => (await run('php-form-report')).stdout,
  }));

  testRecipeOnServers(service, ['MariaDB', 'PostgreSQL'], 0, async ({ address }, settings, onTestFinished) => {
    const { kind, host, port, user, password, database } = address as Record<string, string>;
    const own: Record<string, string> = {
      ...env,
      ...settings,
      ADDRESS: `127.0.0.1:${await freePort()}`,
      DATABASE: `${kind === 'mariadb' ? 'mysql' : 'pgsql'}:host=${host};port=${port};dbname=${database}`,
      DATABASE_USER: `${user}`,
      DATABASE_PASSWORD: `${password}`,
    };
    expect(await runCommands('php "$SITE/leads.php" set-up', own)).toEqual(silent);
    const served = startCommands(commandsIn(recipe, 'php-form-serve'), own);
    onTestFinished(() => void served.kill('SIGKILL'));
    return {
      open: () => vi.waitFor(() => openForm(`http://${own.ADDRESS}/form.php`), { timeout: 60_000, interval: 100 }),
      send: () => run('php-form-send', own),
    };
  });
});
