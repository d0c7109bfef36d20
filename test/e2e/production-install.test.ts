import { execFile, spawn } from 'node:child_process';
import { cpSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { ROOT, temporaryFolder, watch } from '../support/processes.ts';
import { describeIf, hasCommand } from '../support/servers.ts';

const execute = promisify(execFile);

const [, oldest = ''] = /^\^(\d+\.\d+\.\d+) /.exec(packageJson.engines.node) ?? [];

// `npm ci` needs the registry anyway, which these tests only use a second time.
describeIf(hasCommand('npm'), 'an installation for production', 'install npm', () => {
  // @proves packages-7
  test(`has packages for the oldest Node of package.json, ${oldest}, and the service runs on it`, async () => {
    const [folder, nodeFolder] = [temporaryFolder(), temporaryFolder()];
    const { stdout: files } = await execute('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
      cwd: ROOT,
    });
    for (const file of files.split('\0').filter(Boolean)) cpSync(join(ROOT, file), join(folder, file));
    await execute('npm', ['install', '--prefix', nodeFolder, `node@${oldest}`]);
    const path = [join(nodeFolder, 'node_modules/.bin'), process.env.PATH].join(delimiter);
    const env = { ...process.env, PATH: path, CORE_PORT: '0', GATEWAY_PORT: '0', LOG_LEVEL: 'silent' };

    const { stdout: version } = await execute('node', ['--version'], { env });
    expect(version.trim()).toBe(`v${oldest}`);
    await execute('npm', ['ci', '--omit=dev', '--engine-strict'], { cwd: folder, env });
    const child = spawn('node', ['start.ts'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const running = watch(child);
    onTestFinished(async () => {
      child.kill('SIGTERM');
      await running.ended();
    });
    const [, url = ''] = await running.printed(/REST API {2}(\S+)/);
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
    expect((await fetch(new URL('/docs/assets/scalar.js', url))).status).toBe(200);

    // Without the packages of development, `npm start` cannot build those of the clients, and goes on.
    const { stderr } = await execute('npm', ['run', '--silent', 'prestart'], { cwd: folder, env });
    expect(stderr).toMatch(/^building the packages of the clients failed: .*; npm run build:packages tries again\n$/);
    const archive = await fetch(new URL('/docs/packages/lead-intake-sdk-1.0.0.tgz', url));
    expect(archive.status).toBe(404);
    for (const text of [await archive.text(), await (await fetch(new URL('/docs/quick-start.md', url))).text()]) {
      expect(text).toContain('The packages of this release are not here');
    }
  });
});
