/** Attacks on the relay by webhook receivers and by the name servers of their domains. */
import { once } from 'node:events';
import type { Agent } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer, type TLSSocket } from 'node:tls';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Network, newConnections, send } from '../../relay/send.ts';
import { type Authority, anAuthority, type Certificate } from '../tools/certificates.ts';

const DAY_MS = 86_400_000;

let authority: Authority;
let certificate: Certificate;
beforeAll(async () => {
  authority = await anAuthority('webhooks');
  certificate = await authority.issue('hooks.test', 'server');
});

/** Listens on a port of this machine; returns the port. */
async function listening(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A receiver that acts on each connection once the first bytes of a request have arrived. */
async function aReceiver(
  answer: (socket: TLSSocket, below: Socket) => void,
  shown: Partial<Certificate> = certificate,
): Promise<{ url: string; connections: () => number }> {
  let connections = 0;
  let below: Socket;
  const server = createServer(shown, (socket) => {
    connections += 1;
    socket.on('error', () => {});
    let request = '';
    socket.on('data', (chunk) => {
      request += chunk;
      if (!request.endsWith('{"a":1}')) return;
      request = '';
      answer(socket, below);
    });
  });
  server.on('tlsClientError', () => {});
  server.on('connection', (socket: Socket) => {
    below = socket;
  });
  const port = await listening(server);
  return { url: `https://hooks.test:${port}/in`, connections: () => connections };
}

const here: Network['resolve'] = async () => [{ address: '127.0.0.1', family: 4 }];

/** Sends a webhook to an address that resolves to this machine. */
function sendTo(
  url: string,
  network: Network = {},
  { allowPrivate = true, connections = false as Agent | false } = {},
) {
  const headers = { 'content-type': 'application/json', 'content-length': '7' };
  const attempt = { url, headers, body: '{"a":1}', allowPrivate, connections };
  return send(attempt, new AbortController().signal, { resolve: here, ca: authority.cert, ...network });
}

const respond =
  (head: string, body = '') =>
  (socket: TLSSocket) =>
    void socket.write(`${head}\r\n\r\n${body}`);

// @proves bounds-105
describe('the outcome of a webhook', () => {
  test.each([
    ['HTTP/1.1 200 OK\r\ncontent-length: 0', { code: 'DELIVERED' }],
    ['HTTP/1.1 204 No Content', { code: 'DELIVERED' }],
    ['HTTP/1.1 299 Strange\r\ncontent-length: 0', { code: 'DELIVERED' }],
    ['HTTP/1.1 410 Gone\r\ncontent-length: 0', { code: 'HTTP_410' }],
    ['HTTP/1.1 429 Slow\r\nretry-after: 120\r\ncontent-length: 0', { code: 'HTTP_429', retryAfterMs: 120_000 }],
    ['HTTP/1.1 503 Later\r\nretry-after: 0\r\ncontent-length: 0', { code: 'HTTP_503', retryAfterMs: 0 }],
    ['HTTP/1.1 429 Slow\r\nretry-after: 99999999999999999999\r\n', { code: 'HTTP_429', retryAfterMs: DAY_MS }],
    ['HTTP/1.1 429 Slow\r\nretry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\n', { code: 'HTTP_429', retryAfterMs: DAY_MS }],
    ['HTTP/1.1 429 Slow\r\nretry-after: Thu, 01 Jan 1970 00:00:00 GMT\r\n', { code: 'HTTP_429', retryAfterMs: 0 }],
    ['HTTP/1.1 429 Slow\r\nretry-after: -5x\r\n', { code: 'HTTP_429' }],
    ['HTTP/1.1 999 Beyond\r\ncontent-length: 0', { code: 'HTTP_999' }],
  ])('the outcome of a webhook is the status of the response: %s', async (head, outcome) => {
    const { url } = await aReceiver(respond(head));
    expect(await sendTo(url)).toEqual(outcome);
  });
});

// @proves relay-7
test('a webhook follows no redirect', async () => {
  const { url, connections } = await aReceiver(
    respond('HTTP/1.1 307 Elsewhere\r\nlocation: https://127.0.0.1/latest/meta-data\r\ncontent-length: 0'),
  );
  expect(await sendTo(url)).toEqual({ code: 'HTTP_307' });
  expect(connections()).toBe(1);
});

// @proves relay-8
describe("limits on a receiver's response", () => {
  // @proves bounds-101
  test('a webhook fails if the response has endless headers', async () => {
    let sent = 0;
    const { url } = await aReceiver((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      const more = () => {
        for (let each = 0; each < 100 && !socket.destroyed; each += 1)
          sent += socket.write(`x-${sent}: ${'y'.repeat(100)}\r\n`) ? 1 : 1;
        if (!socket.destroyed) setImmediate(more);
      };
      more();
    });
    expect(await sendTo(url)).toEqual({ code: 'RESPONSE_INVALID' });
  });

  // @proves bounds-102
  test('a webhook fails if interim responses never end', async () => {
    const { url } = await aReceiver((socket) => {
      const more = () => {
        if (socket.destroyed) return;
        socket.write('HTTP/1.1 103 Wait\r\n\r\n');
        setImmediate(more);
      };
      more();
    });
    expect(await sendTo(url)).toEqual({ code: 'RESPONSE_INVALID' });
  });

  // @proves bounds-100
  test('a webhook times out if the headers of its response trickle in', async () => {
    const { url } = await aReceiver((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      const timer = setInterval(() => socket.write('x: y\r\n'), 500);
      socket.on('close', () => clearInterval(timer));
    });
    expect(await sendTo(url)).toEqual({ code: 'TIMEOUT' });
  });

  // @proves bounds-103
  test("a webhook's outcome does not wait for an endless body", async () => {
    const closed = Promise.withResolvers<number>();
    const { url } = await aReceiver((socket) => {
      let written = 0;
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      const more = () => {
        if (socket.destroyed) return closed.resolve(written);
        written += 64 * 1024;
        if (socket.write('z'.repeat(64 * 1024))) setImmediate(more);
        else socket.once('drain', more);
      };
      socket.on('close', () => closed.resolve(written));
      more();
    });
    const connections = newConnections(1);
    expect(await sendTo(url, {}, { connections })).toEqual({ code: 'DELIVERED' });
    // As much as the kernel and the streams buffer.
    expect(await closed.promise).toBeLessThan(64 * 1024 * 1024);
    connections.destroy();
  });

  // @proves bounds-103
  test('a body that trickles in does not block the connection of the next webhook', async () => {
    const timers: NodeJS.Timeout[] = [];
    const { url, connections: opened } = await aReceiver((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      timers.push(setInterval(() => socket.write('z'), 100));
    });
    onTestFinished(() => timers.forEach(clearInterval));
    const connections = newConnections(1);
    const outcomes = [await sendTo(url, {}, { connections }), await sendTo(url, {}, { connections })];
    expect(outcomes).toEqual([{ code: 'DELIVERED' }, { code: 'DELIVERED' }]);
    expect(opened()).toBe(2);
    connections.destroy();
  });

  test('a connection is reused after a short body', async () => {
    const { url, connections: opened } = await aReceiver(respond('HTTP/1.1 200 OK\r\ncontent-length: 2', 'ok'));
    const connections = newConnections(1);
    for (let each = 0; each < 3; each += 1) {
      expect(await sendTo(url, {}, { connections })).toEqual({ code: 'DELIVERED' });
      await expect.poll(() => Object.keys(connections.freeSockets).length).toBe(1);
    }
    expect(opened()).toBe(1);
    connections.destroy();
  });

  // @proves relay-1
  test('an answered webhook is not sent again when its connection, new or reused, is reset', async () => {
    let requests = 0;
    const { url } = await aReceiver((socket, below) => {
      requests += 1;
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${requests === 1 ? 0 : 9}\r\n\r\n`);
      if (requests === 2) setTimeout(() => below.resetAndDestroy(), 50);
    });
    const connections = newConnections(1);
    expect(await sendTo(url, {}, { connections })).toEqual({ code: 'DELIVERED' });
    await expect.poll(() => Object.keys(connections.freeSockets).length).toBe(1);
    expect(await sendTo(url, {}, { connections })).toEqual({ code: 'DELIVERED' });
    await expect.poll(() => Object.keys(connections.sockets).length).toBe(0);
    await sleep(200);
    expect(requests).toBe(2);
    connections.destroy();
  });

  test('a webhook is sent again if its reused connection turns out to be closed', async () => {
    let requests = 0;
    const { url, connections: opened } = await aReceiver((socket) => {
      requests += 1;
      if (requests === 2) socket.destroy();
      else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    });
    const connections = newConnections(1);
    expect(await sendTo(url, {}, { connections })).toEqual({ code: 'DELIVERED' });
    await expect.poll(() => Object.keys(connections.freeSockets).length).toBe(1);
    expect(await sendTo(url, {}, { connections })).toEqual({ code: 'DELIVERED' });
    expect([requests, opened()]).toEqual([3, 2]);
    connections.destroy();
  });
});

describe('a receiver that disconnects', () => {
  test.each<[string, (socket: TLSSocket, below: Socket) => void, string]>([
    ['with a reset', (_, below) => void below.resetAndDestroy(), 'CONNECTION_FAILED'],
    ['without an answer', (socket) => void socket.end(), 'CONNECTION_FAILED'],
    ['in the middle of a line', (socket) => void socket.end('HTTP/1.1 2'), 'CONNECTION_FAILED'],
    ['with what is no HTTP', (socket) => void socket.end('SSH-2.0-OpenSSH_9.9\r\n'), 'RESPONSE_INVALID'],
    [
      'to speak another protocol',
      respond('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade'),
      'RESPONSE_INVALID',
    ],
  ])('a webhook fails if the receiver disconnects %s', async (_, answer, code) => {
    const { url } = await aReceiver(answer);
    expect(await sendTo(url)).toEqual({ code });
  });

  test('a webhook fails if the receiver never begins TLS', async () => {
    const reset = await listening(createTcpServer((socket) => void socket.resetAndDestroy()));
    expect(await sendTo(`https://hooks.test:${reset}/`)).toEqual({ code: 'CONNECTION_FAILED' });
    const silent = await listening(createTcpServer(() => {}));
    expect(await sendTo(`https://hooks.test:${silent}/`)).toEqual({ code: 'TIMEOUT' });
    const plain = await listening(createTcpServer((socket) => void socket.end('HTTP/1.1 200 OK\r\n\r\n')));
    expect(await sendTo(`https://hooks.test:${plain}/`)).toEqual({ code: 'TLS' });
  });

  test('a webhook fails if no receiver listens', async () => {
    const server = createTcpServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    expect(await sendTo(`https://hooks.test:${port}/`)).toEqual({ code: 'CONNECTION_FAILED' });
  });
});

// @proves relay-7
describe('the certificate of a receiver', () => {
  const good = respond('HTTP/1.1 200 OK\r\ncontent-length: 0');

  test('a webhook is not sent to a certificate of another name, expired or of an unknown authority', async () => {
    const others = [
      await authority.issue('other.test', 'server'),
      await authority.issue('hooks.test', 'server', [new Date(Date.now() - 2 * DAY_MS), new Date(Date.now() - DAY_MS)]),
      await (await anAuthority('unknown')).issue('hooks.test', 'server'),
    ];
    for (const other of others) {
      const { url, connections } = await aReceiver(good, other);
      expect(await sendTo(url)).toEqual({ code: 'TLS' });
      expect(connections()).toBeLessThanOrEqual(1);
    }
  });

  test('the receiver gets the name of the URL at the address that was checked', async () => {
    const names: unknown[] = [];
    const rememberName = (name: string, done: (error: null) => void) => {
      names.push(name);
      done(null);
    };
    const server = createServer({ ...certificate, SNICallback: rememberName }, (socket) => {
      socket.on('data', (chunk) => {
        names.push(/^host: (.*)$/im.exec(`${chunk}`)?.[1]?.trim());
        good(socket);
      });
    });
    const port = await listening(server);
    expect(await sendTo(`https://hooks.test:${port}/`)).toEqual({ code: 'DELIVERED' });
    expect(names).toEqual(['hooks.test', `hooks.test:${port}`]);
  });
});

// @proves relay-6
describe('receivers at forbidden addresses', () => {
  const good = respond('HTTP/1.1 200 OK\r\ncontent-length: 0');
  const answers =
    (...addresses: string[]): Network['resolve'] =>
    async () =>
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));

  test('a private address is refused unless the file allows it', async () => {
    const { url, connections } = await aReceiver(good);
    expect(await sendTo(url, {}, { allowPrivate: false })).toEqual({ code: 'ADDRESS_REFUSED' });
    expect(connections()).toBe(0);
    expect(await sendTo(url)).toEqual({ code: 'DELIVERED' });
  });

  test.each([
    [['169.254.169.254']],
    [['127.0.0.1', '169.254.169.254']],
    [['fe80::1', '127.0.0.1']],
    [['127.0.0.1', '::ffff:169.254.169.254']],
    [['127.0.0.1', '64:ff9b::a9fe:a9fe']],
    [['127.0.0.1', 'fd00:ec2::254']],
    [['127.0.0.1', '']],
  ])('one forbidden address refuses all, even if private ones are allowed: %j', async (addresses) => {
    const { url, connections } = await aReceiver(good);
    expect(await sendTo(url, { resolve: answers(...addresses) })).toEqual({ code: 'ADDRESS_REFUSED' });
    expect(connections()).toBe(0);
  });

  test('forbidden addresses in a URL are refused in every notation', async () => {
    for (const host of [
      '127.0.0.1',
      '127.1',
      '0x7f.1',
      '2130706433',
      '017700000001',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '10.0.0.1',
      '①②⑦.⓪.⓪.①',
    ])
      expect([host, await sendTo(`https://${host}/`, {}, { allowPrivate: false })]).toEqual([
        host,
        { code: 'ADDRESS_REFUSED' },
      ]);
    for (const host of ['169.254.169.254', '[fe80::1]', '[::ffff:a9fe:a9fe]', '0.0.0.0', '0'])
      expect([host, await sendTo(`https://${host}/`)]).toEqual([host, { code: 'ADDRESS_REFUSED' }]);
  });

  test('a name is resolved once for each attempt and checked even if a connection is open', async () => {
    const { url, connections: opened } = await aReceiver(good);
    let asked = 0;
    const resolve: Network['resolve'] = async () => {
      asked += 1;
      return [{ address: asked < 3 ? '127.0.0.1' : '169.254.169.254', family: 4 }];
    };
    const connections = newConnections(1);
    expect(await sendTo(url, { resolve }, { connections })).toEqual({ code: 'DELIVERED' });
    expect(asked).toBe(1);
    expect(await sendTo(url, { resolve }, { connections })).toEqual({ code: 'DELIVERED' });
    expect(await sendTo(url, { resolve }, { connections })).toEqual({ code: 'ADDRESS_REFUSED' });
    expect([asked, opened()]).toEqual([3, 1]);
    connections.destroy();
  });

  test('a webhook fails without an address, and times out if the name server does not respond', async () => {
    const { url } = await aReceiver(good);
    expect(await sendTo(url, { resolve: answers() })).toEqual({ code: 'NAME_NOT_RESOLVED' });
    expect(await sendTo(url, { resolve: async () => Promise.reject(new Error('SERVFAIL')) })).toEqual({
      code: 'NAME_NOT_RESOLVED',
    });
    expect(await sendTo(url, { resolve: () => new Promise(() => {}) })).toEqual({ code: 'TIMEOUT' });
  });
});
