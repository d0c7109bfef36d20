import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, vi } from 'vitest';
import { commandsIn, runCommands, startCommands } from '../../../test/tools/commands.ts';
import { ROOT, sharedFolder } from '../../../test/tools/processes.ts';
import { freePort } from '../../../test/tools/servers.ts';
import { DriverClock } from '../../conformance/driver-clock.ts';
import { decoded } from './forms.ts';
import { canStart, startWebsiteServer, type WebsiteDatabase, type WebsiteServer } from './website-databases.ts';

/** The plugin's page, with the commands that set up a website. */
const PAGE = readFileSync(join(ROOT, 'sdk/wordpress/README.md'), 'utf8');

export const hasWordPress = canStart.MariaDB && existsSync('/usr/share/wordpress/wp-content/themes/twentytwentythree');

export const PASSWORD = 'a password of the test';

/** Loads constants that a test changes, because PHP's server reads changed code only at intervals. */
const TEST_SETTINGS = `
foreach (json_decode((string) @file_get_contents(__DIR__ . '/constants.json'), true) ?? [] as $name => $value) define($name, $value);
`;

/**
 * A plugin for tests: it writes mails into a file, puts the form below the posts of the home page, empties WordPress's own directory of
 * plugins, shows a header, and brings another release of the client.
 */
const TEST_PLUGIN = `<?php
namespace LeadIntake { final class LeadIntakeClient {} final class LeadCapture {} }
namespace LeadIntake\\Outbox { final class Outbox {} }
namespace {
add_filter('pre_wp_mail', fn ($none, $mail) => file_put_contents(ABSPATH . 'mails', json_encode($mail) . "\\n", FILE_APPEND) > 0, 10, 2);
add_action('wp_footer', fn () => is_home() && print do_shortcode('[lead_intake_form]'));
add_filter('lead_intake_least_seconds', fn ($seconds) => defined('TEST_SECONDS') ? $seconds * TEST_SECONDS : 0);
add_filter('lead_intake_submissions_per_hour', fn ($most) => defined('TEST_MOST') ? TEST_MOST : $most);
add_filter('lead_intake_is_human', fn ($isHuman, $posted) => $isHuman && ($posted['name'] ?? '') !== 'a captcha says: a bot', 10, 2);
add_action('wp_body_open', fn () => defined('TEST_HEADER') && print do_shortcode(TEST_HEADER));
add_filter('fluentform/prevent_malicious_attacks', '__return_false');
add_action('init', fn () => ($hook = getenv('DUE')) && wp_clear_scheduled_hook($hook) !== false && wp_schedule_single_event(time(), $hook));
add_action('template_redirect', fn () => defined('TEST_DESCRIPTION') && apply_filters('the_content', get_post()->post_content), 20);
add_filter('lead_intake_has_style', fn () => !defined('TEST_NO_STYLE'));
foreach (['template', 'stylesheet'] as $option) add_filter("pre_option_$option", fn ($none) => defined('TEST_THEME') ? TEST_THEME : $none);
add_filter('locale', fn ($locale) => defined('TEST_LOCALE') ? TEST_LOCALE : $locale);
add_filter('pre_http_request', fn ($none, $args, $url) => str_contains($url, '//api.wordpress.org/plugins/update-check/')
    ? ['response' => ['code' => 200, 'message' => ''], 'body' => '{"plugins":[],"translations":[],"no_update":[]}', 'headers' => [], 'cookies' => []]
    : $none, 10, 3);
}
`;

/** A theme without blocks, by its files. */
const CLASSIC_THEME = {
  'style.css': `/* Theme Name: Classic */ body { background: #222; color: #eee; font: 14px serif } body p a { color: #8cf; text-decoration: none }`,
  'index.php': `<!doctype html><html lang="en"><head><title>A page</title><meta name="viewport" content="width=device-width"><?php wp_head(); ?>
<link rel="stylesheet" href="<?= get_stylesheet_uri() ?>"></head><body><?php wp_body_open(); while (have_posts()) { the_post(); the_content(); } wp_footer(); ?></body></html>`,
};

/** Settings with which PHP compiles WordPress only once, but everything else for each page, because tests change it. */
const COMPILED_ONCE = `opcache.enable_cli=1
opcache.validate_timestamps=0
opcache.file_update_protection=0
`;

/** A website made by the commands of the plugin's page, with a table prefix that begins with a digit, which WordPress allows. */
export interface WordPress {
  readonly clock: DriverClock;
  readonly database: () => WebsiteDatabase;
  /** Returns the address of a page. */
  readonly site: (path?: string) => string;
  readonly inSite: (file: string) => string;
  /** Returns the text of a file in the website; empty without the file. */
  readonly toText: (file: string) => string;
  /** Defines constants for every later request, in place of the previous ones. */
  readonly define: (constants: object) => void;
  /** Runs WP-Cron with these additional environment variables. `DUE` names a hook that is due now. */
  cron(more?: Readonly<Record<string, string>>): Promise<void>;
  /** Runs statements within WordPress, and returns what they print. */
  run(statements: string, before?: string): Promise<string>;
  activate(): Promise<void>;
  /** Deactivates the plugin, and removes its options and tables. */
  deactivate(): Promise<void>;
  /** Logs a user in. */
  logIn(user: string, password?: string): Promise<Session>;
}

/** The session of a user who is logged in. */
export interface Session {
  readonly cookie: string;
  /** Returns the HTML of a page below `wp-admin/`. */
  page(path: string): Promise<string>;
  /** Sends a form to `wp-admin/admin-post.php`, without following a redirect. */
  post(fields: Readonly<Record<string, string>>): Promise<Response>;
  /** Presses a button of the form that has a text, on a page below `wp-admin/`, and returns the next page. */
  press(path: string, has: string, button: string, fields?: Readonly<Record<string, string>>): Promise<string>;
}

/** Loads the functions that activate and deactivate plugins. */
export const FIRST = `require ABSPATH . 'wp-admin/includes/plugin.php';`;
export const TABLES = ['outbox', 'outbox_memo', 'submissions', 'throttle'].map((name) => `_7x_lead_intake_${name}`);

/** Returns a website for a suite. It is served once the tests run. */
export function aWordPress(): WordPress {
  const scratch = sharedFolder();
  let databases: WebsiteServer;
  let database: WebsiteDatabase;
  let clock: DriverClock;
  let env: Record<string, string>;
  let server: ReturnType<typeof startCommands> | undefined;
  afterAll(async () => {
    server?.kill('SIGKILL');
    clock?.remove();
    await database?.close();
    await databases?.stop();
  });
  beforeAll(async () => {
    clock = new DriverClock();
    databases = await startWebsiteServer.MariaDB();
    database = await databases.database();
    const address = database.address as Record<'host' | 'database' | 'user' | 'password', string> & { port: number };
    env = {
      SITE: join(scratch(), 'site'),
      ADDRESS: `127.0.0.1:${await freePort()}`,
      DATABASE_HOST: `${address.host}:${address.port}`,
      DATABASE: address.database,
      DATABASE_USER: address.user,
      DATABASE_PASSWORD: address.password,
      ADMIN_PASSWORD: PASSWORD,
      PLUGIN: join(ROOT, 'sdk/wordpress/build/lead-intake'),
    };
    execFileSync(process.execPath, [join(ROOT, 'sdk/wordpress/write-plugin.ts')]);
    const { status, stdout, stderr } = await runCommands(
      commandsIn(PAGE, 'wordpress-set-up').replace("'wp_'", "'7x_'"),
      env,
    );
    expect(status, stdout + stderr).toBe(0);
    const config = inSite('wp-config.php');
    writeFileSync(config, readFileSync(config, 'utf8').replace('<?php', `<?php ${TEST_SETTINGS}`));
    Object.assign(env, compiledOnce());
    mkdirSync(inSite('wp-content/mu-plugins'));
    writeFileSync(inSite('wp-content/mu-plugins/test.php'), TEST_PLUGIN);
    mkdirSync(inSite('wp-content/themes/classic'));
    for (const [name, text] of Object.entries(CLASSIC_THEME))
      writeFileSync(inSite(`wp-content/themes/classic/${name}`), text);
    server = startCommands(commandsIn(PAGE, 'wordpress-serve'), { ...env, ...clock.env });
    await vi.waitUntil(() => fetch(site()).catch(() => false), { timeout: 60_000, interval: 50 });
  });

  /** Returns the environment variable with which PHP reads further settings. */
  const compiledOnce = () => {
    const [folder, cache] = [join(scratch(), 'php'), join(scratch(), 'compiled')];
    for (const each of [folder, cache]) mkdirSync(each);
    const others = ['wp-content/*', 'wp-config.php', 'statements.php'].map(inSite);
    writeFileSync(join(folder, 'others'), others.join('\n'));
    const files = `opcache.file_cache=${cache}\nopcache.blacklist_filename=${join(folder, 'others')}\n`;
    writeFileSync(join(folder, 'compiled.ini'), `${COMPILED_ONCE}${files}`);
    return { PHP_INI_SCAN_DIR: `:${folder}` };
  };
  const site = (path = '') => `http://${env.ADDRESS}/${path}`;
  const inSite = (file: string) => join(env.SITE ?? '', file);
  const define = (constants: object) => writeFileSync(inSite('constants.json'), JSON.stringify(constants));
  const run = async (statements: string, before = '') => {
    writeFileSync(inSite('statements.php'), `<?php ${before} require __DIR__ . '/wp-load.php';\n${statements}`);
    const { status, stdout, stderr } = await runCommands('php "$SITE/statements.php"', env);
    expect([status, stderr], stdout).toEqual([0, '']);
    return stdout;
  };
  return {
    get clock() {
      return clock;
    },
    database: () => database,
    site,
    inSite,
    toText: (file) => (existsSync(inSite(file)) ? readFileSync(inSite(file), 'utf8') : ''),
    define,
    async cron(more = {}) {
      const { status, stdout, stderr } = await runCommands(commandsIn(PAGE, 'wordpress-cron'), { ...env, ...more });
      expect([status, stdout, stderr]).toEqual([0, '', '']);
    },
    run,
    async activate() {
      await run(`${FIRST} activate_plugin('lead-intake/lead-intake.php');`);
    },
    async deactivate() {
      define({});
      const options = ['settings', 'forms', 'schema', 'failure']
        .map((name) => `delete_option('lead_intake_${name}');`)
        .join(' ');
      await run(`${FIRST} deactivate_plugins('lead-intake/lead-intake.php'); ${options}`);
      for (const table of TABLES) await database.run(`DROP TABLE IF EXISTS ${table}`);
    },
    logIn: async (user, password = PASSWORD) => {
      const body = new URLSearchParams({ log: user, pwd: password, testcookie: '1' });
      const headers = { cookie: 'wordpress_test_cookie=WP%20Cookie%20check' };
      const answer = await fetch(site('wp-login.php'), { method: 'POST', headers, body, redirect: 'manual' });
      expect(answer.status, await answer.text()).toBe(302);
      return aSession(
        site,
        answer.headers
          .getSetCookie()
          .map((each) => each.split(';')[0])
          .join('; '),
      );
    },
  };
}

function aSession(site: (path: string) => string, cookie: string): Session {
  const page = async (path: string) => {
    const answer = await fetch(site(`wp-admin/${path}`), { headers: { cookie } });
    const text = await answer.text();
    expect(answer.status, text).toBe(200);
    return text;
  };
  const post = (fields: Readonly<Record<string, string>>, action = 'admin-post.php') =>
    fetch(new URL(action, site('wp-admin/')), {
      method: 'POST',
      headers: { cookie },
      body: new URLSearchParams(fields),
      redirect: 'manual',
    });
  return {
    cookie,
    page,
    post,
    async press(path, has, button, fields = {}) {
      const forms = (await page(path)).match(/<form [^>]*method="post"[\s\S]*?<\/form>/g) ?? [];
      const form = forms.find((each) => each.includes(has)) ?? '';
      const [, action = ''] = /action="([^"]*)"/.exec(form) ?? [];
      const hidden = [...form.matchAll(/type=["']hidden["'][^>]* name=["']([^"']*)["'] value=["']([^"']*)["']/g)];
      const sent = hidden.map(([, name = '', value = '']) => [name, decoded(value)]);
      const answer = await post({ ...Object.fromEntries(sent), ...fields, [button]: '1' }, decoded(action));
      expect(answer.status, `${has}: ${await answer.text()}`).toBe(302);
      return (
        await fetch(new URL(answer.headers.get('location') ?? '', site('wp-admin/')), { headers: { cookie } })
      ).text();
    },
  };
}

/** The faults of a page for administrators. */
interface PageFaults {
  /** The pixels by which it is wider than the window. */
  readonly overflow: number;
  /** Fields without exactly one label. */
  readonly unlabelled: readonly string[];
  /** Whether a script of the test's hostile texts has run. */
  readonly hacked: boolean;
  /** The findings of axe, without WordPress's own parts of the page. */
  readonly violations: readonly string[];
}

/** Examines a part of an open page. `SCREENSHOTS_DIR` names a folder that gets a picture of it. */
export async function readFaults(
  page: Page,
  part = '.wrap',
  title = /page=([\w-]+)/.exec(page.url())?.[1],
): Promise<PageFaults> {
  const { SCREENSHOTS_DIR } = process.env;
  const name = `${title}-${page.viewportSize()?.width}.png`;
  if (SCREENSHOTS_DIR) await page.screenshot({ fullPage: true, path: join(SCREENSHOTS_DIR, name) });
  await page.evaluate(axe.source);
  return page.evaluate(`(async () => ({
    overflow: Math.max(0, document.documentElement.scrollWidth - innerWidth),
    unlabelled: [...document.querySelectorAll('${part} :is(input:not([type=hidden], [type=submit]), select, textarea)')]
      .filter(({ labels }) => labels.length !== 1).map(({ outerHTML }) => outerHTML),
    hacked: 'hacked' in window,
    violations: (await axe.run({ include: ['${part}'] })).violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html)),
  }))()`);
}
