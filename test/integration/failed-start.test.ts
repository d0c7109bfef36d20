import { once } from 'node:events';
import { existsSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startGateway } from '../../gateway/app.ts';
import { readGatewayConfig } from '../../gateway/config.ts';
import { startCore } from '../../src/app.ts';
import { readCoreConfig } from '../../src/config.ts';
import { PUBLIC_URL } from '../support/service.ts';
import { temporaryFolder } from '../tools/processes.ts';

const ENV = { LOG_LEVEL: 'silent', SHUTDOWN_DRAIN_MS: '0', GATEWAY_REQUEST_LOG: 'yes' };
const START = {
  core: (env: object) => startCore(readCoreConfig({ ...ENV, ...env })),
  gateway: (env: object) =>
    startGateway(readGatewayConfig({ ...ENV, PUBLIC_URL, CORE_URL: 'http://127.0.0.1:1', ...env })),
};

/** Returns the kinds of the open ports and connections of this process. */
const resources = () => process.getActiveResourcesInfo().filter((kind) => /Server|Socket|Connect/.test(kind));

/** Listens on a port until the test ends. */
async function takenPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const FREE = '127.0.0.1:0';

test.each([
  ['core', (port: number) => ({ CORE_PORT: `${port}`, CORE_METRICS_ADDRESS: FREE })],
  ['core', (port: number) => ({ CORE_PORT: '0', CORE_METRICS_ADDRESS: `127.0.0.1:${port}` })],
  ['gateway', (port: number) => ({ GATEWAY_PORT: `${port}`, GATEWAY_METRICS_ADDRESS: FREE })],
  ['gateway', (port: number) => ({ GATEWAY_PORT: '0', GATEWAY_METRICS_ADDRESS: `127.0.0.1:${port}` })],
] as const)('a %s that cannot listen reports that, and closes everything it opened', async (name, settings) => {
  const port = await takenPort();
  const database = join(temporaryFolder(), 'leads.db');
  const before = resources().length;
  await expect(START[name]({ ...settings(port), DATABASE_URL: `sqlite:${database}` })).rejects.toMatchObject({
    code: 'EADDRINUSE',
    port,
  });
  await vi.waitFor(() => expect(resources().length).toBeLessThanOrEqual(before), { timeout: 30_000 });
  // SQLite removes its log as the last connection closes.
  if (name === 'core') expect([database, `${database}-wal`].map(existsSync)).toEqual([true, false]);
});
