import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { CLI, executed } from '../support/command-line.ts';
import {
  hasShellAndCurl,
  PLANTED,
  ROOT,
  type RunningProcess,
  run,
  temporaryFolder,
  watch,
} from '../tools/processes.ts';

/** Runs the `curl` line that `npm start` prints; returns status, headers and body. */
function paste(output: string): { status: number; head: string; body: string } {
  const [line] = /^curl [\s\S]*?}'$/m.exec(output) ?? [];
  if (line === undefined) throw new Error(`there is no curl line in:\n${output}`);
  const answer = execFileSync('sh', ['-c', line], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  return { status: Number(/^HTTP\/1.1 (\d+)/.exec(head)?.[1]), head, body };
}

const findGateway = async (running: RunningProcess) =>
  (await running.printed(/REST API {2}(http:\S+)\/v1\/integrations\/leads/))[1] ?? '';

const isAnswering = (url: string) =>
  fetch(`${url}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  );

test.skipIf(!hasShellAndCurl)(
  'npm start without settings prints a key and a curl line that creates one lead',
  async () => {
    const cwd = temporaryFolder();
    const running = run('start.ts', { cwd });
    await running.printed(/Paste it again/);
    const [secret] = await running.printed(/lik_\S{48}/);

    const first = paste(running.output());
    const second = paste(running.output());

    const { lead } = JSON.parse(first.body);
    expect([first.status, lead]).toMatchObject([201, { displayName: 'Ada Lovelace', stage: 'new' }]);
    expect(second.status).toBe(201);
    expect(second.head).toMatch(/^idempotent-replayed: true/m);
    expect(second.body).toBe(first.body);
    running.child.kill('SIGINT');
    expect(await running.ended()).toBe(0);
    const env = { DATABASE_URL: `sqlite:${join(cwd, 'data/lead-intake.db')}` };
    expect((await executed(CLI, ['requests', 'demo'], { env })).stdout).toMatch(/201 replayed[\s\S]*201/);

    const again = run('start.ts', { cwd });
    await again.printed(/keys create demo --member demo-owner/);
    const headers = { authorization: `Bearer ${secret}` };
    const listed = await fetch(`${await findGateway(again)}/v1/integrations/leads`, { headers });
    expect(again.output()).not.toMatch(/lik_/);
    expect(await listed.json()).toEqual({ leads: [lead], nextCursor: null });
  },
);

/** Runs `npm start` in a terminal with only the given settings. */
function inTerminal(settings: Readonly<Record<string, string>>): RunningProcess {
  const { PATH } = process.env;
  const ports = { CORE_PORT: '0', GATEWAY_PORT: '0', SHUTDOWN_DRAIN_MS: '0' };
  return watch(
    spawn('script', ['-qec', `exec "${process.execPath}" "${join(ROOT, 'start.ts')}"`, '/dev/null'], {
      cwd: temporaryFolder(),
      env: { PATH, TERM: 'xterm', ...PLANTED, ...ports, ...settings },
      stdio: ['pipe', 'pipe', 'pipe'],
    }),
  );
}

describe.skipIf(spawnSync('script', ['--version']).status !== 0)('npm start in a terminal', () => {
  test('npm start shows the key, the inbox and the next steps in colour, and announces its end', async () => {
    const running = inTerminal({ PUBLIC_URL: 'https://leads.example.com/' });
    await running.printed(/Connect your website/);
    running.child.stdin?.write('\x03');
    expect(await running.ended()).toBe(0);

    const output = running.output().replaceAll('\r', '');
    expect(output).toContain('\x1b[1m\x1b[32mLead Intake is running.');
    const text = stripVTControlCharacters(output);
    const [secret = ''] = /lik_\S{48}/.exec(text) ?? [];
    expect(text).toMatch(/^\nThe key of the demo studio, shown this once:\n {2}\S+\n\nLead Intake is running\./);
    expect(text).toContain(`  Inbox     https://leads.example.com/docs/inbox#key=${secret}\n`);
    for (const step of ['leads list demo', 'docs/tutorial/walkthrough.md', 'https://leads.example.com/docs\n'])
      expect(text.split('Next, in a second terminal:')[1]).toContain(step);
    expect(text).toMatch(/\n\^C\nStopping Lead Intake\.\nLead Intake has stopped\.\n$/);
  });

  test('npm start prints no colour if NO_COLOR is set', async () => {
    const running = inTerminal({ NO_COLOR: '1' });
    await running.printed(/Connect your website/);
    running.child.stdin?.write('\x03');
    await running.ended();
    expect(running.output()).not.toContain('\x1b');
  });
});

describe('the check before npm start', () => {
  /** Runs the check that npm runs first, in a folder with these `engines`, with or without the packages. */
  function beforeStart(engines: string, isInstalled: boolean) {
    const folder = temporaryFolder();
    const program = join(folder, 'common/before-start.cjs');
    mkdirSync(join(folder, 'common'));
    copyFileSync(join(ROOT, 'common/before-start.cjs'), program);
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ engines: { node: engines } }));
    if (isInstalled) mkdirSync(join(folder, 'node_modules/fastify'), { recursive: true });
    const { status, stderr } = spawnSync(process.execPath, [program], { encoding: 'utf8' });
    return [status, stderr];
  }
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

  test('the check before npm start says that npm ci has not run', () => {
    const sentence = 'Lead Intake is not installed: run `npm ci` in this folder, then `npm start` again.\n';
    expect(beforeStart('>=1.0.0', false)).toEqual([1, sentence]);
  });

  test.each([`^${major + 1}.0.0`, `^${major - 1}.0.0`, `^${major}.${minor + 1}.0 || >=${major + 1}.0.0`])(
    'the check before npm start names the Node that is needed: %s',
    (engines) => {
      const sentence = `Lead Intake needs Node ${engines}, and this is ${process.version}: run \`npm ci\`, which installs one.\n`;
      expect(beforeStart(engines, true)).toEqual([1, sentence]);
    },
  );

  test.each([`^1.0.0 || ^${major}.${minor}.0`, `>=${major}.0.0`, `>=${major - 1}.99.0`])(
    'the check before npm start prints nothing for a Node that fits: %s',
    (engines) => expect(beforeStart(engines, true)).toEqual([0, '']),
  );

  test('npm runs the check before npm start, and the Node of this repository fits', () => {
    const { engines, scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    expect(scripts.prestart).toMatch(/^node common\/before-start\.cjs && /);
    expect(beforeStart(engines.node, true)).toEqual([0, '']);
  });
});

/** How long each process drains; milliseconds. */
const DRAIN_MS = 1000;

describe('npm start', () => {
  test.each(['SIGTERM', 'SIGHUP'] as const)('npm start stops the gateway and then the core on %s', async (signal) => {
    const running = run('start.ts', { cwd: temporaryFolder(), env: { SHUTDOWN_DRAIN_MS: `${DRAIN_MS}` } });
    await findGateway(running);
    const stoppedAt = performance.now();

    running.child.kill(signal);

    expect(await running.ended()).toBe(0);
    expect(performance.now() - stoppedAt).toBeGreaterThan(1.9 * DRAIN_MS);
  });

  test.each(['src/main.ts', 'gateway/main.ts'])('npm start ends both processes when %s dies', async (file) => {
    const running = run('start.ts', { cwd: temporaryFolder() });
    const url = await findGateway(running);

    execFileSync('pkill', ['-KILL', '-P', String(running.child.pid), '-f', file]);

    expect(await running.ended()).toBe(1);
    expect(running.output()).toContain(`${file} exited (SIGKILL)`);
    expect(await isAnswering(url)).toBe(false);
  });

  test('npm start leaves no process behind when it is killed', async () => {
    const running = run('start.ts', { cwd: temporaryFolder() });
    const url = await findGateway(running);

    running.child.kill('SIGKILL');

    await running.ended();
    expect(await isAnswering(url)).toBe(false);
  });

  test.skipIf(!hasShellAndCurl)('npm start stops both processes when npm itself is killed', async () => {
    // npm runs start.ts in a shell that waits for it.
    const shell = watch(
      spawn('sh', ['-c', `"${process.execPath}" "${join(ROOT, 'start.ts')}"; true`], {
        cwd: temporaryFolder(),
        env: {
          PATH: process.env.PATH,
          ...PLANTED,
          npm_lifecycle_event: 'start',
          CORE_PORT: '0',
          GATEWAY_PORT: '0',
          SHUTDOWN_DRAIN_MS: '0',
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    );
    const url = await findGateway(shell);
    expect(await isAnswering(url)).toBe(true);

    shell.child.kill('SIGKILL');

    // The shell's output closes only after all processes have ended.
    await shell.ended();
    expect(await isAnswering(url)).toBe(false);
  });

  test('npm start creates no demo data in a configured database', async () => {
    const cwd = temporaryFolder();
    const running = run('start.ts', { cwd, env: { DATABASE_URL: `sqlite:${join(cwd, 'own.db')}` } });

    await running.printed(/Lead Intake is running/);

    expect(running.output()).not.toMatch(/demo/);
    expect(existsSync(join(cwd, 'own.db'))).toBe(true);
    expect(existsSync(join(cwd, 'data'))).toBe(false);
  });

  test('npm start ends with status 1 when a port is in use, and prints a command with another port', async () => {
    const first = run('start.ts', { cwd: temporaryFolder() });
    const { port } = new URL(await findGateway(first));

    const env = { GATEWAY_PORT: port, npm_lifecycle_event: 'start' };
    const second = run('start.ts', { cwd: temporaryFolder(), env });

    expect(await second.ended()).toBe(1);
    expect(second.output()).toContain(`cannot listen on port ${port} of 127.0.0.1, because it is in use already`);
    expect(second.output()).toMatch(/^\S.*EADDRINUSE.*GATEWAY_PORT/m);
    expect(second.output()).toContain(`\n\n  CORE_PORT=0 GATEWAY_PORT=${Number(port) + 1} npm start\n`);
    expect(second.output()).toMatch(/gateway\/main.ts exited/);
    // The key is shown once, even by a start that fails.
    expect(second.output()).toMatch(/shown this once:\n {2}lik_\S{48}\n/);
  });
});
