import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { DriverClock } from '../../sdk/conformance/driver-clock.ts';
import { buildPackages } from '../../sdk/packages/build-packages.ts';
import { openForm } from '../../sdk/test/support/forms.ts';
import { testRecipe } from '../../sdk/test/support/recipe-situations.ts';
import { queryFile } from '../../sdk/test/support/website-databases.ts';
import { commandsIn, runCommands, watchCommands } from '../../test/tools/commands.ts';
import { ROOT, type RunningProcess, sharedFolder } from '../../test/tools/processes.ts';
import { aServiceWithPackages } from '../../test/tools/served-packages.ts';
import { freePort } from '../../test/tools/servers.ts';

const page = readFileSync(join(ROOT, 'examples/recipes/nextjs/README.md'), 'utf8');
const { service, url: serviceUrl } = aServiceWithPackages(buildPackages);

// @proves leads-27 leads-28
describe('the recipe for Next.js', () => {
  const home = sharedFolder();
  let url: string;
  let clock: DriverClock;
  const running: RunningProcess[] = [];
  const env = () => ({
    // Uses a separate home folder, but npm's own configuration and cache.
    HOME: home(),
    NPM_CONFIG_USERCONFIG: join(homedir(), '.npmrc'),
    NPM_CONFIG_CACHE: join(homedir(), '.npm'),
    NEXT_TELEMETRY_DISABLED: '1',
    PORT: new URL(url).port,
    LEAD_INTAKE_URL: serviceUrl(),
  });
  const startBlock = (mark: string, input = '', more = {}): RunningProcess => {
    const started = watchCommands(commandsIn(page, mark), { ...env(), ...more }, input);
    running.push(started);
    return started;
  };
  beforeAll(async () => {
    clock = new DriverClock();
    url = `http://127.0.0.1:${await freePort()}`;
    const { status, stderr } = await runCommands(commandsIn(page, 'nextjs-set-up'), env());
    expect(status, stderr).toBe(0);
    await startBlock('nextjs-website', '', clock.env).printed(/Ready/);
    // Creates the table, as each command does.
    await report();
  });
  afterAll(async () => {
    for (const each of running) await each.kill();
    clock.remove();
  });

  const onTable = (sql: string) => queryFile(join(home(), 'website/website.db'), sql);
  /** Returns the website's leads, oldest first. */
  const leads = () => onTable('SELECT state, reason, capture FROM example_com_leads ORDER BY created_at, rowid');
  const until = (state: object) =>
    vi.waitFor(() => expect(leads().at(-1)).toMatchObject(state), { timeout: 60_000, interval: 100 });
  const send = async (name: string, message = '') =>
    (await openForm(`${url}/contact`)).send({ name, email: `${name}@example.com`, message });
  const makeDue = () => onTable("UPDATE example_com_leads SET next_attempt_at = 0 WHERE state = 'waiting'");
  const leadsCommand = (command: string, settings = {}) =>
    runCommands(`node ~/website/leads.mjs ${command}`, { ...env(), ...settings });
  /** Runs the report, which works outside the website's folder. */
  const report = async () => (await runCommands(commandsIn(page, 'nextjs-report'), env())).stdout;

  test('the Next.js worker delivers each lead once, although the service stops in between', async () => {
    const { studioId, secret } = await service.aStudioWithKey();
    const worker = startBlock('nextjs-worker', `${secret}\n`);
    await send('ada');
    await until({ state: 'delivered', capture: null });
    await service.stopCore();
    await send('mary');
    await until({ state: 'waiting', reason: expect.stringMatching(/^503 |^no answer/) });
    await service.startCore();
    makeDue();
    await until({ state: 'delivered' });
    expect(await service.countLeads(studioId)).toBe(2);
    worker.child.kill('SIGTERM');
    expect(await worker.ended()).toBe(0);
    expect(worker.output()).not.toContain(secret);
  });

  testRecipe(service, () => ({
    clock,
    empty: async () => onTable('DELETE FROM example_com_leads'),
    open: () => openForm(`${url}/contact`),
    send(settings) {
      makeDue();
      return leadsCommand('send', settings);
    },
    report,
  }));
});
