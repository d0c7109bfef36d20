import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { DriverClock } from '../../sdk/conformance/driver-clock.ts';
import { buildPackages } from '../../sdk/packages/build-packages.ts';
import { openForm } from '../../sdk/test/support/forms.ts';
import { unknownKey } from '../../sdk/test/support/key-secret.ts';
import { DATABASE_DRIVERS, PYTHON_TOOL } from '../../sdk/test/support/python.ts';
import { testRecipe, testRecipeOnServers } from '../../sdk/test/support/recipe-situations.ts';
import { queryFile } from '../../sdk/test/support/website-databases.ts';
import { describeWithChromium } from '../../test/tools/browser.ts';
import { commandsIn, describeWithTools, findExample, runCommands, startCommands } from '../../test/tools/commands.ts';
import { ROOT, sharedFolder } from '../../test/tools/processes.ts';
import { aServiceWithPackages } from '../../test/tools/served-packages.ts';
import type { StudioWithKey } from '../../test/tools/served-service.ts';
import { freePort } from '../../test/tools/servers.ts';

const { service, url: serviceUrl } = aServiceWithPackages(buildPackages);
const recipe = readFileSync(join(ROOT, 'examples/recipes/django/README.md'), 'utf8');

describeWithTools([PYTHON_TOOL], 'the recipe for Django', () => {
  // @proves leads-27 leads-28
  describeWithChromium('in a new website', (open) => {
    const scratch = sharedFolder();
    let studio: StudioWithKey;
    let env: Record<string, string>;
    let site: string;
    let clock: DriverClock;
    let server: ReturnType<typeof startCommands>;
    afterAll(() => {
      server?.kill('SIGKILL');
      clock?.remove();
    });
    beforeAll(async () => {
      clock = new DriverClock();
      studio = await service.aStudioWithKey();
      const address = `127.0.0.1:${await freePort()}`;
      site = `http://${address}`;
      env = {
        SITE: join(scratch(), 'site'),
        ADDRESS: address,
        LEAD_INTAKE_URL: serviceUrl(),
        LEAD_INTAKE_KEY: studio.secret,
        DJANGO_SUPERUSER_PASSWORD: 'of-the-staff',
      };
      const staff = 'env/bin/python manage.py createsuperuser --noinput --username staff --email staff@example.org';
      // A new website has no icon, which browsers log as an error. Each request is a transaction.
      const more = `cat >> website/urls.py <<'END'
from django.http import HttpResponse
urlpatterns += [path("favicon.ico", lambda request: HttpResponse(content_type="image/x-icon"))]
END
cat >> website/settings.py <<'END'
DATABASES["default"]["ATOMIC_REQUESTS"] = True
ADMINS = [("Staff", "staff@example.org")]
EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
EMAIL_FILE_PATH = BASE_DIR / "mails"
import json, os
if "TEST_DATABASE" in os.environ:
    import pymysql
    pymysql.install_as_MySQLdb()
    DATABASES["default"] = json.loads(os.environ["TEST_DATABASE"])
END
env/bin/pip install --quiet ${DATABASE_DRIVERS.map((driver) => `'${driver}'`).join(' ')}`;
      const commands = [commandsIn(recipe, 'django-set-up'), more, staff].join('\n');
      const { status, stderr } = await runCommands(commands, env);
      expect(status, stderr).toBe(0);
      const pages = { ...env, LEAD_INTAKE_READ_KEY: await createReadKey(studio), ...clock.env };
      server = startCommands(commandsIn(recipe, 'django-serve'), pages);
      await vi.waitUntil(() => fetch(`${site}/contact/`).catch(() => false), { timeout: 60_000, interval: 100 });
    });

    /** Returns a key of the same studio that can only read. */
    async function createReadKey({ studioId, memberId }: StudioWithKey): Promise<string> {
      return service.aKey({ studioId, memberId }, ['leads.read']);
    }

    const onTable = (sql: string) => queryFile(join(env.SITE ?? '', 'db.sqlite3'), sql);
    /** Returns the website's leads, oldest first. */
    const leads = () => onTable('SELECT state, reason FROM example_com_leads ORDER BY created_at, rowid');
    const run = (mark: string, more: Record<string, string> = {}) =>
      runCommands(commandsIn(recipe, mark), { ...env, ...more });
    const report = async () => (await run('django-report')).stdout;
    const deliver = async (more: Record<string, string> = {}) => {
      onTable("UPDATE example_com_leads SET next_attempt_at = 0 WHERE state = 'waiting'");
      return run('django-deliver', more);
    };
    const send = async (name: string, message = '') =>
      (await openForm(`${site}/contact/`)).send({ name, email: `${name}@example.org`, message });
    const silent = { status: 0, stdout: '', stderr: '' };

    // @proves leads-24
    test("the recipe's own tests pass, and the manual shows its outbox", { concurrent: false }, async () => {
      const { stderr } = await runCommands('cd "$SITE"\nenv/bin/python manage.py test', env);
      expect(stderr).toMatch(/Ran 2 tests in [\s\S]*\nOK\n/);
      const app = (file: string) => readFileSync(join(ROOT, 'examples/recipes/django/leads', file), 'utf8');
      expect(app('outbox.py')).toContain(findExample('sdk/python/README.md', 'outbox-django'));
      const [, migration = ''] =
        /operation is `migrations\.RunSQL\((.+)\)`/.exec(readFileSync(join(ROOT, 'sdk/python/README.md'), 'utf8')) ??
        [];
      expect(app('migrations/0001_outbox.py')).toContain(migration);
    });

    // @proves arrival-1
    test('each lead arrives once, no text is lost, and the staff sees the leads that need attention', {
      concurrent: false,
    }, async () => {
      await send('Ada');
      expect(await deliver()).toEqual(silent);
      expect(leads()).toMatchObject([{ state: 'delivered' }]);

      await send('Mary', 'Привет');
      expect(await deliver({ LEAD_INTAKE_KEY: unknownKey() })).toEqual(silent);
      // Ada's contact has an open lead. Another row cannot be read.
      await send('Ada', 'On Monday, please.');
      onTable(`INSERT INTO example_com_leads (idempotency_key, capture, state, attempts, created_at, next_attempt_at)
        VALUES ('${randomUUID()}', CAST(x'ff' AS TEXT), 'refused', 1, 1, 1)`);
      const staff = await open(`${site}/admin/leads/storedlead/`);
      await staff.getByLabel('Username').fill('staff');
      await staff.getByLabel('Password').fill('of-the-staff');
      await staff.getByRole('button', { name: 'Log in' }).click();
      await staff.getByText('2 leads that need a person').first().waitFor();
      const rows = staff.locator('#result_list tbody tr');
      const mary = rows.filter({ hasText: '401 integration_key_invalid' });
      expect(await staff.content()).not.toContain(studio.secret);
      await mary.getByRole('link').click();
      await staff.getByText('Привет').waitFor();
      await staff.goBack();
      await mary.getByRole('checkbox').check();
      await staff.getByLabel('Action:').selectOption({ label: 'Send again' });
      await staff.getByRole('button', { name: 'Go' }).click();
      await staff.getByText('1 lead that needs a person').first().waitFor();

      const worker = startCommands(commandsIn(recipe, 'django-work'), env);
      const ended = once(worker, 'exit');
      try {
        await vi.waitUntil(() => leads().every(({ state }) => state !== 'waiting'), { timeout: 60_000 });
        worker.kill('SIGTERM');
        expect(await ended).toEqual([0, null]);
      } finally {
        worker.kill('SIGKILL');
      }
      expect(await service.countLeads(studio.studioId)).toBe(2);
      expect(await report()).toMatch(/, already_open: .+\n {2}\{.+On Monday, please\..+\n$/);
      await staff.reload();
      await staff.getByText('2 leads that need a person').first().waitFor();
      await staff.locator('#action-toggle').check();
      await staff.getByLabel('Action:').selectOption({ label: 'Erase, without sending' });
      await staff.getByRole('button', { name: 'Go' }).click();
      await staff.getByText('0 leads that need a person').first().waitFor();
      expect(await report()).toBe('');

      await staff.getByRole('link', { name: 'Compare with the service' }).click();
      await staff.getByText('Nothing was compared yet.').waitFor();
      await staff.getByRole('button', { name: 'Compare' }).click();
      await staff.getByText(/^2 sent since \S{10}, 2 there\.$/).waitFor();
      onTable(`UPDATE example_com_leads SET lead_id = '${randomUUID()}' WHERE state = 'delivered' AND rowid = 1`);
      expect((await run('django-compare')).stdout).toMatch(
        /^2 sent since \S{10}, 1 there\.\n\S{36}, from \S+, lead \S{36}: not there: .+\n$/,
      );
      await staff.reload();
      await staff.getByText('not there: erased').waitFor();
    });

    // @proves arrival-7
    test('leads that have waited for more than a day are mailed once', { concurrent: false }, async () => {
      await send('Late', 'Not for a mail');
      onTable("UPDATE example_com_leads SET created_at = 1 WHERE state = 'waiting'");
      onTable("UPDATE example_com_leads_memo SET token = '0' WHERE name = 'waiting'");
      for (let pass = 0; pass < 2; pass += 1) expect(await deliver({ LEAD_INTAKE_KEY: unknownKey() })).toEqual(silent);
      const mails = join(env.SITE ?? '', 'mails');
      const [mail = '', ...others] = readdirSync(mails).map((file) => readFileSync(join(mails, file), 'utf8'));
      expect(others).toEqual([]);
      expect(mail).toContain('1 leads have waited for more than a day');
      expect(mail).toContain('1: 401 integration_key_invalid');
      expect(mail).not.toContain('Not for a mail');
    });

    testRecipe(service, () => ({
      clock,
      empty: async () => onTable('DELETE FROM example_com_leads'),
      open: () => openForm(`${site}/contact/`),
      send: deliver,
      report,
    }));

    testRecipeOnServers(service, ['PostgreSQL', 'MariaDB'], 1, async ({ address }, settings, onTestFinished) => {
      const {
        kind,
        host: HOST,
        port: PORT,
        user: USER,
        password: PASSWORD,
        database: NAME,
      } = address as Record<string, string>;
      const ENGINE = `django.db.backends.${kind === 'mariadb' ? 'mysql' : 'postgresql'}`;
      const ADDRESS = `127.0.0.1:${await freePort()}`;
      const TEST_DATABASE = JSON.stringify({ ENGINE, HOST, PORT, USER, PASSWORD, NAME });
      const own = { ...env, ...settings, ADDRESS, TEST_DATABASE };
      const migrated = await runCommands('cd "$SITE" && env/bin/python manage.py migrate', own);
      expect(migrated.status, migrated.stderr).toBe(0);
      const running = [
        startCommands(commandsIn(recipe, 'django-serve'), own),
        startCommands(commandsIn(recipe, 'django-work'), own),
      ];
      onTestFinished(() => void running.map((each) => each.kill('SIGKILL')));
      return {
        open: () => vi.waitFor(() => openForm(`http://${ADDRESS}/contact/`), { timeout: 60_000, interval: 100 }),
      };
    });
  });
});
