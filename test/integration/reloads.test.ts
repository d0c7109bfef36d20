import { X509Certificate } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type ClientHttp2Stream, connect, type ServerHttp2Stream } from 'node:http2';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { newCoreToken } from '../../common/rules/key-secret.ts';
import { ConsumerStart } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { type CallerEntries, tokenHash } from '../../src/callers-file.ts';
import { framed } from '../security/http2-wire.ts';
import { times } from '../support/builders.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { requestBytes, startTestCore } from '../support/grpc.ts';
import { createAt, readLead } from '../support/service.ts';
import { aWebhookReceiver } from '../support/webhooks.ts';
import { anAuthority, writeCertificate } from '../tools/certificates.ts';
import { readAddress, run, temporaryFolder } from '../tools/processes.ts';
import { startProxy } from '../tools/tcp-proxy.ts';
import { writeCallersFile } from './a-callers-file.ts';

/** Counts the streams of some methods that a core in this process has served, and those that ended. */
function openStreams(...methods: readonly string[]) {
  const seen = { begun: 0, ended: 0 };
  const watched = new WeakSet<ServerHttp2Stream>();
  const onBegun = (message: unknown) => {
    const { stream, headers } = message as { stream: ServerHttp2Stream; headers: Record<string, string> };
    if (!methods.some((method) => headers[':path']?.endsWith(`/${method}`))) return;
    seen.begun += 1;
    watched.add(stream);
  };
  const onEnded = (message: unknown) => {
    if (watched.has((message as { stream: ServerHttp2Stream }).stream)) seen.ended += 1;
  };
  subscribe('http2.server.stream.created', onBegun);
  subscribe('http2.server.stream.close', onEnded);
  onTestFinished(() => {
    unsubscribe('http2.server.stream.created', onBegun);
    unsubscribe('http2.server.stream.close', onEnded);
  });
  return seen;
}

/** Returns the texts that a stream receives. */
function listTexts(stream: ClientHttp2Stream): string[] {
  const texts: string[] = [];
  stream.on('data', (chunk: Buffer) => void texts.push(chunk.toString()));
  return texts;
}

// @proves secrets-9
test('reloads end no stream or connection of callers, gateways and relays that stay', async () => {
  const folder = temporaryFolder();
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const [authority, next] = [await anAuthority('The authority'), await anAuthority('The next authority')];
  const issue = async (name: string, use: 'server' | 'client') =>
    writeCertificate(folder, name, await authority.issue(name, use));
  const [admin, website, relay, leaving, shared] = times(5, newCoreToken) as [string, string, string, string, string];
  const [websiteLater, relayLater, sharedLater, entering] = times(4, newCoreToken) as [string, string, string, string];
  const of = (may: CallerEntries[string]['may'], ...tokens: string[]) => ({
    may,
    tokens: tokens.map((token) => ({ sha256: tokenHash(token) })),
  });
  const callers = writeCallersFile({
    admin: of(['crm', 'operator'], admin),
    leaving: of(['crm'], leaving),
    relay: { ...of(['feed'], relay), consumers: ['hooks', 'other'] },
    website: of(['gateway'], website),
  });
  const certificate = await issue('localhost', 'server');
  const core = await startTestCore({
    ...{ CORE_TOKEN: undefined, CORE_TOKEN_FILE: write('shared', shared), CORE_CALLERS_FILE: callers.path },
    ...{ CORE_TLS_CERT_FILE: certificate.cert, CORE_TLS_KEY_FILE: certificate.key },
    CORE_TLS_CLIENT_CA_FILE: write('clients.pem', authority.cert),
  });
  onTestFinished(() => core.stop());
  const proxy = await startProxy('127.0.0.1', core.port);
  onTestFinished(() => proxy.stop());
  const own = await authority.issue('test', 'client');
  const tls = { ca: authority.cert, ...own };
  const makeClients = (token: string) => {
    const clients = connectToCore(`https://localhost:${core.port}`, token, tls);
    onTestFinished(() => clients.close());
    return clients;
  };
  const crm = makeClients(admin);
  const { secret } = await arrangeStudio(crm);
  await crm.consumers.createConsumer({ consumer: { name: 'hooks', allStudios: true }, start: ConsumerStart.NOW });

  const receiver = await aWebhookReceiver(folder);
  const { url, secrets } = receiver;
  const endpoints = JSON.stringify({ endpoints: { hooks: { url, secrets, allowPrivate: true } } });
  const client = async (name: string) => {
    const { cert, key } = await issue(name, 'client');
    const CORE_CA_FILE = write(`trusted-by-${name}.pem`, authority.cert);
    return { CORE_CA_FILE, CORE_CLIENT_CERT_FILE: cert, CORE_CLIENT_KEY_FILE: key };
  };
  const coreUrl = `https://localhost:${proxy.port}`;
  const streams = openStreams('Exchange', 'WatchLeadChanges');
  const gateway = run('gateway/main.ts', {
    env: {
      ...(await client('gateway')),
      CORE_URL: coreUrl,
      CORE_TOKEN_FILE: write('website', website),
      GATEWAY_PORT: '0',
    },
  });
  const relaying = run('relay/main.ts', {
    env: {
      ...(await client('relay')),
      ...{ RELAY_CORE_ADDRESS: coreUrl, RELAY_TOKEN_FILE: write('relay', relay) },
      ...{ RELAY_ENDPOINTS_FILE: write('endpoints.json', endpoints), NODE_EXTRA_CA_CERTS: receiver.caFile },
    },
  });
  // Like a proxy: calls of several callers on one connection.
  const session = connect(coreUrl, tls);
  session.on('error', () => {});
  onTestFinished(() => session.destroy());
  const [ofLeaving, ofAdmin, ofShared] = [leaving, admin, shared].map((token) => {
    const path = '/leadintake.v1.LeadIntakeService/WatchLeadChanges';
    const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc' };
    const stream = session.request({ ...headers, authorization: `Bearer ${token}` });
    stream.on('error', () => {}).end(framed(requestBytes('LeadIntakeService/WatchLeadChanges', {})));
    return stream;
  }) as [ClientHttp2Stream, ClientHttp2Stream, ClientHttp2Stream];
  const [left, seenByAdmin, seenByShared] = [
    once(ofLeaving.resume(), 'close'),
    listTexts(ofAdmin),
    listTexts(ofShared),
  ];
  const gatewayUrl = await readAddress(gateway);
  const createLead = async () => {
    const { id } = await readLead(await createAt(gatewayUrl, secret), 201);
    await expect.poll(() => receiver.received.at(-1)?.leadId).toBe(id);
    for (const seen of [seenByAdmin, seenByShared]) await expect.poll(() => seen.join()).toContain(id);
  };
  await createLead();
  const before = { ...streams, connections: proxy.opened() };

  callers.put({
    website: of(['gateway'], website, websiteLater),
    relay: { ...of(['feed'], relay, relayLater), consumers: ['third', 'other', 'hooks'] },
    entering: of(['crm'], entering),
    admin: of(['read', 'operator', 'crm'], admin),
  });
  write('shared', sharedLater);
  const renewed = await issue('localhost', 'server');
  const authorities = [authority.cert, next.cert].join('\n');
  write('clients.pem', authorities);
  await left;
  const isKnown = (token: string) =>
    makeClients(token)
      .directory.listStudios({})
      .then(
        () => true,
        () => false,
      );
  for (const token of [entering, sharedLater]) await expect.poll(() => isKnown(token)).toBe(true);
  await expect
    .poll(() => presentedBy(core.port, tls))
    .toBe(new X509Certificate(readFileSync(renewed.cert)).serialNumber);

  for (const [name, token] of [
    ['gateway', websiteLater],
    ['relay', relayLater],
  ] as const) {
    write(name === 'gateway' ? 'website' : name, token);
    write(`trusted-by-${name}.pem`, authorities);
    await issue(name, 'client');
  }
  write('endpoints.json', `${endpoints} `);
  for (const each of [gateway, relaying])
    for (const what of [/certificates reloaded/, /tokens for the core reloaded/]) await each.printed(what);
  await relaying.printed(/endpoints reloaded/);

  await createLead();
  expect({ ...streams, connections: proxy.opened() }).toEqual({ ...before, ended: before.ended + 1 });
  expect(session.closed).toBe(false);
});

/** Returns the serial number of the certificate that a core presents to a new connection. */
async function presentedBy(port: number, tls: object): Promise<string | undefined> {
  const socket = connectTls({ host: 'localhost', port, ALPNProtocols: ['h2'], ...tls });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'secureConnect');
  return socket.getPeerX509Certificate()?.serialNumber;
}
