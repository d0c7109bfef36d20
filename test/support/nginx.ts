import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { ROOT, temporaryFolder, watch } from '../tools/processes.ts';
import { describeIf, hasCommand } from '../tools/servers.ts';

/** Defines a suite whose tests start an nginx. */
export function describeWithNginx(name: string, body: () => void): void {
  describeIf(hasCommand('nginx'), name, 'install nginx', body);
}

/** The nginx settings of docs/how-to/balancers.md, in front of gateways and of cores. */
export const GUIDE = (() => {
  const guide = readFileSync(join(ROOT, 'docs/how-to/balancers.md'), 'utf8');
  const findSettings = (upstream: string) =>
    new RegExp(`\`\`\`nginx\\n(upstream ${upstream} [\\s\\S]*?)\`\`\``).exec(guide)?.[1] ?? '';
  return { gateways: findSettings('gateways'), cores: findSettings('cores') };
})();

/** Starts an nginx with these settings, changed to listen on a local port and to use servers on other local ports. */
export async function startNginx(settings: string, port: number, serverPorts: readonly number[]): Promise<void> {
  const folder = temporaryFolder();
  const [last] = serverPorts.slice(-1);
  const addresses = [...serverPorts];
  const local = settings
    .replace(/listen \d+/, `listen 127.0.0.1:${port}`)
    .replace(/^ *server 10\.0\.0\.\d+:\d+(.*);\n/gm, (_, parameters: string) => {
      const serverPort = addresses.shift();
      return serverPort === undefined ? '' : `  server 127.0.0.1:${serverPort}${parameters};\n`;
    });
  if (!local.includes(`127.0.0.1:${port}`) || !local.includes(`127.0.0.1:${last}`) || addresses.length > 0) {
    throw new Error(`these settings do not name ${serverPorts.length} servers:\n${settings}`);
  }
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (path) => `${path}_temp_path ${folder}/${path};`,
  );
  // Without this setting, workers of root would run as a user who may not write there.
  const user = process.getuid?.() === 0 ? 'user root; ' : '';
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `${user}daemon off; pid ${folder}/pid; error_log stderr; events {} http { access_log off; ${paths.join(' ')}\n${local}}\n`,
  );
  const nginx = watch(spawn('nginx', ['-c', file, '-e', 'stderr'], { stdio: ['ignore', 'pipe', 'pipe'] }));
  onTestFinished(async () => {
    nginx.child.kill('SIGTERM');
    await nginx.ended();
  });
}
