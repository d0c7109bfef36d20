import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { describeWithChromium } from '../support/browser.ts';
import { commandsIn, runCommands } from '../support/examples.ts';
import { ROOT, type RunningProcess, watch } from '../support/processes.ts';
import { freePort } from '../support/servers.ts';
import { aService } from '../support/service.ts';

// Packages are downloaded, and a website is built.
vi.setConfig({ hookTimeout: 300_000, testTimeout: 120_000 });

const page = readFileSync(join(ROOT, 'examples/recipes/nextjs/README.md'), 'utf8');
const service = aService();

describeWithChromium('the recipe for Next.js', (open) => {
  let home: string;
  let port: string;
  const running: RunningProcess[] = [];
  const env = () => ({
    // A separate home folder, but npm's own configuration and cache.
    HOME: home,
    NPM_CONFIG_USERCONFIG: join(homedir(), '.npmrc'),
    NPM_CONFIG_CACHE: join(homedir(), '.npm'),
    NEXT_TELEMETRY_DISABLED: '1',
    PORT: port,
  });
  const startBlock = (mark: string, more: Record<string, string> = {}, input = ''): RunningProcess => {
    const child = spawn('bash', ['-ec', commandsIn(page, mark)], {
      cwd: ROOT,
      env: { ...process.env, ...env(), ...more },
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
    port = `${await freePort()}`;
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

  test('delivers each lead once, also after the service was unavailable, and sends its key to no browser', async () => {
    const { studioId, secret } = await service.aStudioWithKey();
    const worker = startBlock('nextjs-worker', { LEAD_INTAKE_URL: service.url }, `${secret}\n`);
    const received: string[] = [];
    const send = async (name: string) => {
      const window = await open(`http://127.0.0.1:${port}/contact`);
      window.on('response', async (response) => received.push(await response.text().catch(() => '')));
      received.push(await window.content());
      await window.getByLabel('Name').fill(name);
      await window.getByLabel('E-mail').fill(`${name}@example.com`);
      await window.getByLabel('Message').fill('A trial, please.');
      await window.getByRole('button').click();
      await window.getByText('Thank you').waitFor();
      received.push(await window.content());
    };
    await send('grace');
    await worker.printed(/ delivered /);
    expect(await service.countLeads(studioId)).toBe(1);

    await service.stopCore();
    await send('ada');
    const database = new DatabaseSync(join(home, 'website/website.db'), { timeout: 10_000 });
    const waiting = () =>
      database.prepare(`SELECT reason FROM lead_intake_outbox WHERE state = 'waiting' AND reason IS NOT NULL`).all();
    while (waiting().length === 0) await sleep(100);
    expect(waiting()).toEqual([{ reason: expect.stringMatching(/^503 |^no answer/) }]);
    await service.startCore();
    // Makes the lead due.
    database.exec(`UPDATE lead_intake_outbox SET next_attempt_at = created_at WHERE state = 'waiting'`);
    await worker.printed(/ delivered [\s\S]* delivered /);
    expect(await service.countLeads(studioId)).toBe(2);
    database.close();

    expect(received.join('')).toContain('Contact us');
    expect(received.join('')).not.toContain(secret);
    expect((await runCommands(commandsIn(page, 'nextjs-attention'), env())).stdout).toBe('0 leads need a person\n');
    worker.child.kill('SIGTERM');
    expect(await worker.ended()).toBe(0);
  });
});
