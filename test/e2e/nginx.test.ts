import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { times } from '../support/builders.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { addressOf, ROOT, run, temporaryFolder, watch } from '../support/processes.ts';
import { describeIf, freePort, hasCommand } from '../support/servers.ts';
import { aCapture, createAt } from '../support/service.ts';

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
});

/** Starts nginx with the settings of docs/how-to/balancers.md. */
async function startNginx(port: number, corePort: number): Promise<void> {
  const folder = temporaryFolder();
  const guide = readFileSync(join(ROOT, 'docs/how-to/balancers.md'), 'utf8');
  const [, settings = ''] = /```nginx\n([\s\S]*?)```/.exec(guide) ?? [];
  const local = settings
    .replace('listen 50051', `listen 127.0.0.1:${port}`)
    .replace(/server 10\.0\.0\.21:50051;\n\s*server 10\.0\.0\.22:50051;/, `server 127.0.0.1:${corePort};`);
  expect(local).toContain(`127.0.0.1:${corePort};`);
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
