import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { describeWithChromium } from '../support/browser.ts';
import { commandsIn, exampleOf, runCommands, startCommands } from '../support/examples.ts';
import { ROOT } from '../support/processes.ts';
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

vi.setConfig({ hookTimeout: 180_000, testTimeout: 240_000 });

const service = aService();
const recipe = readFileSync(join(ROOT, 'examples/recipes/wordpress/README.md'), 'utf8');
const PASSWORD = 'a password of the test';
const hasWordPress = canStart.MariaDB && existsSync('/usr/share/wordpress/wp-content/themes/twentytwentythree');

describeIf(hasWordPress, 'the plugin for WordPress', REMEDY, () => {
  let scratch: string;
  let databases: WebsiteServer;
  let database: WebsiteDatabase;
  let studio: StudioWithKey;
  let proxy: TcpProxy;
  let env: Record<string, string>;
  let server: ReturnType<typeof startCommands> | undefined;
  afterAll(async () => {
    server?.kill('SIGKILL');
    await proxy?.stop();
    await database?.close();
    await databases?.stop();
    rmSync(scratch, { recursive: true });
  });
  beforeAll(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
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
      SITE: join(scratch, 'site'),
      ADDRESS: `127.0.0.1:${await freePort()}`,
      DATABASE_HOST: `${address.host}:${address.port}`,
      DATABASE: address.database,
      DATABASE_USER: address.user,
      DATABASE_PASSWORD: address.password,
      ADMIN_PASSWORD: PASSWORD,
    };
    const { status, stdout, stderr } = await runCommands(commandsIn(recipe, 'wordpress-set-up'), env);
    expect(status, stdout + stderr).toBe(0);
    server = startCommands(commandsIn(recipe, 'wordpress-serve'), env);
  });

  const cron = async () => {
    const { status, stdout, stderr } = await runCommands(commandsIn(recipe, 'wordpress-cron'), env);
    expect([status, stdout], stderr).toEqual([0, '']);
  };
  const rows = () => database.run('SELECT state, capture, reason FROM wp_lead_intake_outbox ORDER BY created_at');

  describeWithChromium('in a browser', (open) => {
    test('is set up in the admin pages, and sends each lead once, also when the service was unavailable; its key is in no page', async () => {
      const site = `http://${env.ADDRESS}`;
      await vi.waitUntil(() => fetch(site).catch(() => false), { timeout: 60_000, interval: 50 });
      const pages: string[] = [];
      const keep = async (page: Page) => void pages.push(await page.content());

      const admin = await open(`${site}/wp-login.php`);
      /** Presses a button or link that loads another page, and waits for it. */
      const press = async (button: Locator) => {
        const loaded = admin.waitForEvent('load');
        await button.click();
        await loaded;
      };
      await admin.fill('#user_login', 'admin');
      await admin.fill('#user_pass', PASSWORD);
      await press(admin.locator('#wp-submit'));
      await admin.goto(`${site}/wp-admin/plugins.php`);
      await admin.click('#activate-lead-intake');
      await admin.getByText('Leads are stored, and not sent until address and key are set.').waitFor();

      // A visitor may come before the plugin is configured.
      const contact = `${site}/?pagename=contact`;
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

      await admin.goto(`${site}/wp-admin/options-general.php?page=lead-intake-settings`);
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
      await admin.goto(`${site}/wp-admin/tools.php?page=lead-intake-leads`);
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
      const { leads } = (await (await service.get(studio.secret)).json()) as { leads: object[] };
      expect(leads).toMatchObject([{ displayName: 'Grace <i>Hopper</i>', note }]);

      // A lead that the service refuses stays until an administrator discards it.
      await enter('Mary', 'mary@example.org', 'x');
      await database.run(
        `UPDATE wp_lead_intake_outbox SET capture = REPLACE(capture, 'mary@example.org', 'nowhere') WHERE state = 'waiting'`,
      );
      await cron();
      await admin.goto(`${site}/wp-admin/`);
      await admin.getByText('1 lead needs somebody to look at it.').waitFor();
      await admin.goto(`${site}/wp-admin/tools.php?page=lead-intake-leads`);
      await keep(admin);
      const refused = admin.locator('tr', { hasText: '400 integration_invalid_request' }).first();
      await press(refused.getByRole('button', { name: 'Discard' }));
      expect(await rows()).toMatchObject([{ state: 'delivered' }, { state: 'discarded', capture: null }]);
      expect(await service.countLeads(studio.studioId)).toBe(1);

      // Another plugin adds a lead; with a key in wp-config.php the form has no field for it.
      const hook = exampleOf('examples/recipes/wordpress/README.md', 'wordpress-hook');
      writeFileSync(join(env.SITE ?? '', 'other-plugin.php'), `<?php require __DIR__ . '/wp-load.php';\n${hook}`);
      const config = join(env.SITE ?? '', 'wp-config.php');
      const keyed = `<?php define('LEAD_INTAKE_KEY', '${studio.secret}');`;
      writeFileSync(config, readFileSync(config, 'utf8').replace('<?php', keyed));
      await runCommands('php "$SITE/other-plugin.php"', env);
      await cron();
      expect(await service.countLeads(studio.studioId)).toBe(2);
      // PHP's server checks for changed files only at intervals.
      await vi.waitUntil(
        async () => {
          await admin.goto(`${site}/wp-admin/options-general.php?page=lead-intake-settings`);
          return admin.getByText('wp-config.php has it').isVisible();
        },
        { timeout: 60_000, interval: 500 },
      );
      expect(await admin.getByLabel('Key').count()).toBe(0);
      await keep(admin);

      expect(pages.join('')).not.toContain(studio.secret);

      // Deleting the plugin deletes its table, in which every lead is settled.
      await admin.goto(`${site}/wp-admin/plugins.php`);
      await press(admin.locator('#deactivate-lead-intake'));
      admin.on('dialog', (dialog) => void dialog.accept());
      await admin.click('#delete-lead-intake');
      await admin.getByText('was successfully deleted').waitFor();
      expect(await database.run("SHOW TABLES LIKE '%lead_intake%'")).toEqual([]);
      expect(await database.run("SELECT * FROM wp_options WHERE option_name LIKE '%lead_intake_settings%'")).toEqual(
        [],
      );
    });
  });
});
