import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { LEADS } from '../support/service.ts';
import { anAuthority, writeCertificate } from '../tools/certificates.ts';
import { type RunningProcess, readAddress, sharedFolder, start } from '../tools/processes.ts';
import { freePort } from '../tools/servers.ts';

const lines = (...all: string[]) => `${all.join('\r\n')}\r\n\r\n`;
const HOST = 'Host: a';
const JSON_TYPE = 'Content-Type: application/json';

/** Each kind of HTTP/1.1 request, by the server's reaction: respond, wait for more, leave HTTP, or refuse. */
const requests = (path: string, post: string, ...headers: string[]): readonly string[] => [
  lines(`GET ${path} HTTP/1.1`, HOST, ...headers),
  `${lines(`POST ${post} HTTP/1.1`, HOST, ...headers, JSON_TYPE, 'Content-Length: 2')}{}`,
  `${lines(`POST ${post} HTTP/1.1`, HOST, ...headers, JSON_TYPE, 'Content-Length: 9')}{}`,
  `${lines(`POST ${post} HTTP/1.1`, HOST, ...headers, JSON_TYPE, 'Transfer-Encoding: chunked')}2\r\n{}\r\n`,
  `${lines(`POST ${post} HTTP/1.1`, HOST, JSON_TYPE, 'Transfer-Encoding: chunked')}2\r\n{}\r\nzz\r\n`,
  lines(`POST ${post} HTTP/1.1`, HOST, ...headers, JSON_TYPE, 'Expect: 100-continue', 'Content-Length: 2'),
  lines(`POST ${post} HTTP/1.1`, HOST, 'Expect: x', 'Content-Length: 0'),
  lines('CONNECT a:1 HTTP/1.1', HOST, ...headers),
  lines(`GET ${path} HTTP/1.1`, HOST, 'Connection: Upgrade', 'Upgrade: websocket'),
  lines(`FROB ${path} HTTP/1.1`, HOST),
  lines(`SETUP ${path} RTSP/1.0`, HOST),
  lines('PRI * HTTP/2.0', '', 'SM'),
  'EHLO x\r\n\r\n',
];

/** How long a client waits before it leaves, so that requests are not received, in flight, or answered; milliseconds. */
const MOMENTS = [undefined, 0, 1, 4];
const LEAVING: readonly ((socket: Socket) => void)[] = [
  (socket) => socket.resetAndDestroy(),
  (socket) => socket.destroy(),
  (socket) => socket.end(() => setTimeout(() => socket.destroy(), 2)),
];

/** An attacker has no token, and can only end its own connections. */
const CORE_TOKEN = randomUUID();
const EXCHANGE = '/leadintake.v1.ExchangeService/Exchange';
const CHECK = '/grpc.health.v1.Health/Check';
const CHECKED = `${CHECK}?connect=v1&encoding=json&message=%7B%7D`;

interface Port {
  readonly running: RunningProcess;
  readonly open: () => Promise<{ readonly socket: Socket; readonly below: Socket }>;
}

const folder = sharedFolder();
let authority: Awaited<ReturnType<typeof anAuthority>>;
beforeAll(async () => {
  authority = await anAuthority('The authority of the tests');
});

async function plain(url: string, localPort?: number) {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port), localPort });
  socket.on('error', () => {});
  // A process that has ended does not listen any more.
  await once(socket, 'connect').catch(() => {});
  return { socket, below: socket };
}

async function overTls(url: string, localPort?: number) {
  const { socket: below } = await plain(url, localPort);
  const socket = connectTls({ socket: below, host: 'localhost', ca: authority.cert, ALPNProtocols: ['http/1.1'] });
  socket.on('error', () => {});
  await Promise.race([once(socket, 'secureConnect'), once(below, 'close')]).catch(() => {});
  return { socket, below };
}

async function aGateway(): Promise<Port> {
  const running = start('gateway/main.ts', { env: { CORE_URL: 'http://127.0.0.1:1' } });
  const url = await readAddress(running);
  return { running, open: () => plain(url) };
}

async function aCore(env: Record<string, string> = {}): Promise<Port & { readonly url: string }> {
  const database = `sqlite:${join(folder(), `${randomUUID()}.db`)}`;
  const running = start('src/main.ts', { env: { CORE_TOKEN, DATABASE_URL: database, ...env } });
  const url = await readAddress(running);
  return { running, url, open: () => plain(url) };
}

async function aCoreWithTls(): Promise<Port & { readonly url: string }> {
  const { cert, key } = writeCertificate(folder(), 'core', await authority.issue('localhost', 'server'));
  const core = await aCore({ CORE_TLS_CERT_FILE: cert, CORE_TLS_KEY_FILE: key });
  return { ...core, open: () => overTls(core.url) };
}

async function aMetricsServer(): Promise<Port> {
  const { running } = await aCore({ CORE_METRICS_ADDRESS: '127.0.0.1:0' });
  const [, url = ''] = await running.printed(/(http:\/\/[0-9.:]+)\/metrics/);
  return { running, open: () => plain(url) };
}

const OF_CORE = [
  ...requests(CHECKED, CHECK),
  ...requests(CHECKED, EXCHANGE, `Authorization: Bearer ${CORE_TOKEN}`).slice(1, 4),
];

const PORTS: Readonly<Record<string, [start: () => Promise<Port>, requests: readonly string[]]>> = {
  'a gateway': [aGateway, requests('/docs', LEADS, `Authorization: Bearer ${newKeySecret()}`)],
  'a core with TLS': [aCoreWithTls, OF_CORE],
  'a core without TLS': [aCore, requests(CHECKED, CHECK)],
  'a server of metrics': [aMetricsServer, requests('/metrics', '/metrics')],
};

// @proves hostile-1 node-32
describe.each(Object.entries(PORTS))('%s', (_, [startOne, heads]) => {
  test('the port survives clients that send two requests at once and leave at any moment', async () => {
    const { running, open } = await startOne();
    const pairs = heads.flatMap((one) => heads.map((other) => [one, other]));
    for (const pair of pairs) {
      await Promise.all(
        MOMENTS.flatMap((moment) =>
          LEAVING.map(async (leave) => {
            const { socket, below } = await open();
            onTestFinished(() => void below.destroy());
            socket.resume().write(pair.join(''));
            if (moment !== undefined) await sleep(moment);
            leave(below);
          }),
        ),
      );
      expect({ pair, status: running.child.exitCode }).toEqual({ pair, status: null });
    }
    running.child.kill('SIGTERM');
    expect(await running.ended()).toBe(0);
  });
});

// @proves crashes-7 node-33
test('a core stops in order after clients left within a request and reused their ports', async () => {
  const { running, url } = await aCoreWithTls();
  const unfinished = requests(CHECKED, CHECK)[3] ?? '';
  const localPort = await freePort();
  // How far the core has got decides which departures it does not notice.
  for (const moment of Array(5).fill(MOMENTS).flat()) {
    const { socket, below } = await overTls(url, localPort);
    socket.resume().write(unfinished);
    if (moment !== undefined) await sleep(moment);
    below.resetAndDestroy();
  }
  running.child.kill('SIGTERM');
  expect(await running.ended()).toBe(0);
});

// @proves crashes-7
test('a gateway stops in order although a client reads nothing and sent CONNECT last', async () => {
  const { running, open } = await aGateway();
  const { socket } = await open();
  onTestFinished(() => void socket.destroy());
  socket.pause().write(`${lines('GET /docs/assets/scalar.js HTTP/1.1', HOST).repeat(4)}${requests('', '')[7]}`);
  // All of it has arrived once another request is answered.
  const { socket: other } = await open();
  other.write(lines('GET /healthz HTTP/1.1', HOST));
  await once(other, 'data');
  other.destroy();
  running.child.kill('SIGTERM');
  expect(await running.ended()).toBe(0);
});
