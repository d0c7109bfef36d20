import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { describeWithChromium } from '../support/browser.ts';
import { allLeads } from '../support/core-clients.ts';
import { exampleOf } from '../support/examples.ts';
import { decoded, openForm } from '../support/forms.ts';
import { testRecipe } from '../support/recipe-situations.ts';
import { describeIf } from '../support/servers.ts';
import { aService, type StudioWithKey } from '../support/service.ts';
import { startProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { REMEDY } from '../support/website-databases.ts';
import { aWordPress, FIRST, hasWordPress, PASSWORD, type Session } from '../support/wordpress.ts';
import { FORM_PLUGINS, type FormPlugin, type Submission } from '../support/wordpress-forms.ts';

const service = aService();
/** Returns a text as PHP writes it. */
const phpText = (text: string) => `base64_decode('${Buffer.from(text).toString('base64')}')`;
const TABLE = '_7x_lead_intake_outbox';

// @proves leads-29
describeIf(hasWordPress, 'the plugin for WordPress', REMEDY, () => {
  const wordpress = aWordPress();
  const { site, textOf, define, cron, run, activate, deactivate } = wordpress;
  let studio: StudioWithKey;
  let proxy: TcpProxy;
  afterAll(() => proxy?.stop());
  beforeAll(async () => {
    studio = await service.aStudioWithKey();
    proxy = await startProxy('127.0.0.1', Number(new URL(service.url).port));
  });

  /** Runs WP-Cron a day later, as far as the daily mail is concerned. */
  const report = async () => {
    const hook = "'lead_intake_report'";
    await run(`wp_clear_scheduled_hook(${hook}); wp_schedule_event(time(), 'daily', ${hook});`);
    await cron();
  };
  const store = (settings: unknown, statements = '') => {
    return run(
      `update_option('lead_intake_settings', json_decode(${phpText(JSON.stringify(settings))}, true)); ${statements}`,
    );
  };
  const rows = () => wordpress.database().run(`SELECT state, capture, reason FROM ${TABLE} ORDER BY created_at`);

  describe('with its form on a page, and below the posts of the home page', () => {
    const pages = ['?pagename=contact', ''];
    let opened = 0;
    beforeAll(activate);
    afterAll(deactivate);

    testRecipe(service, () => ({
      clock: wordpress.clock,
      empty: () => wordpress.database().run(`DELETE FROM ${TABLE}`),
      use: ({ LEAD_INTAKE_URL: url, LEAD_INTAKE_KEY: key }) => store({ url, key }),
      open: () => openForm(site(pages[opened++ % 2])),
      async send() {
        await wordpress.database().run(`UPDATE ${TABLE} SET next_attempt_at = 0 WHERE state = 'waiting'`);
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
      const [, sealed = ''] =
        /name="lead_intake\[form\]" value="([^"]+)"/.exec(await (await fetch(site(pages[0]))).text()) ?? [];
      const send = (name: string) => {
        const body = new URLSearchParams({
          [`lead_intake[name]${name}`]: 'Ada',
          'lead_intake[email]': 'ada@example.org',
          'lead_intake[form]': decoded(sealed),
        });
        return fetch(site(pages[0]), { method: 'POST', body, redirect: 'manual' });
      };
      expect((await send('[]')).status).toBe(422);
      const thanks = await fetch(new URL((await send('')).headers.get('location') ?? '', site()));
      expect(thanks.headers.get('cache-control')).toContain('no-cache');
      expect(await thanks.text()).toContain('Thank you.');
    });
  });

  describe('with the fields that a shortcode names', () => {
    const page = (attributes: string) =>
      run(`echo wp_insert_post(['post_type' => 'page', 'post_status' => 'publish', 'post_title' => 'A page',
        'post_content' => ${phpText(`[lead_intake_form ${attributes}]`)}]);`);
    const source = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11';
    let all = '';
    let phone = '';
    beforeAll(async () => {
      await activate();
      all = site(
        `?page_id=${await page(`fields="name email phone note" source="${source}" consent="I agree to -- <b>'all'</b> of it"`)}`,
      );
      phone = site(`?page_id=${await page('fields="phone"')}`);
    });
    afterAll(deactivate);
    beforeEach(() => wordpress.database().run(`DELETE FROM ${TABLE}`));

    const sealedOf = async (url: string) => {
      const [, sealed = ''] = /name="lead_intake\[form\]" value="([^"]+)"/.exec(await (await fetch(url)).text()) ?? [];
      return decoded(sealed);
    };
    /** Sends the form of a page with these fields besides the hidden one. */
    const send = async (
      url: string,
      fields: Readonly<Record<string, string>>,
      headers: Record<string, string> = {},
    ) => {
      const named = Object.entries({ form: fields.form ?? (await sealedOf(url)), ...fields }).map(([name, value]) => [
        `lead_intake[${name}]`,
        value,
      ]);
      const answer = await fetch(url, { method: 'POST', headers, body: new URLSearchParams(named) });
      return { status: answer.status, text: decoded(await answer.text()) };
    };
    const captures = async () => (await rows()).map(({ capture }) => JSON.parse(String(capture)));

    test('has them, a source, and a consent without which nothing is stored; a lead has one contact, and a note with the rest', async () => {
      const person = { name: 'Ada', email: 'ada@example.org', phone: '+44 20 7946 0018', note: 'Hello' };
      expect(await send(all, person)).toMatchObject({ status: 422, text: expect.stringContaining('Please agree') });
      expect(await send(all, { name: 'Ada', consent: '1' })).toMatchObject({
        status: 422,
        text: expect.stringContaining('your e-mail address or your phone number'),
      });
      expect(await send(phone, { phone: '12' })).toMatchObject({ text: expect.stringContaining('your phone number') });
      expect(await captures()).toEqual([]);
      expect(await send(all, { ...person, consent: '1' })).toMatchObject({ status: 200 });
      expect(await captures()).toEqual([
        {
          displayName: 'Ada',
          contact: { type: 'email', value: 'ada@example.org' },
          sourceId: source,
          note: "Hello\n\nPhone: +44 20 7946 0018\nConsent: I agree to -- <b>'all'</b> of it",
        },
      ]);
      await wordpress.database().run(`DELETE FROM ${TABLE}`);
      // Without a name, the contact is what the lead is called.
      expect(await send(phone, { phone: '+44 20 7946 0019' })).toMatchObject({ status: 200 });
      const contact = { type: 'phone', value: '+44 20 7946 0019' };
      expect(await captures()).toEqual([{ displayName: contact.value, contact }]);
    });

    test('a form that a visitor has altered is shown again', async () => {
      const [, hash = ''] = (await sealedOf(all)).split('.');
      const form = `${Buffer.from('{"fields":["email"],"source":"","consent":"","at":0}').toString('base64')}.${hash}`;
      for (const altered of [form, '', '.', `${form}.x`]) {
        const answer = await send(all, { form: altered, email: 'eve@example.org', consent: '1' });
        expect(answer).toMatchObject({ status: 422, text: expect.stringContaining('eve@example.org') });
      }
      expect(await captures()).toEqual([]);
    });

    // @proves plugin-4 bounds-130
    test("a bot's hundred posts make no lead, and a person's one does", async () => {
      const bot = (number: number) => ({ name: 'Bot', email: `bot${number}@example.org`, consent: '1' });
      const refused = async (fields: Record<string, string>) =>
        expect(await send(all, fields)).toMatchObject({
          status: 422,
          text: expect.stringContaining('Please send it once more.'),
        });
      // Fifty fill in every field, and fifty send as soon as they have the page.
      const form = await sealedOf(all);
      for (let number = 0; number < 50; number += 1)
        await refused({ ...bot(number), form, website: 'https://example.org' });
      define({ TEST_SECONDS: 1 });
      for (let number = 50; number < 100; number += 1) await refused(bot(number));
      define({});
      await refused({ ...bot(100), name: 'a captcha says: a bot' });
      expect(await captures()).toEqual([]);
      expect(await send(all, { ...bot(101), name: 'Ada' })).toMatchObject({ status: 200 });
      expect(await captures()).toHaveLength(1);
    });

    // @proves plugin-4 bounds-130
    test('one network sends at most twenty in an hour, by the address that the proxy gives; no address is stored', async () => {
      await store({ proxy: 'HTTP_X_FORWARDED_FOR' });
      // In the middle of an hour.
      wordpress.clock.set(1800 - (Math.floor(Date.now() / 1000) % 3600));
      const from = (address: string, number: number) =>
        send(phone, { phone: `+44 20 7946 ${1000 + number}` }, { 'x-forwarded-for': `198.51.100.1, ${address}` });
      const statuses = [];
      // All of 256 addresses are one network.
      for (let number = 0; number < 21; number += 1) statuses.push((await from(`203.0.113.${number}`, number)).status);
      expect(statuses).toEqual([...Array(20).fill(200), 429]);
      expect((await from('2001:470:1:2::1', 100)).status).toBe(200);
      expect((await from('203.0.114.1', 101)).status).toBe(200);
      expect(await captures()).toHaveLength(22);
      wordpress.clock.set(0);
      const counts = await wordpress.database().run('SELECT * FROM _7x_lead_intake_throttle ORDER BY number');
      expect(counts.map((row) => Object.keys(row))).toEqual(Array(counts.length).fill(['bucket', 'hour', 'number']));
      expect(counts.at(-1)).toMatchObject({ number: 21 });
      await expect(
        wordpress.database().run('INSERT INTO _7x_lead_intake_throttle VALUES (65536, 1, 1)'),
      ).rejects.toThrow();
    });
  });

  /** Defines the tests of a plugin for forms, from a folder that has a copy or a double of it. */
  const describeForms = (plugin: FormPlugin, title: string, folder: string, creation: string) =>
    // @proves plugin-2 plugin-3
    describe(title, () => {
      const formTitle = `A "form" <b>of 𝔊</b> & 'it'`;
      let admin: Session;
      let form = '';
      let page = '';
      let leads: StudioWithKey;
      beforeAll(async () => {
        await activate();
        leads = await service.aStudioWithKey();
        await store({ url: service.url, key: leads.secret });
        cpSync(folder, wordpress.inSite(`wp-content/plugins/${plugin.file.split('/')[0]}`), { recursive: true });
        await run(`${FIRST} is_null($fault = activate_plugin('${plugin.file}')) || exit($fault->get_error_message());`);
        form = `${plugin.name}:${await run(`$title = ${phpText(formTitle)}; ${creation}`)}`;
        page = `options-general.php?page=lead-intake-forms&form=${form}`;
        admin = await wordpress.logIn('admin');
      });
      afterAll(async () => {
        await run(`${FIRST} deactivate_plugins('${plugin.file}');`);
        rmSync(wordpress.inSite(`wp-content/plugins/${plugin.file.split('/')[0]}`), { recursive: true });
        await deactivate();
      });

      const THANKS = 'Thank you for your message.';
      const person = (name: string, more: Partial<Submission> = {}): Submission => ({
        email: `${name.toLowerCase()}@example.org`,
        name: `${name} Hopper`,
        note: 'Zoë 𝔊 asks',
        animal: 'dog',
        consent: 'yes',
        ...more,
      });
      const submit = (values: Submission) => plugin.submit(site, form.split(':')[1] ?? '', values);
      const map = (parts: Readonly<Record<string, string>>, more: object = { connected: '1', rest: '1' }) =>
        admin.press(
          page,
          'name="mapping[email]"',
          'submit',
          Object.fromEntries(
            Object.entries({ ...parts, ...more }).map(([part, field]) => [`mapping[${part}]`, String(field)]),
          ),
        );
      const submissions = () =>
        wordpress.database().run('SELECT form, fields, fault FROM _7x_lead_intake_submissions ORDER BY id');
      const inCrm = async () =>
        (await allLeads(service, leads.studioId)).map(({ displayName, note }) => ({ displayName, note }));

      test('is connected on one page; what no mapping fits is kept and shown, and sent again once the mapping is corrected', async () => {
        const { email, name, note, consent } = plugin.fields;
        // Not connected: nothing is stored.
        expect(await submit(person('Ada'))).toContain(THANKS);
        expect(await submissions()).toEqual([]);

        // The fields are proposed by their names.
        const proposed = await admin.page(page);
        expect(proposed).toContain(`<option value="${form}" selected='selected'>`);
        expect(proposed).not.toContain('<b>of');
        for (const field of [email, name, note])
          expect(proposed).toContain(`<option value="${field}" selected='selected'>`);

        expect(await map({ name: email })).toContain('Choose the field of the e-mail address');
        expect(await map({ email, source: 'no id' })).toContain('The source must be its id');
        expect(await map({ email: name, name: email })).toContain('The fields are saved.');
        // Of these nobody can make a lead.
        expect(await submit(person('Grace'))).toContain(THANKS);
        expect(await submit(person('Joan'))).toContain(THANKS);
        expect(await submissions()).toMatchObject(
          Array(2).fill({ form, fault: 'contact', fields: expect.stringContaining('@example.org') }),
        );
        await cron();
        expect(await inCrm()).toEqual([]);
        const shown = await admin.page(page);
        expect(shown).toContain('No e-mail address or phone number was found.');
        expect(shown).toContain('2 submissions of forms are no leads yet.');
        const before = textOf('mails');
        await report();
        expect(textOf('mails').slice(before.length)).toContain('2 submissions of forms are no leads yet.');

        await map({ email, name, note, consent });
        await admin.press(page, 'lead_intake_send_all', 'submit');
        await cron();
        const label = { cf7: 'animal', fluent: 'Your animal', wpforms: 'Your animal', gravity: 'Animal' }[plugin.name];
        const lead = (displayName: string) => ({ displayName, note: `Zoë 𝔊 asks\n\n${label}: dog` });
        expect(await inCrm()).toEqual(expect.arrayContaining([lead('Grace Hopper'), lead('Joan Hopper')]));
        expect(await admin.page(page)).toContain('delivered');
        expect(await admin.page(page)).not.toContain('are no leads yet.');

        // By the mapping, a submission is a lead at once, and a double click is one; without consent nothing is.
        expect(await Promise.all([submit(person('Mary')), submit(person('Mary'))])).toEqual(
          Array(2).fill(expect.stringContaining(THANKS)),
        );
        expect(await submit(person('Eve', { consent: '' }))).toContain(THANKS);
        await cron();
        expect((await inCrm()).map(({ displayName }) => displayName).toSorted()).toEqual([
          'Grace Hopper',
          'Joan Hopper',
          'Mary Hopper',
        ]);
        expect(JSON.stringify(await submissions())).not.toContain('eve@example.org');
        expect(await admin.page(page)).toContain('The visitor has not agreed');
      });

      test('when the submission cannot be stored, the visitor is not thanked', async () => {
        await wordpress.database().run('RENAME TABLE _7x_lead_intake_submissions TO away');
        const answer = await submit(person('Hedy'));
        await wordpress.database().run('RENAME TABLE away TO _7x_lead_intake_submissions');
        expect(answer).toContain('That could not be stored. Please send it again later.');
        expect(answer).not.toContain(THANKS);
      });

      const { hookArguments } = plugin;
      if (hookArguments === undefined) return;
      test('its hook is called with the arguments that the plugin for leads reads', async () => {
        const visitor = person('Barbara');
        await submit(visitor);
        const called = JSON.parse(textOf('hooks').trim().split('\n').at(-1) ?? '');
        expect(called).toEqual(hookArguments(visitor));
      });
    });

  for (const plugin of FORM_PLUGINS)
    describeForms(plugin, `with a double of ${plugin.title}`, plugin.double, plugin.creation);

  const { WORDPRESS_PLUGINS_DIR } = process.env;
  for (const plugin of FORM_PLUGINS.filter(({ hookArguments }) => hookArguments !== undefined)) {
    const folder = join(WORDPRESS_PLUGINS_DIR ?? '', plugin.file.split('/')[0] ?? '');
    if (WORDPRESS_PLUGINS_DIR !== undefined && existsSync(folder)) {
      describeForms(plugin, `with ${plugin.title} itself`, folder, plugin.realCreation ?? plugin.creation);
    } else {
      const remedy = 'set WORDPRESS_PLUGINS_DIR to a folder that has contact-form-7 and fluentform';
      console.warn(`NOT RUN: the plugin for WordPress with ${plugin.title} itself. To run it, ${remedy}.`);
    }
  }

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
      expect(await admin.locator('input[name$="[key]"]').count()).toBe(0);
      await keep(admin);

      expect(pages.join('')).not.toContain(studio.secret);

      // Deleting the plugin deletes its table, in which every lead is settled.
      await admin.goto(site('wp-admin/plugins.php'));
      await press(admin.locator('#deactivate-lead-intake'));
      admin.on('dialog', (dialog) => void dialog.accept());
      await admin.click('#delete-lead-intake');
      await admin.getByText('was successfully deleted').waitFor();
      expect(await wordpress.database().run("SHOW TABLES LIKE '%lead_intake%'")).toEqual([]);
      expect(
        await wordpress.database().run("SELECT * FROM 7x_options WHERE option_name LIKE '%lead_intake_settings%'"),
      ).toEqual([]);
    });
  });
});
