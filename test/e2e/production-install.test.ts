import { execFile, spawn } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { ROOT, temporaryFolder, watch } from '../tools/processes.ts';
import { describeIf, hasCommand } from '../tools/servers.ts';
import { testSize } from '../tools/test-size.ts';

const execute = promisify(execFile);
const DEPLOY = join(ROOT, 'docs/how-to/deploy.md');

/** The oldest Node of each line that package.json allows, oldest first; only a soak uses all of them. */
const LINES = [...packageJson.engines.node.matchAll(/\d+\.\d+\.\d+/g)].map(([version]) => version);
const NODES = LINES.slice(0, testSize('NODE_LINES', { usual: 1, soak: LINES.length }));
const [oldest] = NODES;

/** The largest deviation of an installation's size from that in deploy.md, as a fraction. */
const TOLERANCE = 0.1;

// These tests need the registry, as `npm ci` does.
describeIf(hasCommand('npm'), 'a production installation', 'install npm', () => {
  // @proves packages-1 supply-5
  test(`an install for Node ${oldest} has its documented size and runs on ${NODES.join(', ')}`, async () => {
    const [folder, nodeFolder] = [temporaryFolder(), temporaryFolder()];
    const { stdout: files } = await execute('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
      cwd: ROOT,
    });
    for (const file of files.split('\0').filter(Boolean)) cpSync(join(ROOT, file), join(folder, file));
    const aliases = NODES.map((version) => `node-${version}@npm:node@${version}`);
    await execute('npm', ['install', '--prefix', nodeFolder, ...aliases]);
    const settings = { CORE_PORT: '0', GATEWAY_PORT: '0', LOG_LEVEL: 'silent' };
    const makeEnvironment = (version = '') => {
      const path = [join(nodeFolder, 'node_modules', `node-${version}`, 'bin'), process.env.PATH].join(delimiter);
      return { ...process.env, PATH: path, ...settings };
    };
    const env = makeEnvironment(oldest);
    for (const version of NODES) {
      const { stdout } = await execute('node', ['--version'], { env: makeEnvironment(version) });
      expect(stdout.trim()).toBe(`v${version}`);
    }
    await execute('npm', ['ci', '--omit=dev', '--engine-strict'], { cwd: folder, env });
    const { stdout: kilobytes } = await execute('du', ['-sk', join(folder, 'node_modules')]);
    const [, megabytes] = /the packages for production \((\d+) MB\)/.exec(readFileSync(DEPLOY, 'utf8')) ?? [];
    expect(Math.abs(Number.parseInt(kilobytes, 10) / 1000 / Number(megabytes) - 1)).toBeLessThan(TOLERANCE);
    const { running, url, stop } = await startIn(folder, env);
    const [secret] = await running.printed(/lik_\S{48}/);

    const response = await fetch(url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
        'idempotency-key': crypto.randomUUID(),
      },
      body: JSON.stringify({ displayName: 'Ada', contact: { type: 'email', value: 'ada@example.org' } }),
    });
    expect([response.status, await response.json()]).toMatchObject([201, { lead: { displayName: 'Ada' } }]);

    // Without the development packages, `npm start` can build neither the client packages nor the docs, and continues.
    const { stderr } = await execute('npm', ['run', '--silent', 'prestart'], { cwd: folder, env });
    expect(stderr).toMatch(
      /^building the packages of the clients failed: .*; npm run build:packages tries again\nbuilding the pages/,
    );
    for (const [path, what] of [
      ['packages/lead-intake-sdk-1.0.0.tgz', 'packages'],
      ['quick-start', 'docs'],
    ]) {
      const absent = await fetch(new URL(`/docs/${path}`, url));
      const { detail } = (await absent.json()) as { detail?: string };
      expect([absent.status, detail]).toEqual([
        404,
        expect.stringContaining(`The ${what} of this release are not here`),
      ]);
    }
    expect(await stop()).toBe(0);

    for (const version of NODES.slice(1)) {
      const other = await startIn(folder, makeEnvironment(version));
      await expect.poll(async () => (await fetch(new URL('/readyz', other.url))).ok).toBe(true);
      expect(await other.stop()).toBe(0);
    }
  });
});

/** Starts the service of a folder, and stops it after the test. */
async function startIn(folder: string, env: NodeJS.ProcessEnv) {
  const running = watch(spawn('node', ['start.ts'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] }));
  const stop = () => {
    running.child.kill('SIGTERM');
    return running.ended();
  };
  onTestFinished(async () => void (await stop()));
  const [, url = ''] = await running.printed(/REST API {2}(\S+)/);
  return { running, url, stop };
}
