import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { commandsIn, runCommands } from '../support/examples.ts';
import { openForm } from '../support/forms.ts';
import { ROOT, type RunningProcess, watch } from '../support/processes.ts';
import { freePort } from '../support/servers.ts';
import { aService } from '../support/service.ts';

// Packages are downloaded, and a website is built.
vi.setConfig({ hookTimeout: 300_000, testTimeout: 120_000 });

const page = readFileSync(join(ROOT, 'examples/recipes/nextjs/README.md'), 'utf8');
const service = aService();

describe('the recipe for Next.js', () => {
  let home: string;
  let url: string;
  const running: RunningProcess[] = [];
  const env = () => ({
    // A separate home folder, but npm's own configuration and cache.
    HOME: home,
    NPM_CONFIG_USERCONFIG: join(homedir(), '.npmrc'),
    NPM_CONFIG_CACHE: join(homedir(), '.npm'),
    NEXT_TELEMETRY_DISABLED: '1',
    PORT: new URL(url).port,
    LEAD_INTAKE_URL: service.url,
  });
  const startBlock = (mark: string, input = ''): RunningProcess => {
    const child = spawn('bash', ['-ec', commandsIn(page, mark)], {
      cwd: ROOT,
      env: { ...process.env, ...env() },
      stdio: ['pipe', 'pipe', 'pipe'],
      // A process group, because npx starts another process.
      detached: true,
    });
    child.stdin.end(input);
    const started = watch(child);
    running.push(started);
    return started;
  };
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
    url = `http://127.0.0.1:${await freePort()}`;
    const { status, stderr } = await runCommands(commandsIn(page, 'nextjs-set-up'), env());
    expect(status, stderr).toBe(0);
    await startBlock('nextjs-website').printed(/Ready/);
  });
  afterAll(async () => {
    for (const { child, ended } of running) {
      if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      await ended();
    }
    rmSync(home, { recursive: true, force: true });
  });

  const onTable = (sql: string) => {
    const database = new DatabaseSync(join(home, 'website/website.db'), { timeout: 10_000 });
    try {
      return database.prepare(sql).all();
    } finally {
      database.close();
    }
  };
  /** The website's leads, oldest first. */
  const leads = () => onTable('SELECT state, reason, capture FROM lead_intake_outbox ORDER BY created_at, rowid');
  const until = (state: object) =>
    vi.waitFor(() => expect(leads().at(-1)).toMatchObject(state), { timeout: 60_000, interval: 100 });
  const send = async (name: string, message = '') =>
    (await openForm(`${url}/contact`)).send({ name, email: `${name}@example.com`, message });
  /** In another folder than the website's. */
  const report = async () => (await runCommands(commandsIn(page, 'nextjs-report'), env())).stdout;

  test('delivers each lead once, loses no text, and reports until it is gone what needs somebody', async () => {
    const { studioId, memberId, apiKeyId, secret } = await service.aStudioWithKey();
    const worker = startBlock('nextjs-worker', `${secret}\n`);
    // A double click.
    const form = await openForm(`${url}/contact`);
    const grace = { name: 'grace', email: 'grace@example.com', message: 'A trial, please.' };
    const answers = await Promise.all([form.send(grace), form.send(grace)]);
    expect(answers).toMatchObject(Array(2).fill({ text: expect.stringContaining('Thank you') }));
    await until({ state: 'delivered', capture: null });
    expect(leads()).toHaveLength(1);

    // The longest message, as a browser sends it; a longer one comes back to its author.
    const longest = 'line\n'.repeat(400);
    expect(await send('ada', longest)).toMatchObject({ text: expect.stringContaining('Thank you') });
    expect(await send('ada', `${longest}.`)).toMatchObject({
      status: 422,
      text: expect.stringContaining('Message must be 1 to 2000 characters long.'),
      form: { message: `${longest}.` },
    });
    await until({ state: 'delivered' });
    expect(await report()).toBe('');

    // The contact has an open lead: the message is in no lead.
    await send('grace', 'On Monday, please.');
    await until({ state: 'already_open' });
    expect(await report()).toMatch(/^\S{36}, from \S+, already_open: .*\n {2}\{.*On Monday, please\..*\}\n$/);
    const [key = ''] = (await report()).split(',');
    expect((await runCommands(`node ~/website/leads.mjs discard ${key}`, env())).status).toBe(0);
    expect(await report()).toBe('');

    await service.stopCore();
    await send('mary');
    await until({ state: 'waiting', reason: expect.stringMatching(/^503 |^no answer/) });
    await service.startCore();
    // Makes the lead due.
    onTable(`UPDATE lead_intake_outbox SET next_attempt_at = created_at WHERE state = 'waiting'`);
    await until({ state: 'delivered' });
    expect(await service.countLeads(studioId)).toBe(3);

    await service.apiKeys.revokeApiKey({ studioId, memberId, apiKeyId });
    await send('emmy');
    await until({ state: 'waiting', reason: expect.stringMatching(/^401 /) });
    expect(await report()).toMatch(/^\S{36}, from \S+, waiting: 401 integration_key_invalid: .*\n {2}\{.*\n$/);
    worker.child.kill('SIGTERM');
    expect(await worker.ended()).toBe(0);
    expect(worker.output()).not.toContain(secret);
  });

  test('says in one line that the key of the worker is wrong, and loses nothing', async () => {
    const before = leads();
    const wrong = startBlock('nextjs-worker', `${newKeySecret().slice(0, -1)}\n`);
    expect(await wrong.ended()).toBe(1);
    expect(wrong.output()).toMatch(/^leads\.mjs: apiKey must .+\n$/);
    expect(leads()).toEqual(before);
  });
});
