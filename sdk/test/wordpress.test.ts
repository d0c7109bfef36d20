import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { describeWithChromium } from '../../test/tools/browser.ts';
import { findExample, runCommands } from '../../test/tools/commands.ts';
import { ROOT, temporaryFolder } from '../../test/tools/processes.ts';
import { aServedService, type Scope, type StudioWithKey } from '../../test/tools/served-service.ts';
import { describeIf } from '../../test/tools/servers.ts';
import { startProxy, type TcpProxy } from '../../test/tools/tcp-proxy.ts';
import { testSize } from '../../test/tools/test-size.ts';
import { canClockBeSet } from '../conformance/driver-clock.ts';
import { pluginFiles, pluginUpdate } from '../wordpress/plugin-files.ts';
import { decoded, NO_UTF8, openForm } from './support/forms.ts';
import { testRecipe } from './support/recipe-situations.ts';
import { REMEDY } from './support/website-databases.ts';
import { aWordPress, FIRST, hasWordPress, PASSWORD, readFaults, type Session } from './support/wordpress.ts';
import { FORM_PLUGINS, type FormPlugin, type Submission } from './support/wordpress-forms.ts';

const service = aServedService();
/** Returns a text as PHP source. */
const phpText = (text: string) => `base64_decode('${Buffer.from(text).toString('base64')}')`;
const TABLE = '_7x_lead_intake_outbox';

/** The number of posts of a bot for each of the two signs that give it away. */
const BOT_POSTS = testSize('BOT_POSTS', { usual: 10, soak: 50 });

const withVersion = (file: Uint8Array) =>
  Buffer.from(
    Buffer.from(file)
      .toString()
      .replace(/Version: .*/, 'Version: 9.9.9'),
  );

/** Returns a zip file with these files. */
async function makeZip(files: ReadonlyMap<string, Uint8Array>): Promise<Buffer> {
  const folder = temporaryFolder();
  for (const [path, file] of files) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), file);
  }
  const made = await runCommands('cd "$FOLDER"; python3 -m zipfile -c a.zip lead-intake', { FOLDER: folder });
  expect(made).toMatchObject({ status: 0, stderr: '' });
  return readFileSync(join(folder, 'a.zip'));
}

// @proves leads-27
describeIf(hasWordPress, 'the plugin for WordPress', REMEDY, () => {
  const wordpress = aWordPress();
  const { site, toText, define, cron, run, activate, deactivate } = wordpress;
  let studio: StudioWithKey;
  let proxy: TcpProxy;
  afterAll(() => proxy?.stop());
  beforeAll(async () => {
    studio = await service.aStudioWithKey();
    proxy = await startProxy('127.0.0.1', Number(new URL(service.url).port));
  });

  /** Puts the plugin back as it was built. */
  const restore = () => {
    rmSync(wordpress.inSite('wp-content/plugins/lead-intake'), { recursive: true, force: true });
    cpSync('sdk/wordpress/build/lead-intake', wordpress.inSite('wp-content/plugins/lead-intake'), { recursive: true });
  };
  /** Runs WP-Cron as if a day had passed for the daily mail. */
  const report = () => cron({ DUE: 'lead_intake_report' });
  const store = (settings: unknown, statements = '') => {
    return run(
      `update_option('lead_intake_settings', json_decode(${phpText(JSON.stringify(settings))}, true)); ${statements}`,
    );
  };
  const sql = (statements: string) => wordpress.database().run(statements);
  /** Makes a page and returns its address. */
  const aPage = async (content: string) =>
    site(
      `?page_id=${await run(`echo wp_insert_post(['post_type' => 'page', 'post_status' => 'publish', 'post_title' => 'A page',
        'post_content' => ${phpText(content)}]);`)}`,
    );
  const rows = () => sql(`SELECT state, capture, reason FROM ${TABLE} ORDER BY created_at`);

  describe('with its form on a page, and below the posts of the home page', () => {
    const pages = ['?pagename=contact', ''];
    let opened = 0;
    beforeAll(activate);
    afterAll(deactivate);

    testRecipe(service, () => ({
      clock: wordpress.clock,
      empty: () => sql(`DELETE FROM ${TABLE}`),
      use: ({ LEAD_INTAKE_URL: url, LEAD_INTAKE_KEY: key }) => store({ url, key }),
      open: () => openForm(site(pages[opened++ % 2])),
      async send() {
        await sql(`UPDATE ${TABLE} SET next_attempt_at = 0 WHERE state = 'waiting'`);
        await cron({ DUE: 'lead_intake_deliver_soon' });
        return { stdout: '', stderr: '' };
      },
      async report() {
        const before = toText('mails');
        await report();
        return toText('mails').slice(before.length);
      },
    }));

    test('its form refuses a list in place of a text, and the page of thanks is not cached', async () => {
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
    const page = (attributes: string) => aPage(`[lead_intake_form ${attributes}]`);
    const source = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11';
    let all = '';
    let phone = '';
    beforeAll(async () => {
      await activate();
      all = await page(
        `fields="name email phone note" source="${source}" consent="I agree to -- <b>'all'</b> & more of it"`,
      );
      phone = await page('fields="phone"');
    });
    afterAll(deactivate);
    beforeEach(() => sql(`DELETE FROM ${TABLE}`));

    const readSealed = async (url: string) => {
      const [, sealed = ''] = /name="lead_intake\[form\]" value="([^"]+)"/.exec(await (await fetch(url)).text()) ?? [];
      return decoded(sealed);
    };
    /** Sends the form of a page with these fields besides the hidden one. */
    const send = async (
      url: string,
      fields: Readonly<Record<string, string>>,
      headers: Record<string, string> = {},
    ) => {
      const named = Object.entries({ form: fields.form ?? (await readSealed(url)), ...fields }).map(([name, value]) => [
        `lead_intake[${name}]`,
        value,
      ]);
      const answer = await fetch(url, { method: 'POST', headers, body: new URLSearchParams(named) });
      const html = await answer.text();
      return { status: answer.status, html, text: decoded(html) };
    };
    /** Returns the forms of a page. */
    const formsIn = (html: string) => html.match(/<form class="lead-intake"[\s\S]*?<\/form>/g) ?? [];
    /** Returns the texts that describe the fields of a form that are marked as wrong. */
    const faultsIn = (form: string) =>
      Object.fromEntries(
        [...form.matchAll(/name="lead_intake\[(\w+)\]"[^>]* aria-invalid="true" aria-describedby="([^"]+)"/g)].map(
          ([, field, id]) => [field, new RegExp(`<span [^>]*id="${id}">([^<]+)</span>`).exec(form)?.[1]],
        ),
      );
    const captures = async () => (await rows()).map(({ capture }) => JSON.parse(String(capture)));

    test('its form makes a lead with one contact and a note of the rest, if the visitor has agreed', async () => {
      const person = { name: 'Ada', email: 'ada@example.org', phone: '+44 20 7946 0018', note: 'Hello' };
      expect(await send(all, person)).toMatchObject({ status: 422, text: expect.stringContaining('Please agree') });
      expect(await send(all, { name: 'Ada', consent: '1' })).toMatchObject({
        status: 422,
        text: expect.stringContaining('your email address or your phone number'),
      });
      expect(await send(phone, { phone: '12' })).toMatchObject({
        text: expect.stringContaining('This is not a phone number.'),
      });
      // WordPress has stored the text of the consent as HTML.
      expect((await send(phone, { phone: '' })).text).toContain('Please enter your phone number.');
      expect((await send(all, {})).text).toContain("I agree to -- <b>'all'</b> & more of it");
      // A visitor who has entered both learns which one is wrong. A wrong phone number beside an email address stays in the note.
      expect(await send(all, { ...person, email: 'ada@', consent: '1' })).toMatchObject({
        status: 422,
        text: expect.stringContaining('This is not an email address.'),
      });
      expect(await captures()).toEqual([]);
      expect(await send(all, { ...person, phone: '12', consent: '1' })).toMatchObject({ status: 200 });
      expect((await captures())[0]).toMatchObject({
        contact: { type: 'email', value: 'ada@example.org' },
        note: expect.stringContaining('Phone: 12'),
      });
      await sql(`DELETE FROM ${TABLE}`);
      expect(await send(all, { ...person, consent: '1' })).toMatchObject({ status: 200 });
      expect(await captures()).toEqual([
        {
          displayName: 'Ada',
          contact: { type: 'email', value: 'ada@example.org' },
          sourceId: source,
          note: "Hello\n\nPhone: +44 20 7946 0018\nConsent: I agree to -- <b>'all'</b> & more of it",
        },
      ]);
      await sql(`DELETE FROM ${TABLE}`);
      // Without a name, the lead has the contact as its name.
      expect(await send(phone, { phone: '+44 20 7946 0019' })).toMatchObject({ status: 200 });
      const contact = { type: 'phone', value: '+44 20 7946 0019' };
      expect(await captures()).toEqual([{ displayName: contact.value, contact }]);
    });

    test('its form stores the longest message with all lines that it adds, and refuses a longer one', async () => {
      const [, most = ''] =
        /name="lead_intake\[note\]" rows="6" maxlength="(\d+)"/.exec(await (await fetch(all)).text()) ?? [];
      const person = { name: 'Ada', email: 'ada@example.org', phone: '0'.repeat(64), consent: '1' };
      expect(await send(all, { ...person, note: 'x'.repeat(Number(most) + 1) })).toMatchObject({
        status: 422,
        text: expect.stringContaining(`of up to ${Number(most).toLocaleString('en')} characters`),
      });
      expect(await send(all, { ...person, note: 'x'.repeat(Number(most)) })).toMatchObject({ status: 200 });
      expect((await captures())[0].note).toHaveLength(2000);
    });

    // @proves plugin-12
    test('its form shows all faults at once, each at its field, and keeps the entered texts', async () => {
      const { status, html } = await send(all, { email: 'ada@', phone: '\'"1" & 2', note: 'x'.repeat(2000) });
      const [form = ''] = formsIn(html);
      expect(status).toBe(422);
      expect(faultsIn(form)).toEqual({
        name: 'Please enter your name.',
        email: 'This is not an email address.',
        note: expect.stringMatching(/^Please write a message of up to 1,\d+ characters\.$/),
        consent: 'Please agree, or nothing may be sent.',
      });
      expect(decoded(form)).toContain('value="\'"1" & 2"');
      const [, alert = ''] = /<p class="lead-intake__summary" role="alert">(.*?)<\/p>/.exec(form) ?? [];
      const [, first] = /^<a href="#(.+)">Nothing was sent yet: 4 fields need a correction\.<\/a>$/.exec(alert) ?? [];
      expect(form.match(/<[^>]* autofocus/g)).toEqual([
        expect.stringContaining(`id="${first}" name="lead_intake[name]"`),
      ]);
      const agreed = formsIn((await send(all, { name: 'Ada', consent: '1' })).html)[0] ?? '';
      expect(faultsIn(agreed)).toEqual({ email: 'Please enter your email address or your phone number.' });
      expect(agreed).toMatch(/<input type="checkbox"[^>]* checked/);
      expect(faultsIn((await send(all, { name: 'x'.repeat(161) })).html)).toMatchObject({
        name: 'Your name may have up to 160 characters.',
      });
      // A fault wins over the thanks of the page's address.
      const thanked = await send(`${all}&lead-intake-sent=1`, { form: await readSealed(all), name: 'Ada' });
      expect([thanked.status, formsIn(thanked.html).length]).toEqual([422, 1]);
      expect(thanked.text).not.toContain('Thank you');
      // The maximum length of a name holds for its field. A form without that field takes a longer address.
      const email = await page('fields="email"');
      expect(await send(email, { email: `${'a'.repeat(60)}@${'b.'.repeat(60)}example.org` })).toMatchObject({
        status: 200,
      });
      expect(faultsIn((await send(email, { email: '' })).html)).toEqual({ email: 'Please enter your email address.' });
    });

    // @proves plugin-12
    test('only the form that was sent shows its faults, even after its page has changed', async () => {
      const [form, other] = ['[lead_intake_form]', '[lead_intake_form fields="phone"]'];
      const url = await aPage(form + other + form);
      const change = (content: string) =>
        run(
          `wp_update_post(['ID' => ${new URL(url).searchParams.get('page_id')}, 'post_content' => ${phpText(content)}]);`,
        );
      const forms = formsIn(await (await fetch(url)).text());
      const ids = forms.flatMap((each) => [...each.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
      expect([forms.length, new Set(ids).size]).toEqual([3, 7]);
      const sealed = forms.map((each) => decoded(/\[form\]" value="([^"]+)"/.exec(each)?.[1] ?? ''));
      // A cache may still have this one from a release in which forms had no numbers.
      const old = await run(`$json = '{"fields":["phone"],"source":"","consent":"","at":0}';
        echo base64_encode($json), '.', hash_hmac('sha256', $json, wp_salt());`);
      const isShown = async (number: number) => {
        const { html } = await send(url, { form: sealed[number] ?? old, email: 'ada@', phone: '12' });
        return formsIn(html).map((each) => [each.includes('role="alert"'), /ada@|12"/.test(decoded(each))].join());
      };
      const [yes, no] = ['true,true', 'false,false'];
      expect(await isShown(0)).toEqual([yes, no, no]);
      expect(await isShown(1)).toEqual([no, yes, no]);
      expect(await isShown(3)).toEqual([no, yes, no]);
      define({ TEST_DESCRIPTION: true });
      expect(await isShown(2)).toEqual([no, no, yes]);
      define({});
      await change(form);
      expect(await isShown(0)).toEqual([yes]);
      expect(await isShown(1)).toEqual([no, yes]);
      await change('No form.');
      expect(await isShown(0)).toEqual([yes]);
    });

    // @proves plugin-12
    test('only the sent form shows its faults among those of several posts, a header and a footer', async () => {
      const posts = await run(`foreach (['One', 'Two'] as $title) echo wp_insert_post(['post_status' => 'publish',
        'post_title' => $title, 'post_content' => '[lead_intake_form][lead_intake_form]']), ' ';`);
      onTestFinished(async () => {
        define({});
        await run(`foreach (explode(' ', '${posts.trim()}') as $id) wp_delete_post((int) $id, true);`);
      });
      const url = site();
      for (const TEST_DESCRIPTION of [undefined, true]) {
        define({ TEST_THEME: 'classic', TEST_HEADER: '[lead_intake_form]', TEST_DESCRIPTION });
        const forms = formsIn(await (await fetch(url)).text());
        // The header, two posts with two forms each, and the footer.
        expect(forms).toHaveLength(6);
        for (const [index, form] of forms.entries()) {
          const sealed = decoded(/\[form\]" value="([^"]+)"/.exec(form)?.[1] ?? '');
          const { html } = await send(url, { form: sealed, email: 'ada@' });
          const shown = formsIn(html).map((each) => each.includes('role="alert"') && /ada@/.test(decoded(each)));
          expect(shown).toEqual(forms.map((_, each) => each === index));
        }
      }
    });

    test('its form says which fields are optional, and that one of two contacts is enough', async () => {
      const labels = async (url: string) =>
        [...(await (await fetch(url)).text()).matchAll(/<label class="lead-intake__label"[^>]*>([^<]*)/g)].map(
          ([, label]) => label,
        );
      expect((await labels(all)).slice(0, 4)).toEqual([
        ...['Name', 'Email (or phone)', 'Phone (or email)', 'Message (optional)'],
      ]);
      expect(await labels(await page(''))).toEqual(['Name', 'Email', 'Message (optional)']);
      expect(await labels(phone)).toEqual(['Phone']);
    });

    test('only pages with the form have its stylesheet, and a website can turn it off', async () => {
      const countIn = async (url: string) =>
        ((await (await fetch(url)).text()).match(/<link [^>]*\/lead-intake\/form\.css\?ver=\d/g) ?? []).length;
      const other = await aPage('No form.');
      for (const TEST_THEME of ['twentytwentythree', 'classic']) {
        define({ TEST_THEME });
        expect([await countIn(all), await countIn(other)]).toEqual([1, 0]);
        define({ TEST_THEME, TEST_NO_STYLE: true });
        expect(await countIn(all)).toBe(0);
      }
      define({});
      expect((await fetch(site('wp-content/plugins/lead-intake/form.css'))).status).toBe(200);
    });

    test('its form is shown again when a visitor has altered its settings', async () => {
      const [, hash = ''] = (await readSealed(all)).split('.');
      const form = `${Buffer.from('{"fields":["email"],"source":"","consent":"","at":0}').toString('base64')}.${hash}`;
      for (const altered of [form, '', '.', `${form}.x`]) {
        const answer = await send(all, { form: altered, email: 'eve@example.org', consent: '1' });
        expect(answer).toMatchObject({ status: 422, text: expect.stringContaining('eve@example.org') });
        expect(answer.html).toMatch(/role="alert" tabindex="-1" autofocus>Please send it once more\./);
      }
      expect(await captures()).toEqual([]);
    });

    // @proves plugin-4 bounds-130
    test(`${2 * BOT_POSTS} posts of a bot make no lead, and the post of a person makes one`, async () => {
      const bot = (number: number) => ({ name: 'Bot', email: `bot${number}@example.org`, consent: '1' });
      const refused = async (fields: Record<string, string>) =>
        expect(await send(all, fields)).toMatchObject({
          status: 422,
          text: expect.stringContaining('Please send it once more.'),
        });
      // Half of the posts fill in every field, and half are sent as soon as the bot has the page.
      const form = await readSealed(all);
      for (let number = 0; number < BOT_POSTS; number += 1)
        await refused({ ...bot(number), form, website: 'https://example.org' });
      // The minimum time is much longer than by default, because a busy machine takes longer than that for a page.
      define({ TEST_SECONDS: 100 });
      for (let number = 0; number < BOT_POSTS; number += 1) await refused(bot(BOT_POSTS + number));
      define({});
      await refused({ ...bot(2 * BOT_POSTS), name: 'a captcha says: a bot' });
      expect(await captures()).toEqual([]);
      expect(await send(all, { ...bot(2 * BOT_POSTS + 1), name: 'Ada' })).toMatchObject({ status: 200 });
      expect(await captures()).toHaveLength(1);
    });

    // @proves plugin-4 bounds-130 bounds-229
    test('its form takes at most twenty leads an hour from one network, and stores no address', async () => {
      await store({ proxy: 'HTTP_X_FORWARDED_FOR' });
      // The clock is in the middle of an hour.
      wordpress.clock.set(1800 - (Math.floor(Date.now() / 1000) % 3600));
      onTestFinished(() => wordpress.clock.set(0));
      const from = (address: string, number: number) =>
        send(phone, { phone: `+44 20 7946 ${1000 + number}` }, { 'x-forwarded-for': `198.51.100.1, ${address}` });
      const statuses = [];
      // These 256 addresses are one network.
      for (let number = 0; number < 21; number += 1) statuses.push((await from(`203.0.113.${number}`, number)).status);
      expect(statuses).toEqual([...Array(20).fill(200), 429]);
      expect((await from('2001:470:1:2::1', 100)).status).toBe(200);
      expect((await from('203.0.114.1', 101)).status).toBe(200);
      expect(await captures()).toHaveLength(22);
      wordpress.clock.set(0);
      const counts = await sql('SELECT * FROM _7x_lead_intake_throttle ORDER BY number');
      expect(counts.map((row) => Object.keys(row))).toEqual(Array(counts.length).fill(['bucket', 'hour', 'number']));
      expect(counts.at(-1)).toMatchObject({ number: 21 });
      await expect(sql('INSERT INTO _7x_lead_intake_throttle VALUES (65536, 1, 1)')).rejects.toThrow();
    });
  });

  describe('with administrators, and others', () => {
    /** The actions of the plugin's code, by the constants that name them. */
    const ACTIONS = globSync('sdk/wordpress/lead-intake/src/*.php', { cwd: ROOT }).flatMap((file) => {
      const code = readFileSync(join(ROOT, file), 'utf8');
      return [...code.matchAll(/Action::on\(self::(\w+),/g)].map(
        ([, name]) => new RegExp(`const ${name} = '(\\w+)'`).exec(code)?.[1] ?? '',
      );
    });
    let admin: Session;
    let editor: Session;
    let subjects: Record<string, string>;
    beforeAll(async () => {
      await activate();
      await run(`wp_insert_user(['user_login' => 'editor', 'user_pass' => ${phpText(PASSWORD)}, 'role' => 'editor']);`);
      [admin, editor] = [await wordpress.logIn('admin'), await wordpress.logIn('editor')];
      await run(`do_action('lead_intake_capture', ['displayName' => 'Ada', 'contact' => ['type' => 'email', 'value' => 'ada@example.org']]);
        LeadIntakePlugin\\Submissions::add('cf7:1', ['your-email' => 'Ada@Example.org', 'text' => 'Hello'], 'contact');
        LeadIntakePlugin\\Submissions::add('cf7:1', ['your-email' => 'joan@example.org'], 'contact');`);
      const [lead] = await sql(`SELECT idempotency_key AS id FROM ${TABLE}`);
      const [submission] = await sql('SELECT MIN(id) AS id FROM _7x_lead_intake_submissions');
      subjects = {
        lead_intake_compare: '',
        lead_intake_entry: String(lead?.id),
        lead_intake_map: 'cf7:1',
        lead_intake_submission: String(submission?.id),
        lead_intake_send_all: 'cf7:1',
        lead_intake_test: '',
      };
    });
    afterAll(deactivate);
    const state = async () => [
      await sql(`SELECT state, capture, next_attempt_at FROM ${TABLE}`),
      await sql('SELECT fields, fault, idempotency_key FROM _7x_lead_intake_submissions ORDER BY id'),
      await run(`echo json_encode(get_option('lead_intake_forms'));`),
    ];
    /** Returns the nonces of the pages that a user sees, by action and subject. */
    const readNonces = async (
      { cookie }: Session,
      name: string,
      actions: readonly string[],
    ): Promise<Record<string, string>> => {
      const [, loggedIn = ''] = /(?:^|; )wordpress_logged_in_[^=]+=([^;]+)/.exec(cookie) ?? [];
      return JSON.parse(
        await run(`$_COOKIE[LOGGED_IN_COOKIE] = ${phpText(decodeURIComponent(loggedIn))};
          wp_set_current_user(get_user_by('login', '${name}')->ID); $actions = json_decode(${phpText(JSON.stringify(actions))});
          echo json_encode(array_combine($actions, array_map('wp_create_nonce', $actions)));`),
      );
    };

    // @proves plugin-5
    test('a button works only with its own nonce, and only for an administrator', async () => {
      expect(ACTIONS.toSorted()).toEqual(Object.keys(subjects).toSorted());
      const before = await state();
      const fullNames = ACTIONS.map((action) => action + (subjects[action] ?? ''));
      const erasure = 'lead_intake_submission';
      const ofAdmin = await readNonces(admin, 'admin', [
        ...ACTIONS.map((action) => `${action}x`),
        ...fullNames,
        `${erasure}999`,
      ]);
      const ofEditor = await readNonces(editor, 'editor', fullNames);
      for (const action of ACTIONS) {
        const subject = subjects[action] ?? '';
        const fields = {
          action,
          subject,
          discard: '1',
          erase: '1',
          'mapping[connected]': '1',
          'mapping[email]': 'your-email',
        };
        const statuses = [
          (await admin.post(fields)).status,
          (await admin.post({ ...fields, _wpnonce: ofAdmin[`${action}x`] ?? '' })).status,
          (await editor.post({ ...fields, _wpnonce: ofEditor[action + subject] ?? '' })).status,
        ];
        expect({ action, statuses }).toEqual({ action, statuses: [403, 403, 403] });
        await fetch(site('wp-admin/admin-post.php'), { method: 'POST', body: new URLSearchParams(fields) });
      }
      expect(await state()).toEqual(before);
      for (const page of [
        'options-general.php?page=lead-intake-settings',
        'options-general.php?page=lead-intake-forms',
        'tools.php?page=lead-intake-leads',
      ]) {
        expect((await fetch(site(`wp-admin/${page}`), { headers: { cookie: editor.cookie } })).status).toBe(403);
      }
      // A nonce is for one subject: with another one's, the button does not work.
      const subject = subjects[erasure] ?? '';
      const fields = { action: erasure, erase: '1' };
      const other = { ...fields, subject: String(Number(subject) + 1), _wpnonce: ofAdmin[erasure + subject] ?? '' };
      expect((await admin.post(other)).status).toBe(403);
      expect((await admin.post({ ...fields, subject: '999', _wpnonce: ofAdmin[`${erasure}999`] ?? '' })).status).toBe(
        302,
      );
      expect(await state()).toEqual(before);
    });

    // @proves plugin-6
    test("WordPress's tools export and erase the website's data of one person, and of nobody else", async () => {
      const call = async (filter: string, email: string) =>
        JSON.parse(
          await run(
            `echo json_encode(apply_filters('wp_privacy_personal_data_${filter}', [])['lead-intake']['callback'](${phpText(email)}, 1));`,
          ),
        );
      const exported = await call('exporters', ' ada@EXAMPLE.org');
      expect(exported.done).toBe(true);
      expect(exported.data.map(({ data }: { data: unknown }) => data)).toEqual([
        [
          { name: 'name', value: 'Ada' },
          { name: 'contact', value: 'ada@example.org' },
        ],
        [
          { name: 'your-email', value: 'Ada@Example.org' },
          { name: 'text', value: 'Hello' },
        ],
      ]);
      expect(await call('exporters', 'da@example.org')).toMatchObject({ data: [] });
      expect(await call('erasers', 'ada@example.org')).toMatchObject({
        items_removed: 2,
        items_retained: false,
        done: true,
      });
      const [leads, submissions] = await state();
      expect(leads).toMatchObject([{ state: 'discarded', capture: null }]);
      expect(submissions).toMatchObject([{ fields: null }, { fields: expect.stringContaining('joan@example.org') }]);
      expect(await call('exporters', 'ada@example.org')).toMatchObject({ data: [] });
    });

    // @proves bounds-131 bounds-133 bounds-231
    test('at most 500 submissions are held, and their fields are erased a week after the delivery', async () => {
      const table = '_7x_lead_intake_submissions';
      const count = async (where: string) =>
        Number((await sql(`SELECT COUNT(*) AS n FROM ${table} WHERE ${where}`))[0]?.n);
      // A further one is refused, and its visitor is told: nothing is lost silently.
      const hold = (number: number) =>
        run(`try { for ($number = 0; $number < ${number}; $number += 1) LeadIntakePlugin\\Submissions::add('cf7:2', ['n' => "$number"], 'held'); }
          catch (RuntimeException $error) { echo $number, ': ', $error->getMessage(); }`);
      expect(await hold(501)).toBe('500: 500 submissions are held already');
      expect(await hold(1)).toBe('0: 500 submissions are held already');
      expect(await count("form = 'cf7:2'")).toBe(500);
      expect(await count(`form = 'cf7:2' AND fields = '{"n":"0"}'`)).toBe(1);
      // Held submissions are listed before those that need no attention, so that somebody can make room.
      await run(`for ($number = 0; $number < 10; $number += 1) LeadIntakePlugin\\Submissions::add('cf7:2', null, 'consent');
        LeadIntakePlugin\\Submissions::erase((int) LeadIntakePlugin\\Submissions::newest('cf7:2')[0]['id']);`);
      expect(await hold(2)).toBe('1: 500 submissions are held already');

      const key = (await sql(`SELECT idempotency_key AS id FROM ${TABLE}`))[0]?.id;
      await run(`LeadIntakePlugin\\Submissions::settle(LeadIntakePlugin\\Submissions::add('cf7:3', ['n' => 'x'], ''), '', '${key}');
        LeadIntakePlugin\\Submissions::add('cf7:4', ['n' => 'x'], '');`);
      const tidy = async (state: string, days: number, daysDelivered = days) => {
        const daysAgo = (number: number) => Math.floor(Date.now() / 1000) - number * 86_400;
        await sql(
          `UPDATE ${TABLE} SET state = '${state}', capture = NULL, settled_at = ${daysAgo(daysDelivered) * 1000}`,
        );
        await sql(`UPDATE ${table} SET created_at = ${daysAgo(days)}`);
        await run(`LeadIntakePlugin\\Submissions::tidy();`);
        return count("form = 'cf7:3' AND fields IS NOT NULL");
      };
      expect(await tidy('delivered', 6)).toBe(1);
      expect(await tidy('waiting', 100)).toBe(1);
      expect(await tidy('delivered', 100, 6)).toBe(1);
      expect(await tidy('delivered', 8)).toBe(0);
      expect(await tidy('delivered', 100)).toBe(0);
      // A submission without a lead stays. One that is too old for the list is removed.
      expect(await count("form = 'cf7:4' AND fields IS NOT NULL")).toBe(1);
      expect(await count("form = 'cf7:3'")).toBe(0);
    });

    // @proves clients-8
    test('"Test connection" says in one sentence whether address, key, scopes and clock are right', async () => {
      const issue = (...scopes: Scope[]) => service.aStudioWithKey({ scopes });
      const says = async (settings: object) => {
        await store(settings);
        const page = decoded(
          await admin.press('options-general.php?page=lead-intake-settings', 'lead_intake_test', 'button'),
        );
        return /<div id='setting-error-lead_intake' class='notice notice-(\w+)[^>]*>\s*<p><strong>([^<]*)/
          .exec(page)
          ?.slice(1);
      };
      const url = service.url;
      expect(await says({})).toEqual(['error', expect.stringContaining('No lead can be sent: The address must be')]);
      expect(await says({ url, key: studio.secret })).toEqual(['success', 'Address, key, scopes and clock are right.']);
      const creating = await issue('leads.create');
      expect(await says({ url, key: creating.secret })).toEqual([
        'success',
        expect.stringContaining('may create leads, and not read them'),
      ]);
      expect(await says({ url, key: (await issue('leads.read')).secret })).toEqual([
        'error',
        expect.stringContaining('it needs the scope leads.create'),
      ]);
      await service.revokeKey(creating);
      expect(await says({ url, key: creating.secret })).toEqual([
        'error',
        expect.stringContaining('The address is right, but the key is not'),
      ]);
      expect(await says({ url: 'http://127.0.0.1:1', key: studio.secret })).toEqual([
        'error',
        'No lead can be sent: Nothing accepts connections at the address: its port is wrong, or the service is down.',
      ]);
      expect(await says({ url: `${url}/elsewhere`, key: studio.secret })).toEqual([
        'error',
        expect.stringContaining('No lead can be sent: '),
      ]);
      for (const [status, code, sentence] of [
        [429, 'integration_rate_limited', 'The quota is used up, so this could not be checked: check again in 7 s.'],
        [
          503,
          'integration_unavailable',
          'The service answers, but cannot serve requests at present (503): check again later.',
        ],
      ]) {
        const body = JSON.stringify({ status, code, title: 'Not now' });
        // The clock in this response also differs from the website's.
        const head = `HTTP/1.1 ${status} Not now\r\ncontent-type: application/problem+json\r\ndate: Fri, 27 Nov 2020 00:00:00 GMT\r\n`;
        const reply = `${head}retry-after: 7\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`;
        proxy.replyTo(
          () => true,
          () => Buffer.from(reply),
        );
        expect(await says({ url: `http://127.0.0.1:${proxy.port}`, key: studio.secret })).toEqual([
          'error',
          `No lead can be sent: ${sentence}`,
        ]);
      }
      if (canClockBeSet) {
        wordpress.clock.set(900);
        onTestFinished(() => wordpress.clock.set(0));
        expect(await says({ url, key: studio.secret })).toEqual([
          'error',
          expect.stringMatching(/the clock of this website is not: .* 1\d minutes ahead/),
        ]);
        wordpress.clock.set(0);
      }
      expect(await service.countLeads(studio.studioId)).toBe(0);
    });

    // @proves plugin-11
    test('a WP-Cron that has stopped is reported on all pages within minutes', async () => {
      await store({ url: service.url, key: studio.secret });
      const fault = /No lead is sent: WP-Cron has not run since \d{4}-\d\d-\d\d \d\d:\d\d\./;
      const lateBy = (seconds: number) =>
        run(`wp_clear_scheduled_hook('lead_intake_deliver');
          wp_schedule_event(time() - ${seconds}, 'lead_intake_minute', 'lead_intake_deliver');`);
      const test = async () =>
        decoded(await admin.press('options-general.php?page=lead-intake-settings', 'lead_intake_test', 'button'));
      await run(`global $wpdb; $wpdb->query('DELETE FROM ' . LeadIntakePlugin\\Outboxes::table());
        do_action('lead_intake_capture', ['displayName' => 'Ada', 'contact' => ['type' => 'email', 'value' => 'ada@example.org']]);`);
      await lateBy(500);
      expect(await test()).toContain('Address, key, scopes and clock are right.');
      expect(await admin.page('index.php')).not.toMatch(fault);

      await lateBy(700);

      const settings = await test();
      expect(settings).toMatch(fault);
      expect(settings).not.toContain('clock are right.');
      expect(await admin.page('index.php')).toMatch(fault);
      await run(`global $wpdb; $wpdb->query('UPDATE ' . LeadIntakePlugin\\Outboxes::table() . ' SET created_at = 1');`);
      expect(await admin.page('tools.php?page=lead-intake-leads')).toMatch(
        new RegExp(`<td class="texts">${fault.source}`),
      );
      await lateBy(0);
      await run(`global $wpdb; $wpdb->query('DELETE FROM ' . LeadIntakePlugin\\Outboxes::table());`);
    });

    // @proves plugin-11
    test('a setting that only the process of WP-Cron lacks is reported on all pages and by mail', async () => {
      await store({ url: service.url, key: studio.secret });
      const test = async () =>
        decoded(await admin.press('options-general.php?page=lead-intake-settings', 'lead_intake_test', 'button'));
      const pass = `do_action('lead_intake_deliver');`;
      // Only the web server's environment has the key.
      await run(pass, `define('LEAD_INTAKE_KEY', getenv('LEAD_INTAKE_NO_KEY'));`);
      const noKey = /WP-Cron could not send leads: [^<]*key/;
      expect(await test()).toMatch(noKey);
      expect(await admin.page('index.php')).toMatch(noKey);
      await run(pass);
      expect(await admin.page('index.php')).not.toContain('WP-Cron could not');

      // These settings of PHP are the machine's, without curl.
      const folder = temporaryFolder();
      const { stdout } = await runCommands(`php -r 'echo php_ini_scanned_files();'`, {});
      const files = stdout.split(',').map((file) => file.trim());
      for (const file of files) if (!file.includes('curl')) cpSync(file, join(folder, basename(file)));
      const table = '_7x_lead_intake_submissions';
      await run(`LeadIntakePlugin\\Submissions::add('cf7:5', null, 'consent');
        $wpdb->query("UPDATE ${table} SET created_at = 1 WHERE form = 'cf7:5'");
        foreach (['lead_intake_deliver' => 'lead_intake_minute', 'lead_intake_report' => 'daily'] as $hook => $recurrence) {
            wp_clear_scheduled_hook($hook); wp_schedule_event(time(), $recurrence, $hook);
        }`);
      const before = toText('mails');
      await cron({ PHP_INI_SCAN_DIR: folder });
      const noCurl = /WP-Cron could not send leads: [^<]*curl/;
      expect(await test()).toMatch(noCurl);
      expect(await admin.page('index.php')).toMatch(noCurl);
      expect(toText('mails').slice(before.length)).toMatch(/No lead can be sent: [^"]*curl/);
      expect(await sql(`SELECT * FROM ${table} WHERE form = 'cf7:5'`)).toEqual([]);
      // A changed setting clears the fault, because it may be right.
      await store({ url: `${service.url}/`, key: studio.secret });
      expect(await test()).toContain('Address, key, scopes and clock are right.');
    });

    test('Tools › Leads says that no lead needs attention, and the settings say what to enter', async () => {
      await run(`global $wpdb; $wpdb->query('DELETE FROM ' . LeadIntakePlugin\\Outboxes::table());`);
      const leads = await admin.page('tools.php?page=lead-intake-leads');
      expect(leads).toMatch(
        /<h2>Leads that need attention<\/h2><p>Nothing\. No lead needs attention\.<\/p><h2>The newest leads<\/h2><table/,
      );
      const settings = decoded(await admin.page('options-general.php?page=lead-intake-settings'));
      expect(settings).toMatch(/Address of the service<\/label>[\s\S]*API key<\/label>[\s\S]* placeholder="lik_…"/);
      expect(settings).toContain("Visitors' addresses are unknown here, so submissions are not limited.");
    });

    test('Tools › Leads compares sent leads with the service, and lists the missing ones', async () => {
      const { secret, studioId } = await service.aStudioWithKey();
      await store({ url: service.url, key: secret });
      const before = await service.countLeads(studioId);
      const add = (name: string) =>
        `LeadIntakePlugin\\Outboxes::own()->add(['displayName' => '${name}', 'contact' => ['type' => 'email', 'value' => '${name}@example.org']]);`;
      await run(
        `global $wpdb; $wpdb->query('DELETE FROM ' . LeadIntakePlugin\\Outboxes::table()); ${add('ada')} ${add('joan')}
      LeadIntakePlugin\\Outboxes::own()->deliver(LeadIntakePlugin\\Settings::client());`,
      );
      expect(await service.countLeads(studioId)).toBe(before + 2);
      const compare = async () =>
        decoded(await admin.press('tools.php?page=lead-intake-leads', 'lead_intake_compare', 'button'));
      const shown = await compare();
      expect(shown).toMatch(/notice notice-success[\s\S]*2 sent since \S+, 2 there\./);
      // The row of a delivered lead says that its data is erased.
      expect(
        shown.match(/<td class="texts">The data is erased here\.\n[\da-f-]{36}<\/td><td>delivered</g),
      ).toHaveLength(2);
      const [lead] = await service.readLeads(studioId);
      await service.eraseLead(studioId, lead?.id ?? '');
      const page = await compare();
      expect(page).toMatch(/notice notice-error[\s\S]*2 sent since \S+, 1 there/);
      expect(page).toMatch(new RegExp(`<p class="texts">[^<]*${lead?.id}`));
      await store({});
      expect(await compare()).toMatch(/notice notice-error/);
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
        // The plugin leaves jobs behind, whose schedules are gone.
        await run(`${FIRST} deactivate_plugins('${plugin.file}'); delete_option('cron');`);
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
      const submit = (values: Submission, headers: Record<string, string> = {}) =>
        plugin.submit(site, form.split(':')[1] ?? '', values, headers);
      const map = (parts: Readonly<Record<string, string>>, more: object = { connected: '1', rest: '1' }) =>
        admin.press(
          page,
          'name="mapping[email]"',
          'submit',
          Object.fromEntries(
            Object.entries({ ...parts, ...more }).map(([part, field]) => [`mapping[${part}]`, String(field)]),
          ),
        );
      const submissions = () => sql('SELECT form, fields, fault FROM _7x_lead_intake_submissions ORDER BY id');
      const inCrm = async () =>
        (await service.readLeads(leads.studioId)).map(({ displayName, note }) => ({ displayName, note }));

      test('a form is connected on one page, and each submission with consent makes one lead', async () => {
        const { email, name, note, consent } = plugin.fields;
        // A form that is not connected stores nothing.
        expect(await submit(person('Ada'))).toContain(THANKS);
        expect(await submissions()).toEqual([]);
        // A form that was deleted has no fields.
        expect(await run(`echo json_encode(LeadIntakePlugin\\FormPlugins::fields('${plugin.name}:999'));`)).toBe('[]');

        // The fields are proposed by their names.
        const proposed = await admin.page(page);
        expect(proposed).toContain(`<option value="${form}" selected='selected'>`);
        expect(proposed).not.toContain('<b>of');
        for (const field of [email, name, note])
          expect(proposed).toContain(`<option value="${field}" selected='selected'>`);
        expect(await map({ email, name, note, consent })).toContain('The fields are saved.');

        expect(await Promise.all([submit(person('Mary')), submit(person('Mary'))])).toEqual(
          Array(2).fill(expect.stringContaining(THANKS)),
        );
        expect(await submit(person('Eve', { consent: '' }))).toContain(THANKS);
        expect(await submit(person('Hedy', { note: `Caf${NO_UTF8}` }))).toContain(THANKS);
        await cron();
        const label = { cf7: 'animal', fluent: 'Your animal', wpforms: 'Your animal', gravity: 'Animal' }[plugin.name];
        const lead = (displayName: string, text: string) => ({ displayName, note: `${text}\n\n${label}: dog` });
        expect(await inCrm()).toEqual([lead('Hedy Hopper', 'Caf\ufffd'), lead('Mary Hopper', 'Zoë 𝔊 asks')]);
        expect(JSON.stringify(await submissions())).not.toContain('eve@example.org');
        expect(await admin.page(page)).toContain('The visitor has not agreed');
      });

      test('a visitor is not thanked when the submission cannot be stored', async () => {
        await sql('RENAME TABLE _7x_lead_intake_submissions TO away');
        const answer = await submit(person('Hedy'));
        await sql('RENAME TABLE away TO _7x_lead_intake_submissions');
        expect(answer).toContain('That could not be stored. Please send it again later.');
        expect(answer).not.toContain(THANKS);
      });

      // The plugin for leads handles the stored submissions of all form plugins alike.
      if (plugin.name !== 'cf7') return;

      test('a submission that no mapping fits is kept, shown, and sent once the mapping is corrected', async () => {
        const { email, name, note, consent } = plugin.fields;
        const before = (await inCrm()).length;
        expect(await map({ name: email })).toContain('Choose the field of the email address');
        expect(await map({ email, source: 'no id' })).toContain('The source must be its id');
        expect(await map({ email: name, name: email })).toContain('The fields are saved.');
        // Nobody can make a lead from these.
        expect(await submit(person('Grace'))).toContain(THANKS);
        expect(await submit(person('Joan'))).toContain(THANKS);
        expect((await submissions()).slice(-2)).toMatchObject(
          Array(2).fill({ form, fault: 'contact', fields: expect.stringContaining('@example.org') }),
        );
        await cron();
        expect(await inCrm()).toHaveLength(before);
        const shown = await admin.page(page);
        expect(shown).toContain('No email address or phone number was found.');
        expect(shown).toContain('2 submissions of forms need somebody to look at them.');
        const mails = toText('mails');
        await report();
        expect(toText('mails').slice(mails.length)).toContain('2 submissions of forms need somebody to look at them.');

        await map({ email, name, note, consent });
        await admin.press(page, 'lead_intake_send_all', 'submit');
        await cron();
        expect(
          (await inCrm())
            .slice(0, 2)
            .map(({ displayName }) => displayName)
            .toSorted(),
        ).toEqual(['Grace Hopper', 'Joan Hopper']);
        expect(await admin.page(page)).toContain('delivered');
        expect(await admin.page(page)).not.toContain('of forms need somebody');
      });

      // @proves bounds-130
      test('excess submissions of one network are held until somebody sends them', async () => {
        const before = (await inCrm()).length;
        define({ TEST_MOST: 1 });
        const address = { 'x-forwarded-for': '203.0.113.7' };
        await store({ url: service.url, key: leads.secret, proxy: 'HTTP_X_FORWARDED_FOR' });
        for (const name of ['Annie', 'Bot', 'Radia']) expect(await submit(person(name), address)).toContain(THANKS);
        define({});
        await cron();
        expect(await inCrm()).toHaveLength(before + 1);
        // The newest one is first.
        const held = 'lead_intake_submission';
        expect(await admin.press(page, held, 'again')).toContain('Held: one network sent more than people do');
        await cron();
        expect((await inCrm()).map(({ displayName }) => displayName)).toEqual(
          expect.arrayContaining(['Annie Hopper', 'Radia Hopper']),
        );
        expect(JSON.stringify(await inCrm())).not.toContain('Bot');
        expect((await submissions()).filter(({ fault }) => fault === 'held')).toHaveLength(1);
        // A visitor is not thanked when the list is full, until somebody makes room.
        await run(
          `try { while (true) LeadIntakePlugin\\Submissions::add('${form}', ['n' => 'x'], 'held'); } catch (RuntimeException) {}`,
        );
        define({ TEST_MOST: 1 });
        const answer = await submit(person('Late'), address);
        expect(answer).toContain('That could not be stored. Please send it again later.');
        expect(answer).not.toContain(THANKS);
        await admin.press(page, 'lead_intake_send_all', 'erase');
        expect(await submit(person('Later'), address)).toContain(THANKS);
        define({});
        expect((await submissions()).filter(({ fault, fields }) => fault === 'held' && fields !== null)).toMatchObject([
          { fields: expect.stringContaining('Later') },
        ]);
        // Held submissions of a form that is no longer connected can be erased, but not sent.
        await map({}, {});
        const shown = await admin.page(page);
        expect(shown).toContain('Erase all that are held');
        expect(shown).not.toMatch(/Send again<|Send all again/);
        await admin.press(page, 'lead_intake_send_all', 'erase');
        expect((await submissions()).filter(({ fault, fields }) => fault === 'held' && fields !== null)).toEqual([]);
        const { email, name, note, consent } = plugin.fields;
        await map({ email, name, note, consent });
      });

      test("a message that is too long by the service's count of line breaks is cut", async () => {
        await map(plugin.fields);
        const note = (length: number) => `${'x'.repeat(17)}\r\n`.repeat(110) + 'y'.repeat(length - 1980);
        const most = 2000 - '\n\nanimal: dog'.length;
        await submit(person('Long', { note: note(most) }));
        await submit(person('Longer', { note: note(most + 1) }));
        expect((await submissions()).slice(-2).map(({ fault }) => fault)).toEqual(['', 'cut']);
        await cron();
        expect((await inCrm()).find(({ displayName }) => displayName === 'Long Hopper')?.note).toHaveLength(2000);
      });

      // @proves bounds-130
      test('one network cannot fill the list with submissions that have no consent', async () => {
        const { email, consent } = plugin.fields;
        await map({ email, consent });
        await store({ url: service.url, key: leads.secret, proxy: 'HTTP_X_FORWARDED_FOR' });
        const before = (await submissions()).length;
        define({ TEST_MOST: 2 });
        const bot = person('Bot', { consent: '' });
        for (let number = 0; number < 4; number += 1) await submit(bot, { 'x-forwarded-for': '203.0.115.7' });
        define({});
        const added = (await submissions()).slice(before);
        expect(added).toEqual(Array(2).fill({ form, fields: null, fault: 'consent' }));
      });

      describe('when submissions of a double click are sent again', () => {
        const waiting = async () =>
          (await sql(`SELECT capture FROM ${TABLE} WHERE state = 'waiting' AND capture IS NOT NULL`)).map(
            ({ capture }) => JSON.parse(String(capture)).note,
          );
        const READ = () => `$list = LeadIntakePlugin\\Submissions::undelivered('${form}');`;
        const SEND = 'array_map(LeadIntakePlugin\\Intake::sendAgain(...), $list);';
        beforeEach(async () => {
          for (const table of [TABLE, '_7x_lead_intake_submissions']) await sql(`DELETE FROM ${table}`);
          const { email, name, note, consent } = plugin.fields;
          await map({ email, name, note, consent }, { connected: '1' });
          for (const animal of ['cat', 'dog']) expect(await submit(person('Alan', { animal }))).toContain(THANKS);
        });
        const ONE = ['Zoë 𝔊 asks'];

        test('two submissions of a double click stay one lead unless the mapping makes them differ', async () => {
          await admin.press(page, 'lead_intake_send_all', 'submit');
          expect(await waiting()).toEqual(ONE);
          const { email, name, note, consent } = plugin.fields;
          await map({ email, name, note, consent });
          await admin.press(page, 'lead_intake_send_all', 'submit');
          expect((await waiting()).map((text) => text.split(': ')[1]).toSorted()).toEqual(['cat', 'dog']);
        });

        test.each([
          ['delivered', 'LeadIntakePlugin\\Outboxes::own()->deliver(LeadIntakePlugin\\Settings::client());', []],
          ['discarded', "LeadIntakePlugin\\Outboxes::own()->discard($list[0]['key']);", []],
          ['erased', "foreach ($list as $each) LeadIntakePlugin\\Submissions::erase((int) $each['id']);", ONE],
          ['sent again', SEND, ONE],
        ])('a submission is not sent again if it was %s after the list was read', async (_, meanwhile, expected) => {
          await run(`${READ()} ${meanwhile} ${SEND}`);
          expect(await waiting()).toEqual(expected);
        });

        test('a submission is not sent again while its lead is in flight', async () => {
          await store({ url: `http://127.0.0.1:${proxy.port}`, key: leads.secret });
          const opened = proxy.opened();
          proxy.silence();
          const pass = cron();
          await vi.waitUntil(() => proxy.opened() > opened, { timeout: 30_000, interval: 20 });
          await admin.press(page, 'lead_intake_send_all', 'submit');
          proxy.heal();
          await pass;
          await cron();
          await store({ url: service.url, key: leads.secret });
          expect(await sql(`SELECT state, attempts FROM ${TABLE}`)).toEqual([
            { state: expect.stringMatching(/^(delivered|already_open)$/), attempts: 1 },
          ]);
        });

        test('no worker can store the outcome of a lead while its submission is sent again', async () => {
          const said =
            await run(`${READ()} $other = new wpdb(DB_USER, DB_PASSWORD, DB_NAME, DB_HOST); $other->suppress_errors();
              $other->query('SET innodb_lock_wait_timeout = 0');
              add_filter('query', function ($sql) use ($other) {
                static $isBefore = true;
                if ($isBefore && str_starts_with($sql, 'UPDATE ${TABLE}')) {
                  $isBefore = false;
                  $other->query("UPDATE ${TABLE} SET state = 'delivered', capture = NULL WHERE state = 'waiting'");
                  echo $other->last_error;
                }
                return $sql;
              });
              ${SEND}`);
          expect(said).toContain('Lock wait timeout');
          expect(await waiting()).toEqual(ONE);
        });

        test.each([
          ['refuses', "'NONE'"],
          ['loses the connection at', "$other->query('KILL ' . $wpdb->dbh->thread_id) ? $sql : $sql"],
        ])('exactly one lead waits, whichever statement the database %s', async (_, answer) => {
          let number = 0;
          for (let said = ''; said !== 'done'; number += 1) {
            said = await run(`${READ()} ini_set('display_errors', '0'); ini_set('error_log', '/dev/null');
              global $wpdb; $other = new wpdb(DB_USER, DB_PASSWORD, DB_NAME, DB_HOST); $left = ${number};
              add_filter('query', function ($sql) use (&$left, $other) {
                global $wpdb;
                return preg_match('/_7x_lead_intake|COMMIT/', $sql) && $left-- === 0 ? ${answer} : $sql;
              });
              try { LeadIntakePlugin\\Intake::sendAgain($list[0]); } catch (RuntimeException) {}
              echo $left < 0 ? '' : 'done';`);
            expect(await waiting(), `after statement ${number}`).toEqual(ONE);
            const held = await sql(
              `SELECT o.state FROM _7x_lead_intake_submissions s LEFT JOIN ${TABLE} o ON o.idempotency_key = s.idempotency_key`,
            );
            expect(held, `after statement ${number}`).toEqual([{ state: 'waiting' }, { state: 'waiting' }]);
          }
          expect(number).toBeGreaterThan(5);
        });
      });
    });

  for (const plugin of FORM_PLUGINS)
    describeForms(plugin, `with a double of ${plugin.title}`, plugin.double, plugin.creation);

  const { WORDPRESS_PLUGINS_DIR } = process.env;
  for (const plugin of FORM_PLUGINS.filter(({ isFree }) => isFree)) {
    const folder = join(WORDPRESS_PLUGINS_DIR ?? '', plugin.file.split('/')[0] ?? '');
    if (WORDPRESS_PLUGINS_DIR !== undefined && existsSync(folder)) {
      describeForms(plugin, `with ${plugin.title} itself`, folder, plugin.realCreation ?? plugin.creation);
    } else {
      const remedy = 'set WORDPRESS_PLUGINS_DIR to a folder that has contact-form-7 and fluentform';
      console.warn(`NOT RUN: the plugin for WordPress with ${plugin.title} itself. To run it, ${remedy}.`);
    }
  }

  describe('as it is installed', () => {
    beforeAll(activate);
    afterAll(deactivate);

    // @proves plugin-1
    test("it runs beside another release of the client, with texts in the website's language", async () => {
      const linted = await runCommands(
        'find sdk/wordpress/build -name "*.php" -print0 | xargs -0 -n 1 -P 2 php -l',
        {},
      );
      expect([linted.status, linted.stderr]).toEqual([0, '']);
      expect(linted.stdout.match(/^No syntax errors/gm)?.length).toBeGreaterThan(60);
      for (const [locale, message, several] of [
        ['de_DE', 'Nachricht (freiwillig)', 'Um 2 Leads muss sich jemand kümmern.'],
        ['fr_FR', 'Message (facultatif)', '2 prospects demandent l’attention de quelqu’un.'],
      ]) {
        define({ TEST_LOCALE: locale });
        expect(await (await fetch(site('?pagename=contact'))).text()).toContain(`>${message}</label>`);
        const text = await run(`echo sprintf(_n('%d lead needs somebody to look at it.', '', 2, 'lead-intake'), 2);`);
        expect(text).toBe(several);
      }
      define({});
    });

    // @proves plugin-9 bounds-132 bounds-230
    test('it is updated only with the package that the deployment in its settings describes', async () => {
      const zip = await makeZip(
        new Map(
          [...pluginFiles()].map(([path, file]) => [
            path,
            path.endsWith('/lead-intake.php') ? withVersion(file) : file,
          ]),
        ),
      );
      const offer = { ...pluginUpdate('lead-intake-9.9.9.zip', zip), version: '9.9.9' };
      /** The descriptions of the update, in order; the last one is repeated. */
      const described: unknown[] = [];
      let served = zip;
      const requests: string[] = [];
      const deployment = createServer((request, response) => {
        requests.push(request.url ?? '');
        if (request.url === '/docs/packages/wordpress.json')
          response.end(JSON.stringify(described.length > 1 ? described.shift() : described[0]));
        else if (request.url === '/docs/packages/lead-intake-9.9.9.zip') response.end(served);
        else response.writeHead(302, { location: '/docs/packages/lead-intake-9.9.9.zip' }).end();
      });
      await new Promise<void>((resolve) => deployment.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void deployment.close());
      const url = `http://127.0.0.1:${(deployment.address() as AddressInfo).port}`;
      /** Looks for an update and installs the offer. Returns the offered release, the upgrader's message, and the installed release. */
      const update = async (settings: object, between = '') => {
        await store(settings);
        const printed = await run(
          `require_once ABSPATH . 'wp-admin/includes/admin.php'; require_once ABSPATH . 'wp-admin/includes/class-wp-upgrader.php';
          $plugin = 'lead-intake/lead-intake.php'; delete_site_transient('update_plugins'); wp_update_plugins();
          $offered = get_site_transient('update_plugins')->response[$plugin]->new_version ?? null; ${between}
          $upgrader = new Plugin_Upgrader($skin = new Automatic_Upgrader_Skin()); $offered && $upgrader->upgrade($plugin);
          $said = array_slice($skin->get_upgrade_messages(), -1)[0] ?? null;
          echo json_encode([$offered, $said, get_plugin_data(WP_PLUGIN_DIR . "/$plugin")['Version'], is_plugin_active($plugin)]);`,
          `define('FS_METHOD', 'direct');`,
        );
        return JSON.parse(printed.slice(printed.lastIndexOf('[')));
      };
      const { version } = pluginUpdate('', zip);
      /** Looks for an update at each of these addresses, and returns the offered releases. */
      const offers = async (urls: readonly string[]) =>
        JSON.parse(
          await run(`require_once ABSPATH . 'wp-admin/includes/admin.php'; echo json_encode(array_map(function ($url) {
            update_option('lead_intake_settings', ['url' => $url]); delete_site_transient('update_plugins'); wp_update_plugins();
            return get_site_transient('update_plugins')->response['lead-intake/lead-intake.php']->new_version ?? null;
          }, json_decode(${phpText(JSON.stringify(urls))})));`),
        );
      const wrong = [
        { ...offer, package: 'http://127.0.0.1:1/lead-intake-9.9.9.zip' },
        { ...offer, package: '../lead-intake-9.9.9.zip' },
        { ...offer, package: '//elsewhere.example/a.zip' },
        { ...offer, sha256: '' },
        { ...offer, version: '9' },
        { ...offer, padding: 'x'.repeat(20_000) },
        { ...offer, version },
        'no offer',
      ];
      described.push(...wrong, offer);
      expect(await offers([...wrong, offer].map(() => url))).toEqual([...wrong.map(() => null), '9.9.9']);
      requests.length = 0;
      const port = new URL(url).port;
      const unsafe = ['', `http://localhost.example:${port}`, `http://user@127.0.0.1:${port}`, 'ftp://127.0.0.1'];
      expect(await offers(unsafe)).toEqual(unsafe.map(() => null));
      expect(requests).toEqual([]);

      const isOther = [
        '9.9.9',
        'The update could not be downloaded, or is not the one that was offered.',
        version,
        true,
      ];
      described.splice(0, 1, { ...offer, sha256: offer.sha256.replaceAll(/./g, '0') });
      expect(await update({ url })).toEqual(isOther);
      described.splice(0, 1, offer);
      served = Buffer.concat([zip, Buffer.alloc(11 * 2 ** 20)]);
      described.splice(0, 1, { ...pluginUpdate('lead-intake-9.9.9.zip', served), version: '9.9.9' });
      expect(await update({ url })).toEqual(isOther);
      served = zip;
      described.splice(0, 1, { ...offer, package: 'redirected.zip' });
      expect(await update({ url })).toEqual(['9.9.9', 'the answer was 302', version, true]);
      described.splice(0, 1, offer);
      // The address of the settings changes after the offer.
      const moved = `update_option('lead_intake_settings', ['url' => 'https://elsewhere.example']);`;
      expect(await update({ url }, moved)).toEqual([
        '9.9.9',
        'The update is not from the deployment to which leads are sent.',
        version,
        true,
      ]);

      expect(await update({ url })).toEqual(['9.9.9', 'Plugin updated successfully.', '9.9.9', false]);
      // WordPress also activates it again in the next request.
      await activate();
      expect(await (await fetch(site('?pagename=contact'))).text()).toContain('lead_intake[form]');
      restore();
    });
  });

  describeWithChromium('in a browser', (open) => {
    const NO_FAULTS = { overflow: 0, unlabelled: [], hacked: false, violations: [] };
    const SIZES = [
      [1280, 900],
      [390, 844],
    ] as const;

    // @proves plugin-12
    test('its form fits a computer and a phone in two kinds of themes, and focuses the first fault', async () => {
      await activate();
      const url = await aPage('[lead_intake_form fields="name email phone note" consent="I agree to all of it."]');
      for (const TEST_THEME of ['twentytwentythree', 'classic']) {
        define({ TEST_THEME });
        for (const [width, height] of SIZES) {
          const visitor = await open(url, { viewport: { width, height } });
          const look = async (state: string) => {
            expect(await readFaults(visitor, '.lead-intake', `form-${TEST_THEME}-${state}`)).toEqual(NO_FAULTS);
            const small = await visitor.evaluate(`
              [...document.querySelectorAll('.lead-intake :is([type=text], textarea, button)')].filter((part) =>
                part.offsetHeight < 44 || parseFloat(getComputedStyle(part).fontSize) < (part.matches('button') ? 0 : 16)).length`);
            expect(small).toBe(0);
          };
          await look('new');
          // Chromium logs a status of 422 as an error.
          await visitor.route(url, async (route) => route.fulfill({ response: await route.fetch(), status: 200 }));
          await visitor.getByLabel('Email (or phone)').fill('ada@');
          await visitor.evaluate(`document.querySelector('.lead-intake').noValidate = true`);
          await Promise.all([visitor.waitForEvent('load'), visitor.getByRole('button', { name: 'Send' }).click()]);
          await look('wrong');
          const link = await visitor.evaluate(`(() => {
            const link = document.querySelector('.lead-intake__summary a');
            const { color, textDecorationLine } = getComputedStyle(link);
            return [color === getComputedStyle(link.parentElement).color, textDecorationLine];
          })()`);
          expect(link).toEqual([true, 'underline']);
          expect(await visitor.locator(':focus').getAttribute('name')).toBe('lead_intake[name]');
        }
      }
      await deactivate();
    });

    // @proves plugin-5 plugin-10
    test('its pages fit a computer and a phone, label each field, and show hostile texts as text', async () => {
      const hostile = `<script>hacked=1</script>"><img src=x onerror=hacked=1>' 𝔊 [lead_intake_form] ${'long'.repeat(80)}`;
      await activate();
      const { secret: key } = await service.aStudioWithKey();
      await store({ url: service.url, key, proxy: 'HTTP_X_REAL_IP' });
      const [double] = FORM_PLUGINS;
      if (double === undefined) return;
      cpSync(double.double, wordpress.inSite('wp-content/plugins/contact-form-7'), { recursive: true });
      await run(`${FIRST} activate_plugin('${double.file}');`);
      const id = await run(`$title = ${phpText(hostile)}; ${double.creation}`);
      await run(
        `update_option('lead_intake_forms', ['cf7:${id}' => ['email' => 'your-email', 'name' => 'your-name', 'rest' => '1', 'source' => '']]);`,
      );
      const values = { name: hostile, note: hostile, animal: hostile, consent: '' };
      await double.submit(site, id, { ...values, email: 'ada@example.org' }, {});
      await double.submit(site, id, { ...values, email: hostile }, {});
      await run(
        `do_action('lead_intake_capture', ['displayName' => ${phpText(hostile)}, 'contact' => ['type' => 'email', 'value' => 'x']]);`,
      );
      await cron();

      const admin = await open(site('wp-login.php'));
      await admin.fill('#user_login', 'admin');
      await admin.fill('#user_pass', PASSWORD);
      await Promise.all([admin.waitForEvent('load'), admin.click('#wp-submit')]);
      for (const page of [
        'options-general.php?page=lead-intake-settings',
        `options-general.php?page=lead-intake-forms&form=cf7:${id}`,
        'tools.php?page=lead-intake-leads',
      ]) {
        await admin.goto(site(`wp-admin/${page}`));
        for (const [width, height] of SIZES) {
          await admin.setViewportSize({ width, height });
          expect(await readFaults(admin)).toEqual(NO_FAULTS);
        }
        if (!page.includes('settings'))
          expect(await admin.locator('.wrap').innerText()).toContain('<script>hacked=1</script>"><img');
      }
      await run(`${FIRST} deactivate_plugins('${double.file}');`);
      await deactivate();
    });
  });

  test('it is set up in the admin pages, sends each lead once after an outage, and shows no key', async () => {
    const [SETTINGS, LEADS] = ['options-general.php?page=lead-intake-settings', 'tools.php?page=lead-intake-leads'];
    const admin = await wordpress.logIn('admin');
    const pages: string[] = [];
    /** Records and returns the HTML of a page. */
    const shown = async (page: Promise<string>) => {
      pages.push(await page);
      return pages.at(-1) ?? '';
    };
    /** Returns the address of a link in the list of plugins. */
    const linkTo = async (action: string) => {
      const link = new RegExp(`<a href="([^"]+)" id="${action}-lead-intake"`);
      return decoded(link.exec(await admin.page('plugins.php'))?.[1] ?? '');
    };
    expect(await admin.page(await linkTo('activate'))).toContain('Leads are stored, but none is sent');
    expect(await admin.page('plugins.php')).toMatch(/page=lead-intake-settings">Settings</);

    // A visitor may come before the plugin is configured.
    const note = 'Zoë 𝔊 says: "50 % <b>off</b>\\n" – it\'s\non two lines?';
    const contact = site('?pagename=contact');
    const form = await openForm(contact);
    const thanks = form.send({ name: 'Grace <i>Hopper</i>', email: 'grace@example.org', message: note });
    expect(await shown(thanks.then(({ text }) => text))).toContain('Thank you.');
    await cron();
    expect(await rows()).toMatchObject([{ state: 'waiting', reason: null }]);

    const save = (url: string, key: string) =>
      shown(
        admin.press(SETTINGS, 'option_page', 'submit', {
          'lead_intake_settings[url]': url,
          'lead_intake_settings[key]': key,
          'lead_intake_settings[proxy]': '',
        }),
      );
    const wrong = await save('http://example.org', 'no key');
    expect(wrong).toContain('The address must be like');
    expect(wrong).toContain('That is not a key');
    const url = `http://127.0.0.1:${proxy.port}`;
    expect(await save(url, studio.secret)).toContain('A key is stored.');
    // Saving without a key keeps the stored one.
    expect(await save(url, '')).toContain('A key is stored.');
    await shown(fetch(contact).then((page) => page.text()));

    // The service is unavailable.
    proxy.refuse();
    await cron();
    const waiting = await shown(admin.page(LEADS));
    expect(waiting).toContain('Grace &lt;i&gt;Hopper&lt;/i&gt;');
    expect(waiting).toContain('no answer: ');
    expect(await service.countLeads(studio.studioId)).toBe(0);

    // It is available again, and an administrator retries immediately.
    proxy.heal();
    await shown(admin.press(LEADS, 'name="retry"', 'retry'));
    await cron();
    expect(await rows()).toMatchObject([{ state: 'delivered', capture: null, reason: null }]);
    const { leads } = (await (await service.get(studio.secret)).json()) as { leads: { id: string }[] };
    expect(leads).toMatchObject([{ displayName: 'Grace <i>Hopper</i>', note }]);
    expect(await admin.page(LEADS)).toContain(`${leads[0]?.id}</td><td>delivered<`);

    // Another plugin adds a lead. With a key in wp-config.php, the settings have no field for one.
    define({ LEAD_INTAKE_KEY: studio.secret });
    await run(findExample('sdk/wordpress/README.md', 'wordpress-hook'));
    await cron();
    expect(await service.countLeads(studio.studioId)).toBe(2);
    const configured = await shown(admin.page(SETTINGS));
    expect(configured).toContain('wp-config.php has it');
    expect(configured).not.toContain('[key]"');
    expect(pages.join('')).not.toContain(studio.secret);

    // Deleting the plugin deletes its tables, because every lead is delivered.
    await admin.page(await linkTo('deactivate'));
    await admin.press(await linkTo('delete'), 'verify-delete', 'submit');
    expect(await sql("SHOW TABLES LIKE '%lead_intake%'")).toEqual([]);
    const settings = "SELECT * FROM 7x_options WHERE option_name LIKE '%lead_intake_settings%'";
    expect(await sql(settings)).toEqual([]);
  });

  // This test comes last, because it turns the website into a network.
  // @proves plugin-7
  test('each website of a network has its own tables, and keeps them while it has unsent leads', async () => {
    restore();
    const host = (path: string) =>
      `$_SERVER['HTTP_HOST'] = $_SERVER['REMOTE_ADDR'] = '127.0.0.1'; $_SERVER['REQUEST_URI'] = '${path}';`;
    await run(
      `${FIRST} require ABSPATH . 'wp-admin/includes/upgrade.php'; require ABSPATH . 'wp-admin/includes/network.php';
      foreach ($wpdb->tables('ms_global') as $table => $name) $wpdb->$table = $name;
      install_network(); populate_network(1, '127.0.0.1', 'admin@example.org', 'A network', '/', false);`,
      `define('WP_NETWORK_ADMIN', false);`,
    );
    define({
      MULTISITE: true,
      SUBDOMAIN_INSTALL: false,
      DOMAIN_CURRENT_SITE: '127.0.0.1',
      PATH_CURRENT_SITE: '/',
      SITE_ID_CURRENT_SITE: 1,
      BLOG_ID_CURRENT_SITE: 1,
    });
    const within = (path: string, statements: string) => run(statements, host(path));
    const tables = async () =>
      (await sql("SHOW TABLES LIKE '%lead\\_intake%'")).map((row) => String(Object.values(row)[0])).toSorted();
    const of = (prefix: string) =>
      ['outbox', 'outbox_memo', 'submissions', 'throttle'].map((name) => `${prefix}lead_intake_${name}`);
    const lead = (name: string) =>
      `do_action('lead_intake_capture', ['displayName' => '${name}', 'contact' => ['type' => 'email', 'value' => '${name}@example.org']]);`;

    await within(
      '/',
      `${FIRST} is_null(activate_plugin('lead-intake/lead-intake.php', '', true)) || exit('not activated');
      foreach (['two', 'three', 'four'] as $name) wpmu_create_blog('127.0.0.1', "/$name/", $name, 1);`,
    );
    const key = `update_option('lead_intake_settings', ['key' => 'lik_x']);`;
    for (const path of ['/', '/two/', '/three/', '/four/']) await within(path, key);
    expect(await tables()).toEqual(['_7x_2_', '_7x_3_', '_7x_4_', '_7x_'].flatMap(of).toSorted());
    await within('/two/', lead('two'));
    await within('/three/', lead('three'));
    const count = async (table: string) => (await sql(`SELECT COUNT(*) AS n FROM ${table}`))[0]?.n;
    expect(
      [await count(TABLE), await count('_7x_2_lead_intake_outbox'), await count('_7x_3_lead_intake_outbox')].map(
        Number,
      ),
    ).toEqual([0, 1, 1]);

    await within('/', `require ABSPATH . 'wp-admin/includes/admin.php'; wp_delete_site(2);`);
    expect(await tables()).toEqual(['_7x_3_', '_7x_4_', '_7x_'].flatMap(of).toSorted());
    const options = ['7x_', '7x_3_', '7x_4_']
      .map((prefix) => `SELECT option_name FROM ${prefix}options WHERE option_name LIKE 'lead\\_intake%'`)
      .join(' UNION ALL ');
    expect(await sql(options)).toHaveLength(6);
    // Deactivating and activating the plugin restores a missing table, as the notice says.
    await sql('DROP TABLE _7x_4_lead_intake_submissions');
    await within('/', `${FIRST} deactivate_plugins('lead-intake/lead-intake.php');`);
    await within('/', `${FIRST} activate_plugin('lead-intake/lead-intake.php', '', true);`);
    await within('/four/', '');
    expect(await tables()).toEqual(['_7x_3_', '_7x_4_', '_7x_'].flatMap(of).toSorted());
    const uninstall = `require ABSPATH . 'wp-admin/includes/admin.php'; deactivate_plugins('lead-intake/lead-intake.php');
      uninstall_plugin('lead-intake/lead-intake.php');`;
    // The table of one website cannot be counted: it stays, and those of the others are removed.
    await sql('ALTER TABLE _7x_3_lead_intake_outbox CHANGE capture away TEXT');
    const failing = `try { ${uninstall} } catch (Exception $error) { echo $error->getMessage(), ' ', get_current_blog_id(); }`;
    expect(await within('/', failing)).toMatch(/^the database has failed: .*capture.* 1$/);
    expect(await tables()).toEqual(of('_7x_3_'));
    expect(Number(await count('_7x_3_lead_intake_outbox'))).toBe(1);
    expect(await sql(options)).toEqual([]);
    await sql('ALTER TABLE _7x_3_lead_intake_outbox CHANGE away capture TEXT');
    await sql('DROP TABLE _7x_3_lead_intake_submissions');
    await within('/', uninstall);
    // One website has an unsent lead, and keeps its tables even if one of them is missing.
    expect(await tables()).toEqual(of('_7x_3_'));
  });
});
