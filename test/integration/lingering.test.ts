import { once } from 'node:events';
import { type AddressInfo, connect, createServer, Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { Lingering, MAX_DISCARDED_BYTES } from '../../common/lingering.ts';
import { times } from '../support/builders.ts';

const MAX_LINGERING = 3;
const PATIENCE = { timeout: 60_000 };

/** Starts a server that answers the first byte of a connection and then ends it in stages. */
async function aServer() {
  const lingering = new Lingering(MAX_LINGERING);
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    lingering.watch(socket);
    sockets.push(socket);
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write('answer');
      socket.destroySoon();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    /** Connects, and returns both ends after the answer and the end have come. The caller's side stays open. */
    async anAnswered() {
      const caller = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      onTestFinished(() => void caller.destroy());
      caller.on('error', () => {});
      caller.write('x');
      let received = '';
      caller.on('data', (bytes) => {
        received += bytes;
      });
      await once(caller, 'end');
      expect(received).toBe('answer');
      const socket = sockets.find(({ remotePort }) => remotePort === caller.localPort) as Socket;
      return { caller, socket };
    },
  };
}

// @proves bounds-220 bounds-221 node-7
test('a connection after its last answer ends with its peer, or by silence, time and bytes', async () => {
  const { anAnswered } = await aServer();
  const polite = await anAnswered();
  expect(polite.socket.destroyed).toBe(false);
  polite.caller.end();
  await once(polite.socket, 'close');

  const [silent, steady, greedy] = await Promise.all([anAnswered(), anAnswered(), anAnswered()]);
  const trickle = setInterval(() => steady.caller.write('x'), 100);
  onTestFinished(() => clearInterval(trickle));
  greedy.caller.write(Buffer.alloc(MAX_DISCARDED_BYTES + 1));
  await expect.poll(() => greedy.socket.destroyed, PATIENCE).toBe(true);
  await expect.poll(() => silent.socket.destroyed, PATIENCE).toBe(true);
  await expect.poll(() => steady.socket.destroyed, PATIENCE).toBe(true);
  expect(steady.socket.bytesRead).toBeGreaterThan(1);
});

// @proves bounds-220 bounds-221
test('when too many connections linger, the oldest one ends', () => {
  const lingering = new Lingering(MAX_LINGERING);
  const sockets = times(MAX_LINGERING + 1, () => new Socket());
  for (const socket of sockets) {
    onTestFinished(() => void socket.destroy());
    lingering.hold(socket);
  }
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true, ...times(MAX_LINGERING, () => false)]);
});
