import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { commandsIn, describeWithTools, runCommands } from '../support/examples.ts';
import { ROOT, type RunningProcess, watch } from '../support/processes.ts';
import { freePort } from '../support/servers.ts';
import { aService } from '../support/service.ts';

// Loading Rails takes a while on a busy machine.
vi.setConfig({ hookTimeout: 120_000, testTimeout: 120_000 });

const page = readFileSync(join(ROOT, 'examples/recipes/rails/README.md'), 'utf8');
const service = aService();

describeWithTools([`ruby -e 'require "rails"; require "sqlite3"; require "puma"'`], 'the recipe for Rails', () => {
  let home: string;
  let url: string;
  const running: RunningProcess[] = [];
  const env = () => ({ HOME: home, PORT: new URL(url).port, LEAD_INTAKE_URL: service.url });
  const startWebsite = async (secret: string): Promise<RunningProcess> => {
    const child = spawn('bash', ['-ec', commandsIn(page, 'rails-website')], {
      cwd: ROOT,
      env: { ...process.env, ...env() },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    child.stdin.end(`${secret}\n`);
    const website = watch(child as never);
    running.push(website);
    await website.printed(/Listening on/);
    return website;
  };
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
    url = `http://127.0.0.1:${await freePort()}`;
    const { status, stderr } = await runCommands(commandsIn(page, 'rails-set-up'), env());
    expect(status, stderr).toBe(0);
  });
  afterAll(async () => {
    for (const each of running) await each.kill();
    rmSync(home, { recursive: true, force: true });
  });

  /** Sends the form as a browser does. */
  async function send(name: string): Promise<void> {
    const form = await fetch(`${url}/contact`);
    const [, token = ''] = /name="authenticity_token" value="([^"]+)"/.exec(await form.text()) ?? [];
    const answer = await fetch(`${url}/contact`, {
      method: 'POST',
      headers: {
        cookie: form.headers
          .getSetCookie()
          .map((each) => each.split(';')[0])
          .join('; '),
      },
      body: new URLSearchParams({
        authenticity_token: token,
        'contact_request[name]': name,
        'contact_request[email]': `${name}@example.com`,
        'contact_request[message]': 'A trial, please.',
      }),
      redirect: 'manual',
    });
    expect({ status: answer.status, to: answer.headers.get('location') }).toEqual({ status: 303, to: `${url}/thanks` });
  }

  /** The website's leads, oldest first. */
  function leads(): Record<string, unknown>[] {
    const database = new DatabaseSync(join(home, 'website/db/website.sqlite3'), { readOnly: true, timeout: 10_000 });
    try {
      return database.prepare('SELECT state, reason, capture, lead_id FROM leads_to_send ORDER BY id').all();
    } finally {
      database.close();
    }
  }
  const until = (state: object) =>
    expect.poll(() => leads().at(-1), { timeout: 60_000, interval: 100 }).toMatchObject(state);

  test('delivers each lead once, also when the service or the website was unavailable, and lists leads that need a person', async () => {
    const { studioId, memberId, apiKeyId, secret } = await service.aStudioWithKey();
    const website = await startWebsite(secret);
    await send('grace');
    await until({ state: 'delivered', capture: null });
    expect(await service.countLeads(studioId)).toBe(1);
    // The contact has an open lead.
    await send('grace');
    await until({ state: 'open_already', capture: null });

    await service.stopCore();
    await send('ada');
    await until({ state: 'waiting', reason: expect.stringMatching(/^503 |^no answer/) });
    await website.kill();
    await service.startCore();
    const again = await startWebsite(secret);
    await until({ state: 'delivered' });
    expect(await service.countLeads(studioId)).toBe(2);

    await service.apiKeys.revokeApiKey({ studioId, memberId, apiKeyId });
    await send('mary');
    await until({ state: 'refused', reason: '401 integration_key_invalid' });
    const { stdout } = await runCommands(commandsIn(page, 'rails-attention'), env());
    expect(stdout).toBe('4 401 integration_key_invalid\n');
    // The website logs neither personal data nor the key.
    expect(website.output() + again.output()).not.toMatch(new RegExp(`grace@|ada@|mary@|${secret}`));
  });
});
