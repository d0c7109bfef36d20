import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { commandsIn, describeWithTools, runCommands, startCommands } from '../support/examples.ts';
import { PHP_TOOLS } from '../support/php-website.ts';
import { ROOT } from '../support/processes.ts';
import { freePort } from '../support/servers.ts';
import { aService, type StudioWithKey } from '../support/service.ts';
import { startProxy, type TcpProxy } from '../support/tcp-proxy.ts';

vi.setConfig({ hookTimeout: 120_000, testTimeout: 60_000 });

const service = aService();
const recipe = readFileSync(join(ROOT, 'examples/recipes/php-form/README.md'), 'utf8');

describeWithTools(PHP_TOOLS, 'the contact form in plain PHP', () => {
  let scratch: string;
  let studio: StudioWithKey;
  let proxy: TcpProxy;
  let env: Record<string, string>;
  let server: ReturnType<typeof startCommands>;
  afterAll(async () => {
    server.kill('SIGKILL');
    await proxy.stop();
    rmSync(scratch, { recursive: true });
  });
  beforeAll(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
    studio = await service.aStudioWithKey();
    proxy = await startProxy('127.0.0.1', Number(new URL(service.url).port));
    const site = join(scratch, 'site');
    env = {
      SITE: site,
      DATABASE: `sqlite:${join(site, 'website.db')}`,
      ADDRESS: `127.0.0.1:${await freePort()}`,
      LEAD_INTAKE_URL: `http://127.0.0.1:${proxy.port}`,
      LEAD_INTAKE_KEY: studio.secret,
      COMPOSER_HOME: scratch,
      COMPOSER_ALLOW_SUPERUSER: '1',
      COMPOSER_DISABLE_NETWORK: '1',
    };
    const { status, stderr } = await runCommands(commandsIn(recipe, 'php-form-set-up'), env);
    expect(status, stderr).toBe(0);
    server = startCommands(commandsIn(recipe, 'php-form-serve'), env);
    await vi.waitUntil(() => form().catch(() => false), { timeout: 60_000, interval: 50 });
  });

  const form = async () => (await fetch(`http://${env.ADDRESS}/form.php`)).text();
  const send = (fields: Record<string, string>) =>
    fetch(`http://${env.ADDRESS}/form.php`, { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' });
  const rows = () => {
    const database = new DatabaseSync(join(env.SITE ?? '', 'website.db'), { timeout: 10_000 });
    const found = database.prepare('SELECT state, capture, reason FROM lead_intake_outbox ORDER BY created_at').all();
    database.close();
    return found;
  };
  /** Makes all leads due and runs the cron job; returns its output. */
  const sendByCron = async (more: Record<string, string> = {}) => {
    const database = new DatabaseSync(join(env.SITE ?? '', 'website.db'), { timeout: 10_000 });
    database.exec('UPDATE lead_intake_outbox SET next_attempt_at = 0');
    database.close();
    const { status, stdout, stderr } = await runCommands(commandsIn(recipe, 'php-form-send'), { ...env, ...more });
    expect(status, stderr).toBe(0);
    return stdout;
  };

  test('stores a lead, responds, and then sends it once; the cron job sends what could not be delivered', async () => {
    const page = await form();
    const [, random = ''] = /name="page" value="([^"]+)"/.exec(page) ?? [];
    expect(await form()).not.toContain(random);
    expect(page).not.toContain(studio.secret);
    const grace = { name: 'Grace "Amazing" Hopper', email: 'grace@example.org', note: 'Zoë 😀', page: random };

    const faulty = await send({ ...grace, email: 'nowhere' });
    expect(faulty.status).toBe(422);
    expect(await faulty.text()).toContain('value="Grace &quot;Amazing&quot; Hopper"');

    // The service is silent: a page that came only after the attempt would find its reason in the table.
    proxy.silence();
    const answer = await send(grace);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, 'thanks.html']);
    expect(rows()).toMatchObject([{ state: 'waiting', reason: null }]);
    await vi.waitUntil(() => rows().some(({ reason }) => String(reason).startsWith('no answer')), { timeout: 50_000 });
    expect(await service.countLeads(studio.studioId)).toBe(0);

    proxy.heal();
    // The output of the cron job, which cron mails, lists only leads that need a person.
    const refused = await sendByCron({ LEAD_INTAKE_KEY: newKeySecret() });
    expect(refused).toMatch(/^\S{36}, from \S+, waiting: 401 integration_key_invalid: .+\n$/);
    expect(await sendByCron()).toBe('');
    expect(rows()).toMatchObject([{ state: 'delivered', capture: null }]);

    // The same form again is the same lead; with other data it is another one, which is sent immediately.
    await send(grace);
    await send({ ...grace, name: 'Ada', email: 'ada@example.org' });
    await vi.waitUntil(() => rows().filter(({ state }) => state === 'delivered').length === 2, { timeout: 50_000 });
    expect(await service.countLeads(studio.studioId)).toBe(2);
  });
});
