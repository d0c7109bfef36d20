import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { DriverClock } from '../../sdk/conformance/driver-clock.ts';
import { describeWithChromium } from '../support/browser.ts';
import { commandsIn, exampleOf, runCommands, startCommands } from '../support/examples.ts';
import { openForm } from '../support/forms.ts';
import { ROOT, sharedFolder } from '../support/processes.ts';
import { testRecipe } from '../support/recipe-situations.ts';
import { describeIf, freePort } from '../support/servers.ts';
import { aService, type StudioWithKey } from '../support/service.ts';
import { startProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import {
  canStart,
  REMEDY,
  startWebsiteServer,
  type WebsiteDatabase,
  type WebsiteServer,
} from '../support/website-databases.ts';

const service = aService();
const recipe = readFileSync(join(ROOT, 'sdk/wordpress/README.md'), 'utf8');
const PASSWORD = 'a password of the test';
// A prefix that begins with a digit, which WordPress allows.
const TABLE = '_7x_lead_intake_outbox';
/** Constants that a test changes, because PHP's server reads the code itself at intervals. */
const TEST_SETTINGS = `
foreach (json_decode((string) @file_get_contents(__DIR__ . '/constants.json'), true) ?? [] as $name => $value) define($name, $value);
`;
/** Mails go into a file, and the home page has the form below its posts. */
const TEST_PLUGIN = `<?php
add_filter('pre_wp_mail', fn ($none, $mail) => file_put_contents(ABSPATH . 'mails', json_encode($mail) . "\\n", FILE_APPEND) > 0, 10, 2);
add_action('wp_footer', fn () => is_home() && print do_shortcode('[lead_intake_form]'));
`;
const hasWordPress = canStart.MariaDB && existsSync('/usr/share/wordpress/wp-content/themes/twentytwentythree');

// @proves leads-29
describeIf(hasWordPress, 'the plugin for WordPress', REMEDY, () => {
  const scratch = sharedFolder();
  let databases: WebsiteServer;
  let database: WebsiteDatabase;
  let studio: StudioWithKey;
  let proxy: TcpProxy;
  let clock: DriverClock;
  let env: Record<string, string>;
  let server: ReturnType<typeof startCommands> | undefined;
  afterAll(async () => {
    server?.kill('SIGKILL');
    await proxy?.stop();
    clock?.remove();
    await database?.close();
    await databases?.stop();
  });
  beforeAll(async () => {
    clock = new DriverClock();
    databases = await startWebsiteServer.MariaDB();
    database = await databases.database();
    studio = await service.aStudioWithKey();
    proxy = await startProxy('127.0.0.1', Number(new URL(service.url).port));
    const address = database.address as {
      host: string;
      port: number;
      database: string;
      user: string;
      password: string;
    };
    env = {
      SITE: join(scratch(), 'site'),
      ADDRESS: `127.0.0.1:${await freePort()}`,
      DATABASE_HOST: `${address.host}:${address.port}`,
      DATABASE: address.database,
      DATABASE_USER: address.user,
      DATABASE_PASSWORD: address.password,
      ADMIN_PASSWORD: PASSWORD,
    };
    const setUp = commandsIn(recipe, 'wordpress-set-up').replace("'wp_'", "'7x_'");
    const { status, stdout, stderr } = await runCommands(setUp, env);
    expect(status, stdout + stderr).toBe(0);
    const config = inSite('wp-config.php');
    writeFileSync(config, readFileSync(config, 'utf8').replace('<?php', `<?php ${TEST_SETTINGS}`));
    mkdirSync(inSite('wp-content/mu-plugins'));
    writeFileSync(inSite('wp-content/mu-plugins/test.php'), TEST_PLUGIN);
    server = startCommands(commandsIn(recipe, 'wordpress-serve'), { ...env, ...clock.env });
    await vi.waitUntil(() => fetch(site()).catch(() => false), { timeout: 60_000, interval: 50 });
  });

  const site = (path = '') => `http://${env.ADDRESS}/${path}`;
  const inSite = (file: string) => join(env.SITE ?? '', file);
  const textOf = (file: string) => (existsSync(inSite(file)) ? readFileSync(inSite(file), 'utf8') : '');
  const define = (constants: object) => writeFileSync(inSite('constants.json'), JSON.stringify(constants));
  const cron = async () => {
    const { status, stdout, stderr } = await runCommands(commandsIn(recipe, 'wordpress-cron'), env);
    expect([status, stdout, stderr]).toEqual([0, '', '']);
  };
  /** Runs statements within WordPress, and returns what they print. */
  const run = async (statements: string) => {
    writeFileSync(inSite('statements.php'), `<?php require __DIR__ . '/wp-load.php';\n${statements}`);
    const { status, stdout, stderr } = await runCommands('php "$SITE/statements.php"', env);
    expect([status, stderr], stdout).toEqual([0, '']);
    return stdout;
  };
  /** Runs WP-Cron a day later, as far as the daily mail is concerned. */
  const report = async () => {
    const hook = "'lead_intake_report'";
    await run(`wp_clear_scheduled_hook(${hook}); wp_schedule_event(time(), 'daily', ${hook});`);
    await cron();
  };
  const store = (settings: unknown, statements = '') => {
    const json = Buffer.from(JSON.stringify(settings)).toString('base64');
    return run(`update_option('lead_intake_settings', json_decode(base64_decode('${json}'), true)); ${statements}`);
  };
  const FIRST = `require ABSPATH . 'wp-admin/includes/plugin.php';`;
  const activate = async () => void (await run(`${FIRST} activate_plugin('lead-intake/lead-intake.php');`));
  const deactivate = async () => {
    define({});
    await run(`${FIRST} deactivate_plugins('lead-intake/lead-intake.php'); delete_option('lead_intake_settings');`);
    await database.run(`DROP TABLE IF EXISTS ${TABLE}`);
  };
  const rows = () => database.run(`SELECT state, capture, reason FROM ${TABLE} ORDER BY created_at`);

  describe('with its form on a page, and below the posts of the home page', () => {
    const pages = ['?pagename=contact', ''];
    let opened = 0;
    beforeAll(activate);
    afterAll(deactivate);

    testRecipe(service, () => ({
      clock,
      empty: () => database.run(`DELETE FROM ${TABLE}`),
      use: ({ LEAD_INTAKE_URL: url, LEAD_INTAKE_KEY: key }) => store({ url, key }),
      open: () => openForm(site(pages[opened++ % 2])),
      async send() {
        await database.run(`UPDATE ${TABLE} SET next_attempt_at = 0 WHERE state = 'waiting'`);
        await run(`wp_schedule_single_event(time(), 'lead_intake_deliver_soon');`);
        await cron();
        return { stdout: '', stderr: '' };
      },
      async report() {
        const before = textOf('mails');
        await report();
        return textOf('mails').slice(before.length);
      },
    }));

    test('a list is no text, and the page of thanks is not cached', async () => {
      const send = (name: string) => {
        const body = new URLSearchParams({
          [`lead_intake[name]${name}`]: 'Ada',
          'lead_intake[email]': 'ada@example.org',
        });
        return fetch(site(pages[0]), { method: 'POST', body, redirect: 'manual' });
      };
      expect((await send('[]')).status).toBe(422);
      const thanks = await fetch(new URL((await send('')).headers.get('location') ?? '', site()));
      expect(thanks.headers.get('cache-control')).toContain('no-cache');
      expect(await thanks.text()).toContain('Thank you.');
    });
  });

  describeWithChromium('in a browser', (open) => {
    test('is set up in the admin pages, and sends each lead once, also when the service was unavailable; its key is in no page', async () => {
      const pages: string[] = [];
      const keep = async (page: Page) => void pages.push(await page.content());

      const admin = await open(site('wp-login.php'));
      /** Presses a button or link that loads another page, and waits for it. */
      const press = async (button: Locator) => {
        const loaded = admin.waitForEvent('load');
        await button.click();
        await loaded;
      };
      await admin.fill('#user_login', 'admin');
      await admin.fill('#user_pass', PASSWORD);
      await press(admin.locator('#wp-submit'));
      await admin.goto(site('wp-admin/plugins.php'));
      await admin.click('#activate-lead-intake');
      await admin.getByText('Leads are stored, but none is sent').waitFor();

      // A visitor may come before the plugin is configured.
      const contact = site('?pagename=contact');
      const visitor = await open(contact, { javaScriptEnabled: false });
      const enter = async (name: string, email: string, note: string) => {
        await visitor.goto(contact);
        await visitor.getByLabel('Name').fill(name);
        await visitor.getByLabel('E-mail').fill(email);
        await visitor.getByLabel('Message').fill(note);
        await keep(visitor);
        await visitor.getByRole('button', { name: 'Send' }).click();
        await keep(visitor);
      };
      const note = 'Zoë 𝔊 says: "50 % <b>off</b>\\n" – it\'s\non two lines?';
      await enter('Grace <i>Hopper</i>', 'grace@example.org', note);
      await visitor.getByText('Thank you.').waitFor();
      await cron();
      expect(await rows()).toMatchObject([{ state: 'waiting', reason: null }]);

      await admin.goto(site('wp-admin/options-general.php?page=lead-intake-settings'));
      await admin.getByLabel('Address').fill('http://example.org');
      await admin.getByLabel('Key').fill('no key');
      await admin.click('#submit');
      await admin.getByText('The address must be like').waitFor();
      await admin.getByText('That is no key').waitFor();
      await admin.getByLabel('Address').fill(`http://127.0.0.1:${proxy.port}`);
      await admin.getByLabel('Key').fill(studio.secret);
      await admin.click('#submit');
      await admin.getByText('A key is stored.').waitFor();
      await keep(admin);
      // Saving without a key keeps the stored one.
      await press(admin.locator('#submit'));
      await admin.getByText('A key is stored.').waitFor();

      // The service is unavailable.
      proxy.refuse();
      await cron();
      await admin.goto(site('wp-admin/tools.php?page=lead-intake-leads'));
      await keep(admin);
      const row = admin.locator('tr', { hasText: 'grace@example.org' });
      expect(await row.innerText()).toContain('Grace <i>Hopper</i>');
      expect(await row.innerText()).toContain('no answer: ');
      expect(await service.countLeads(studio.studioId)).toBe(0);

      // It is available again, and an administrator retries immediately.
      proxy.heal();
      await press(row.getByRole('button', { name: 'Send again' }));
      await cron();
      expect(await rows()).toMatchObject([{ state: 'delivered', capture: null, reason: null }]);
      const { leads } = (await (await service.get(studio.secret)).json()) as { leads: { id: string }[] };
      expect(leads).toMatchObject([{ displayName: 'Grace <i>Hopper</i>', note }]);
      await admin.reload();
      await admin
        .locator('tr', { hasText: leads[0]?.id ?? '' })
        .getByText('delivered')
        .waitFor();

      // Another plugin adds a lead; with a key in wp-config.php the form has no field for it.
      const hook = exampleOf('sdk/wordpress/README.md', 'wordpress-hook');
      define({ LEAD_INTAKE_KEY: studio.secret });
      await run(hook);
      await cron();
      expect(await service.countLeads(studio.studioId)).toBe(2);
      await admin.goto(site('wp-admin/options-general.php?page=lead-intake-settings'));
      await admin.getByText('wp-config.php has it').waitFor();
      expect(await admin.getByLabel('Key').count()).toBe(0);
      await keep(admin);

      expect(pages.join('')).not.toContain(studio.secret);

      // Deleting the plugin deletes its table, in which every lead is settled.
      await admin.goto(site('wp-admin/plugins.php'));
      await press(admin.locator('#deactivate-lead-intake'));
      admin.on('dialog', (dialog) => void dialog.accept());
      await admin.click('#delete-lead-intake');
      await admin.getByText('was successfully deleted').waitFor();
      expect(await database.run("SHOW TABLES LIKE '%lead_intake%'")).toEqual([]);
      expect(await database.run("SELECT * FROM 7x_options WHERE option_name LIKE '%lead_intake_settings%'")).toEqual(
        [],
      );
    });
  });
});
