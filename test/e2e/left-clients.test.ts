import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { times } from '../support/builders.ts';
import { addressOf, run } from '../support/processes.ts';
import { lines } from '../support/raw-http.ts';

const PATHS = [
  '/docs',
  '/docs/assets/style.css',
  '/docs/assets/reference.js',
  '/v1/openapi.json',
  '/healthz',
  '/v1/integrations/leads',
];

// @proves hostile-12
test('clients that leave at each kind of response write no warning and no error into the log', async () => {
  const gateway = run('gateway/main.ts', { env: { CORE_URL: 'http://127.0.0.1:1' } });
  const { hostname, port, origin } = new URL(await addressOf(gateway));
  for (const path of [...PATHS, '/nothing']) {
    await Promise.all(
      times(40, async (count) => {
        const socket = connect({ host: hostname, port: Number(port) });
        socket.on('error', () => {});
        socket.write(lines(`GET ${path} HTTP/1.1`, 'Host: leads', ''));
        await once(socket, count % 2 ? 'data' : 'connect');
        socket.resetAndDestroy();
      }),
    );
  }
  expect((await fetch(`${origin}/healthz`)).status).toBe(200);
  const loud = gateway
    .output()
    .split('\n')
    .filter((line) => /"level":[456]0/.test(line));
  expect(loud.filter((line) => !line.includes('not ready'))).toEqual([]);
});
