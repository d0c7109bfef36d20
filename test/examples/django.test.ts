import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { describeWithChromium } from '../support/browser.ts';
import { commandsIn, describeWithTools, runCommands, startCommands } from '../support/examples.ts';
import { ROOT } from '../support/processes.ts';
import { PYTHON_TOOL } from '../support/python.ts';
import { freePort } from '../support/servers.ts';
import { aService, type StudioWithKey } from '../support/service.ts';

// Django and the client are downloaded, built and installed, which takes a while on a busy machine.
vi.setConfig({ hookTimeout: 300_000, testTimeout: 180_000 });

const service = aService();
const recipe = readFileSync(join(ROOT, 'examples/recipes/django/README.md'), 'utf8');

describeWithTools([PYTHON_TOOL], 'the recipe for Django', () => {
  describeWithChromium('in a new website', (open) => {
    let scratch: string;
    let studio: StudioWithKey;
    let env: Record<string, string>;
    let site: string;
    let server: ReturnType<typeof startCommands>;
    afterAll(() => {
      server?.kill('SIGKILL');
      rmSync(scratch, { recursive: true });
    });
    beforeAll(async () => {
      scratch = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
      studio = await service.aStudioWithKey();
      const address = `127.0.0.1:${await freePort()}`;
      site = `http://${address}`;
      env = {
        SITE: join(scratch, 'site'),
        ADDRESS: address,
        LEAD_INTAKE_URL: service.url,
        LEAD_INTAKE_KEY: studio.secret,
        DJANGO_SUPERUSER_PASSWORD: 'of-the-staff',
      };
      const staff = 'env/bin/python manage.py createsuperuser --noinput --username staff --email staff@example.org';
      // A new website has no icon, which browsers log as an error.
      const icon = `cat >> website/urls.py <<'END'
from django.http import HttpResponse
urlpatterns += [path("favicon.ico", lambda request: HttpResponse(content_type="image/x-icon"))]
END`;
      const commands = [commandsIn(recipe, 'django-set-up'), icon, staff].join('\n');
      const { status, stderr } = await runCommands(commands, env);
      expect(status, stderr).toBe(0);
      server = startCommands(commandsIn(recipe, 'django-serve'), env);
      await vi.waitUntil(() => fetch(`${site}/contact/`).catch(() => false), { timeout: 60_000, interval: 100 });
    });

    const onTable = (sql: string) => {
      const database = new DatabaseSync(join(env.SITE ?? '', 'db.sqlite3'), { timeout: 10_000 });
      try {
        return database.prepare(sql).all();
      } finally {
        database.close();
      }
    };
    const states = () => onTable('SELECT state, capture IS NULL AS erased FROM lead_intake_outbox ORDER BY created_at');
    const deliver = (more: Record<string, string> = {}) =>
      runCommands(commandsIn(recipe, 'django-deliver'), { ...env, ...more });

    test('leads sent while the service is unavailable arrive once each, and the staff sees why one is not delivered', async () => {
      const visit = async (name: string) => {
        const page = await open(`${site}/contact/`);
        expect(await page.content()).not.toContain(studio.secret);
        await page.getByLabel('Name').fill(name);
        await page.getByLabel('Email').fill(`${name}@example.org`);
        await page.getByLabel('Note').fill('Zoë 😀');
        await page.getByRole('button', { name: 'Send' }).dblclick();
        await page.getByText('Thank you').first().waitFor();
        expect(await page.content()).not.toContain(studio.secret);
      };
      await service.stopCore();
      await visit('Grace');
      expect((await deliver()).stdout).toBe('0 delivered, 0 open already, 1 wait\n');
      await service.startCore();

      await visit('Ada');
      const { stderr } = await deliver({ LEAD_INTAKE_KEY: newKeySecret() });
      expect(stderr).toContain('1 need a person: see /admin/leads/storedlead/');
      const staff = await open(`${site}/admin/leads/storedlead/`);
      await staff.getByLabel('Username').fill('staff');
      await staff.getByLabel('Password').fill('of-the-staff');
      await staff.getByRole('button', { name: 'Log in' }).click();
      await staff.getByText('1 lead that needs a person').first().waitFor();
      const list = await staff.content();
      expect(list).toContain('401 integration_key_invalid');
      expect(list).not.toContain(studio.secret);
      await staff.locator('#result_list tbody').getByRole('link').click();
      await staff.getByText('Ada@example.org').waitFor();
      await staff.goBack();
      await staff.locator('#result_list tbody').getByRole('checkbox').check();
      await staff.getByLabel('Action:').selectOption({ label: 'Send again' });
      await staff.getByRole('button', { name: 'Go' }).click();
      await staff.getByText('0 leads that need a person').first().waitFor();

      // Makes the lead due.
      onTable('UPDATE lead_intake_outbox SET next_attempt_at = created_at');
      const worker = startCommands(commandsIn(recipe, 'django-work'), env);
      const ended = once(worker, 'exit');
      try {
        await vi.waitUntil(() => states().every(({ state }) => state === 'delivered'), { timeout: 60_000 });
        worker.kill('SIGTERM');
        expect(await ended).toEqual([0, null]);
      } finally {
        worker.kill('SIGKILL');
      }
      expect(states()).toEqual(Array(2).fill({ state: 'delivered', erased: 1 }));
      const { leads } = (await (await service.get(studio.secret)).json()) as { leads: object[] };
      // Newest first: the lead that the staff retried counts as not attempted, and was sent before Grace's.
      expect(leads).toMatchObject(['Grace', 'Ada'].map((displayName) => ({ displayName, note: 'Zoë 😀' })));

      // A page submitted again with other data creates another lead; the form rejects data that the service would refuse.
      const answer = await fetch(`${site}/contact/`);
      const [cookie = ''] = answer.headers.getSetCookie().map((each) => each.replace(/;.*/, ''));
      const page = await answer.text();
      const hidden = (name: string) => new RegExp(`name="${name}" value="([^"]+)"`).exec(page)?.[1] ?? '';
      const send = async (name: string) => {
        const token = { csrfmiddlewaretoken: hidden('csrfmiddlewaretoken'), key: hidden('key') };
        const body = new URLSearchParams({ ...token, name, email: 'mary@example.org' });
        return (await fetch(`${site}/contact/`, { method: 'POST', headers: { cookie }, redirect: 'manual', body }))
          .status;
      };
      expect([await send('Mary'), await send('Mary'), await send('Marie')]).toEqual([302, 302, 302]);
      expect(await send('x'.repeat(161))).toBe(200);
      expect(states()).toHaveLength(4);
    });
  });
});
