import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { times } from '../support/builders.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { addressOf, ROOT, run, temporaryFolder, watch } from '../support/processes.ts';
import { describeIf, freePort, hasCommand } from '../support/servers.ts';
import { aCapture, createAt, LEADS } from '../support/service.ts';

/** Together, the bodies are longer than the limit that nginx has by default: 1 MiB. */
const CREATIONS = 1200;
const NOTE = 'x'.repeat(1500);

describeIf(hasCommand('nginx'), 'behind nginx', 'install nginx', () => {
  // @proves crashes-25
  test('a gateway that reaches its core by the settings of the guide sends any number of bytes, and no request fails', async () => {
    const core = await addressOf(run('src/main.ts', { env: { DATABASE_URL: `sqlite:${temporaryFolder()}/leads.db` } }));
    const port = await freePort();
    await startNginx(port, Number(new URL(core).port));
    const env = { CORE_URL: `http://127.0.0.1:${port}`, QUOTA_LIMIT: '1000000000' };
    const gateway = await addressOf(run('gateway/main.ts', { env }));
    const clients = connectToCore(core);
    onTestFinished(() => clients.close());
    const { secret } = await arrangeStudio(clients);

    const failed: number[] = [];
    await Promise.all(
      times(8, async () => {
        for (let sent = 0; sent < CREATIONS / 8; sent += 1) {
          const { status } = await createAt(gateway, secret, {}, aCapture({ note: NOTE }));
          if (status !== 201) failed.push(status);
        }
      }),
    );
    expect(failed).toEqual([]);
  });

  // @proves exchange-10
  test('each operation goes on when one of two cores stands still, although nginx keeps the calls to it', async () => {
    const env = { DATABASE_URL: `sqlite:${temporaryFolder()}/leads.db` };
    const cores = [run('src/main.ts', { env }), run('src/main.ts', { env })];
    const addresses = await Promise.all(cores.map(addressOf));
    const port = await freePort();
    await startNginx(port, ...addresses.map((address) => Number(new URL(address).port)));
    const gateway = await addressOf(run('gateway/main.ts', { env: { CORE_URL: `http://127.0.0.1:${port}` } }));
    const clients = connectToCore(addresses[0] as string);
    onTestFinished(() => clients.close());
    const { secret } = await arrangeStudio(clients);
    const ask = async () => {
      const created = await createAt(gateway, secret);
      const reads = await Promise.all(
        ['', created.headers.get('location')?.replace(LEADS, '')].map((path = '/none') =>
          fetch(`${gateway}${LEADS}${path}`, { headers: { authorization: `Bearer ${secret}` } }),
        ),
      );
      return [created, ...reads].map(({ status }) => status);
    };
    expect(await ask()).toEqual([201, 200, 200]);
    cores[1]?.child.kill('SIGSTOP');
    onTestFinished(() => void cores[1]?.child.kill('SIGCONT'));
    // A new call may meet the same core again, so each has some tries of CORE_CALL_MS; nginx would keep the first for an hour.
    await expect.poll(ask, { timeout: 120_000 }).toEqual([201, 200, 200]);
    for (const _ of times(10, () => 0)) expect(await ask()).toEqual([201, 200, 200]);
  });
});

/** Starts nginx with the settings of docs/how-to/balancers.md. */
async function startNginx(port: number, ...corePorts: readonly number[]): Promise<void> {
  const folder = temporaryFolder();
  const guide = readFileSync(join(ROOT, 'docs/how-to/balancers.md'), 'utf8');
  const [, settings = ''] = /```nginx\n([\s\S]*?)```/.exec(guide) ?? [];
  const local = settings
    .replace('listen 50051', `listen 127.0.0.1:${port}`)
    .replace(
      /server 10\.0\.0\.21:50051;\n\s*server 10\.0\.0\.22:50051;/,
      corePorts.map((corePort) => `server 127.0.0.1:${corePort};`).join('\n'),
    );
  expect(local).toContain(`127.0.0.1:${corePorts.at(-1)};`);
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (path) => `${path}_temp_path ${folder}/${path};`,
  );
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; pid ${folder}/pid; error_log stderr; events {} http { access_log off; ${paths.join(' ')}\n${local}}\n`,
  );
  const nginx = watch(spawn('nginx', ['-c', file, '-e', 'stderr'], { stdio: ['ignore', 'pipe', 'pipe'] }));
  onTestFinished(async () => {
    nginx.child.kill('SIGTERM');
    await nginx.ended();
  });
}
