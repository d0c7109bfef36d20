import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { CallerConnection, NEXT, STATES } from '../../src/http2/connection.ts';

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
  return { client, connection: new CallerConnection(accepted, 300_000) };
}

test('a connection that was cut off with a delay closes at once when it is cut off without one', async () => {
  const { client, connection } = await aConnection();
  connection.cutOff(600_000);
  connection.cutOff(0);
  await once(client.resume(), 'close');
  expect(connection.socket.destroyed).toBe(true);
});

test('whatever happens to a connection in whatever state, it does not return to an earlier one', () => {
  expect(Object.keys(NEXT)).toEqual([...STATES]);
  for (const [index, state] of STATES.entries()) {
    const next = Object.values(NEXT[state]).map((each) => STATES.indexOf(each));
    expect(Math.min(...next), state).toBeGreaterThanOrEqual(index);
    expect(NEXT[state]).toMatchObject({ close: 'closed' });
  }
});

test('a connection that was cut off or has closed is open for no call', async () => {
  const { connection } = await aConnection();
  expect([connection.state, connection.isOpen]).toEqual(['accepted', true]);
  connection.cutOff(600_000);
  expect([connection.state, connection.isOpen]).toEqual(['cutOff', false]);
  connection.socket.destroy();
  await once(connection.socket, 'close');
  expect([connection.state, connection.isOpen]).toEqual(['closed', false]);
});
