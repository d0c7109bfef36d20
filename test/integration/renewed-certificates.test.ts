import { once } from 'node:events';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { credentials } from '@grpc/grpc-js';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { DAY_MS, plus, times } from '../support/builders.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { CORE_TOKEN, type GrpcCaller, grpcCaller, startTestCore } from '../support/grpc.ts';
import { scrape } from '../support/metrics.ts';
import { createAt } from '../support/service.ts';
import { type Authority, anAuthority, type Certificate, writeCertificate } from '../tools/certificates.ts';
import { type RunningProcess, readAddress, run, temporaryFolder } from '../tools/processes.ts';
import { startProxy } from '../tools/tcp-proxy.ts';
import { aGateway } from './a-gateway.ts';

/** Long enough to notice a change, and to log it again if it were logged repeatedly; milliseconds. */
const SEVERAL_CHECKS_MS = 3500;

let authority: Authority;
let next: Authority;
let folder: string;

beforeAll(async () => {
  authority = await anAuthority('The authority of the tests');
  next = await anAuthority('The next authority', lasting(900));
});
beforeEach(() => {
  folder = temporaryFolder();
});

/** The validity of a certificate: from yesterday, for this many days from now. */
const lasting = (days: number) => [daysFromNow(-1), daysFromNow(days)] as const;
const daysFromNow = (days: number) => new Date(Math.floor(plus(new Date(), days * DAY_MS).getTime() / 1000) * 1000);

const expired = () => authority.issue('localhost', 'server', [daysFromNow(-2), daysFromNow(-1)]);
const aCertificate = (by = authority) => by.issue('localhost', 'server');

/** Writes a certificate, and optionally client authorities, and returns the settings of a core with them. */
function presenting(certificate: Certificate, ca?: string) {
  const { cert, key } = writeCertificate(folder, 'core', certificate);
  const env: Record<string, string> = { CORE_TLS_CERT_FILE: cert, CORE_TLS_KEY_FILE: key };
  if (ca !== undefined) env.CORE_TLS_CLIENT_CA_FILE = writeFile('authorities.pem', ca);
  return env;
}

function writeFile(name: string, contents: string): string {
  const path = join(folder, name);
  writeFileSync(path, contents);
  return path;
}

async function aCore(env: Record<string, string>) {
  const core = await startTestCore(env);
  onTestFinished(() => core.stop());
  return core;
}

/** Starts a core in a separate process whose log the test reads. */
async function aLoggingCore(env: Record<string, string>): Promise<{ port: number; running: RunningProcess }> {
  const running = run('src/main.ts', {
    env: { ...env, CORE_TOKEN, DATABASE_URL: `sqlite:${join(folder, 'leads.db')}` },
  });
  return { port: Number(new URL(await readAddress(running)).port), running };
}

/** Completes a TLS handshake with a core. */
async function handshake(port: number, options: object = {}): Promise<TLSSocket> {
  const trusted = [authority.cert, next.cert];
  const socket = connect({ host: 'localhost', port, ca: trusted, ALPNProtocols: ['h2'], ...options });
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
}

/** Returns the certificate (PEM) that a core uses for a new connection. */
async function presentedBy(port: number, own?: Certificate): Promise<string | undefined> {
  const socket = await handshake(port, own);
  const presented = socket.getPeerX509Certificate()?.toString();
  socket.destroy();
  return presented?.trim();
}

/** Waits until a core uses a certificate for new connections. */
const untilPresented = (port: number, { cert }: Certificate, own?: Certificate) =>
  expect.poll(() => presentedBy(port, own)).toBe(cert.trim().replaceAll('\r\n', '\n'));

function aCaller(port: number, own?: Certificate): GrpcCaller {
  const [key, cert] = own ? [Buffer.from(own.key), Buffer.from(own.cert)] : [null, null];
  const channel = credentials.createSsl(Buffer.from([authority.cert, next.cert].join('\n')), key, cert);
  const caller = grpcCaller(`localhost:${port}`, channel, { 'grpc.use_local_subchannel_pool': 1 });
  onTestFinished(() => caller.close());
  return caller;
}

const list = (caller: GrpcCaller) => caller.call('DirectoryService/ListStudios');

/** Returns the log lines about unusable files. */
const warnings = (running: RunningProcess): Record<string, unknown>[] =>
  running
    .output()
    .split('\n')
    .filter((line) => line.includes('certificates not reloaded'))
    .map((line) => JSON.parse(line));

// @proves secrets-9 node-21
describe('a certificate of a core that is replaced', () => {
  test.each<[what: string, damage: (other: Certificate) => unknown, said: RegExp]>([
    [
      'by a part of it',
      ({ cert }) => writeFile('core.pem', cert.slice(0, 300)),
      /core\.pem has no certificates \(PEM\)/,
    ],
    ['by one that has expired', async () => presenting(await expired()), /expired at /],
    [
      'by one whose key is not a key',
      ({ cert }) => [writeFile('core.pem', cert), writeFile('core-key.pem', 'none')],
      /-key\.pem has no private key/,
    ],
    ['by no file', () => rmSync(join(folder, 'core.pem')), /core\.pem cannot be read \(ENOENT\)/],
  ])('a certificate replaced %s stays in use, logged once, until there is a valid one', async (_, damage, said) => {
    const [former, renewed] = [await aCertificate(), await aCertificate()];
    const { port, running } = await aLoggingCore(presenting(former));

    await damage(renewed);

    await running.printed(/certificates not reloaded/);
    await sleep(SEVERAL_CHECKS_MS);
    expect(warnings(running).map(({ fault }) => fault)).toEqual([expect.stringMatching(said)]);
    await untilPresented(port, former);
    presenting(renewed);
    await untilPresented(port, renewed);
    expect(running.output()).not.toContain('PRIVATE KEY');
  });

  // @proves node-23
  test('a changed symbolic link of a parent folder is noticed, as in Kubernetes', async () => {
    const [former, renewed] = [await aCertificate(), await aCertificate()];
    for (const [name, certificate] of [
      ['first', former],
      ['second', renewed],
    ] as const) {
      mkdirSync(join(folder, name));
      writeCertificate(join(folder, name), 'core', certificate);
    }
    symlinkSync('first', join(folder, 'data'));
    const { port } = await aCore({
      CORE_TLS_CERT_FILE: join(folder, 'data/core.pem'),
      CORE_TLS_KEY_FILE: join(folder, 'data/core-key.pem'),
    });
    await untilPresented(port, former);

    symlinkSync('second', join(folder, 'data-to-come'));
    renameSync(join(folder, 'data-to-come'), join(folder, 'data'));

    await untilPresented(port, renewed);
  });
});

// @proves secrets-11
test('after authorities change, a former certificate gets no new connection or resumed session', async () => {
  const [known, later] = [await authority.issue('caller', 'client'), await next.issue('caller', 'client')];
  const { port } = await aCore(presenting(await aCertificate(), authority.cert));
  const stays = aCaller(port, known);
  await list(stays);
  const earlier = await handshake(port, known);
  const [session] = await once(earlier.resume(), 'session');

  writeFile('authorities.pem', next.cert);

  await expect
    .poll(() =>
      list(aCaller(port, later)).then(
        () => 'served',
        () => 'refused',
      ),
    )
    .toBe('served');
  await expect(list(aCaller(port, known))).rejects.toThrow(/UNAVAILABLE/);
  // In TLS 1.3 a client learns that it is refused only after its own handshake.
  const again = await handshake(port, { ...known, session });
  const closed = once(again.resume(), 'close').then(() => 'closed');
  expect(again.isSessionReused()).toBe(false);
  expect(await Promise.race([closed, sleep(5000, 'open')])).toBe('closed');
  // Existing connections stay open.
  await list(stays);
});

// @proves secrets-9 node-22
test('a gateway and core get new authorities and certificates under load without an error', async () => {
  // Concatenated files may lack the line end between them.
  const both = authority.cert.trim() + next.cert;
  const core = await aCore({ ...presenting(await aCertificate(), authority.cert), CORE_CONNECTION_MAX_AGE_MS: '1000' });
  const proxy = await startProxy('127.0.0.1', core.port);
  onTestFinished(() => proxy.stop());
  const own = writeCertificate(folder, 'gateway', await authority.issue('gateway', 'client'));
  const trusted = writeFile('trusted.pem', authority.cert);
  const gateway = await aGateway(`https://localhost:${proxy.port}`, {
    CORE_CA_FILE: trusted,
    CORE_CLIENT_CERT_FILE: own.cert,
    CORE_CLIENT_KEY_FILE: own.key,
    GATEWAY_METRICS_ADDRESS: '127.0.0.1:0',
  });
  const [known, later] = [await authority.issue('crm', 'client'), await next.issue('crm', 'client')];
  const crm = connectToCore(`https://localhost:${core.port}`, CORE_TOKEN, { ca: authority.cert, ...known });
  const { secret } = await arrangeStudio(crm);
  crm.close();
  const isServed = (certificate: Certificate) =>
    list(aCaller(core.port, certificate)).then(
      () => true,
      () => false,
    );
  const untilLoaded = async (file: string) => {
    const before = await readExpiry('gateway', gateway.metricsUrl, file);
    return () => expect.poll(() => readExpiry('gateway', gateway.metricsUrl, file)).toBeGreaterThan(before ?? 0);
  };

  let isOver = false;
  const failures: unknown[] = [];
  const callers = times(4, async () => {
    while (!isOver) {
      const answer = await createAt(gateway.url, secret);
      const text = await answer.text();
      if (answer.status !== 201) failures.push(text);
    }
  });
  try {
    const [trustLoaded, ownLoaded] = [await untilLoaded(trusted), await untilLoaded(own.cert)];
    writeFile('trusted.pem', both);
    writeFile('authorities.pem', both);
    await trustLoaded();
    await expect.poll(() => isServed(later)).toBe(true);

    const renewed = await aCertificate(next);
    presenting(renewed);
    await untilPresented(core.port, renewed, later);
    writeCertificate(folder, 'gateway', await next.issue('gateway', 'client', lasting(800)));
    await ownLoaded();

    writeFile('trusted.pem', next.cert);
    writeFile('authorities.pem', next.cert);
    await expect.poll(() => isServed(known)).toBe(false);
    // New connections depend on no former certificate, on either side.
    const before = proxy.opened();
    await expect.poll(() => proxy.opened()).toBeGreaterThan(before + 2);
  } finally {
    isOver = true;
    await Promise.all(callers);
  }
  expect(failures.slice(0, 3)).toEqual([]);
});

test('the metrics of core and gateway have the expiry of their certificates in use', async () => {
  const [soon, late] = [lasting(20), lasting(40)];
  const env = presenting(await authority.issue('localhost', 'server', soon));
  const core = await aCore({ ...env, CORE_METRICS_ADDRESS: '127.0.0.1:0' });
  const trusted = writeFile('trusted.pem', authority.cert);
  const gateway = await aGateway(`https://localhost:${core.port}`, {
    CORE_CA_FILE: trusted,
    GATEWAY_METRICS_ADDRESS: '127.0.0.1:0',
  });
  const coreExpiry = () => readExpiry('core', core.metricsUrl, env.CORE_TLS_CERT_FILE);
  expect(await coreExpiry()).toBe(soon[1].getTime() / 1000);
  expect(await readExpiry('gateway', gateway.metricsUrl, trusted)).toBeGreaterThan(daysFromNow(300).getTime() / 1000);

  presenting(await authority.issue('localhost', 'server', late));

  await expect.poll(coreExpiry).toBe(late[1].getTime() / 1000);
});

/** Returns when the certificates that a process uses expire, from its metrics; seconds since 1970. */
const readExpiry = async (process: 'core' | 'gateway', url: string | undefined, file = '') =>
  (await scrape(url)).get(`lead_intake_${process}_certificate_expiry_timestamp_seconds{file="${file}"}`);
