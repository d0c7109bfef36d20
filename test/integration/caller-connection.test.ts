import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { CallerConnection } from '../../src/http2/connections.ts';

async function aConnection() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [accepted] = (await once(server, 'connection')) as [Socket];
  onTestFinished(() => {
    client.destroy();
    accepted.destroy();
    server.close();
  });
  return { client, connection: new CallerConnection(accepted) };
}

test('a connection that was cut off with a delay closes at once when it is cut off without one', async () => {
  const { client, connection } = await aConnection();
  connection.cutOff(600_000);
  connection.cutOff(0);
  await once(client.resume(), 'close');
  expect(connection.socket.destroyed).toBe(true);
});
