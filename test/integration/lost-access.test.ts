import { once } from 'node:events';
import { type ClientHttp2Stream, connect } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { credentials } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import { newCoreToken } from '../../common/rules/key-secret.ts';
import { ServerReflectionRequestSchema } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { type CallerEntries, tokenHash } from '../../src/callers-file.ts';
import { CALLER_ROLES } from '../../src/domain/caller.ts';
import { ALL_SERVICES } from '../../src/rpc/routes.ts';
import { framed } from '../security/http2-wire.ts';
import { times } from '../support/builders.ts';
import {
  aCreateLeadRequest,
  CORE_TOKEN,
  findRefusal,
  grpcCaller,
  requestBytes,
  startTestCore,
} from '../support/grpc.ts';
import { anAuthority, writeCertificate } from '../tools/certificates.ts';
import { temporaryFolder } from '../tools/processes.ts';
import { entry, writeCallersFile } from './a-callers-file.ts';

const STUDIO = 'studio-1';
const EXPORT = 'LeadIntakeService/ExportLeads';
const ADMIN = newCoreToken();
const TOKEN = newCoreToken();

/** The certificate subject of a caller without a token. */
const SUBJECT = { CN: 'website-7' };

const admin = entry(ADMIN, ['crm', 'operator']);
const it = entry(TOKEN, CALLER_ROLES);
const certified = { may: CALLER_ROLES, certificateSubject: SUBJECT };

type Way = readonly [token: string | undefined, before: CallerEntries, after: CallerEntries];

/** Ways to lose access: the token unless a certificate is used, and the callers before and after. */
const WAYS: Readonly<Record<string, Way>> = {
  'is removed': [TOKEN, { admin, it }, { admin }],
  'has other studios': [TOKEN, { admin, it }, { admin, it: entry(TOKEN, CALLER_ROLES, ['studio-2']) }],
  'presents CORE_TOKEN, which the file lists with other roles': [
    CORE_TOKEN,
    { admin },
    { admin, it: entry(CORE_TOKEN, ['gateway']) },
  ],
  'with a certificate has another, and keeps its token': [
    undefined,
    { admin, it: { ...certified, ...it } },
    { admin, it: { ...certified, ...it, certificateSubject: { CN: 'website-8' } } },
  ],
};

/** The message that opens each streaming method and keeps it open; an item of an unknown key gets an answer. */
const secretSha256 = Buffer.alloc(32);
const OPENING: Readonly<Record<string, () => Buffer>> = {
  'LeadIntakeService/WatchLeadChanges': () => makeRequest('LeadIntakeService/WatchLeadChanges', {}),
  [EXPORT]: () => makeRequest(EXPORT, { studioId: STUDIO }),
  'LeadIntakeService/ExportContact': () =>
    makeRequest('LeadIntakeService/ExportContact', { studioId: STUDIO, contact: { email: 'ada@example.org' } }),
  'AuditService/ExportAuditEvents': () => makeRequest('AuditService/ExportAuditEvents', {}),
  'ExchangeService/Exchange': () =>
    makeRequest('ExchangeService/Exchange', { items: [{ secretSha256, authenticate: {} }] }),
  'Health/Watch': () => framed(Buffer.alloc(0)),
  'ServerReflection/ServerReflectionInfo': () =>
    framed(
      toBinary(
        ServerReflectionRequestSchema,
        create(ServerReflectionRequestSchema, { messageRequest: { case: 'listServices', value: '' } }),
      ),
    ),
};

const makeRequest = (rpc: string, request: object) => framed(requestBytes(rpc, request));

const STREAMS = ALL_SERVICES.flatMap(({ methods }) => methods).filter(({ methodKind }) => methodKind !== 'unary');
const findName = ({ parent, name }: (typeof STREAMS)[number]) => `${parent.name}/${name}`;

/** Each method over gRPC, and the exchange also as gateways call it. */
const CALLS = STREAMS.flatMap((method) =>
  (method.name === 'Exchange' ? ['application/grpc', 'application/connect+proto'] : ['application/grpc']).map(
    (type) => ({
      method,
      type,
    }),
  ),
);

test('every streaming method is tested', () =>
  expect(Object.keys(OPENING).toSorted()).toEqual(STREAMS.map(findName).toSorted()));

// @proves bounds-49
test.each(Object.keys(WAYS))('after a caller %s, no stream sends it anything, and its connection ends', async (way) => {
  const [token, before, after] = WAYS[way] as Way;
  const { asAdmin, begin, session, caller, put } = await startWith(before, token);
  const closed = once(session, 'close');
  const create = (note: string) => asAdmin('LeadIntakeService/CreateLead', aCreateLeadRequest(STUDIO, { note }));
  await Promise.all(times(300, () => create('x'.repeat(2000))));

  const streams = CALLS.map(({ method, type }) => {
    const name = findName(method);
    const stream = begin(`/${method.parent.typeName}/${method.name}`, token, type);
    const seen = { name, status: undefined as number | undefined };
    stream.on('trailers', (trailers) => {
      seen.status = Number(trailers['grpc-status']);
    });
    const message = (OPENING[name] as () => Buffer)();
    if (method.methodKind === 'server_streaming') stream.end(message);
    else stream.write(message);
    return { seen, stream, method, message };
  });
  await Promise.all(streams.map(({ stream }) => once(stream, 'readable')));

  // The export is not read, so it cannot complete.
  const rests = streams.map(({ seen, stream }) => (seen.name === EXPORT ? undefined : readRest(stream)));

  put(after);
  const isKnown = JSON.stringify(after).includes(token ? tokenHash(token) : SUBJECT.CN);
  const expected = isKnown ? 'CALLER_FORBIDDEN' : 'CALLER_UNAUTHENTICATED';
  const reason = () =>
    findRefusal(caller.call('DirectoryService/ListStudios', {}, { authorization: token && `Bearer ${token}` })).then(
      (refusal) => refusal.reason,
      () => undefined,
    );
  await expect.poll(reason).toBe(expected);
  await create('later-lead');
  for (const { stream, method, message } of streams) {
    if (method.methodKind !== 'server_streaming' && stream.writable) stream.write(message);
  }
  for (const [index, { seen, stream }] of streams.entries()) {
    const bytes = await (rests[index] ?? readRest(stream));
    expect(bytes.includes('later-lead'), seen.name).toBe(false);
    if (seen.name === EXPORT) expect(seen.status).not.toBe(0);
  }
  await closed;
});

/** More than a Node client buffers without reading, and less than a page of the leads below; bytes. */
const MAX_HELD_BYTES = 150_000;

/** The callers of the file after one is limited to another studio. */
const AFTERWARDS: CallerEntries = { admin, it: entry(TOKEN, CALLER_ROLES, ['studio-2']) };

const UNARY = ALL_SERVICES.filter((service) => service !== Health)
  .flatMap(({ methods }) => methods)
  .filter(({ methodKind }) => methodKind === 'unary');

/** Requests that would be executed; the others would be refused for missing fields. */
const VALID: Readonly<Record<string, object>> = {
  PutStudio: { studio: { id: 'studio-3', status: 'STUDIO_STATUS_ACTIVE' } },
  ListLeads: { studioId: STUDIO },
  CreateLead: aCreateLeadRequest(STUDIO),
};

/** Starts a core with some callers; those without a token use a certificate. */
async function startWith(callers: CallerEntries, token: string | undefined) {
  const { path, put } = writeCallersFile(callers);
  const tls = JSON.stringify(callers).includes(SUBJECT.CN) ? await mutualTls(temporaryFolder()) : undefined;
  const core = await startTestCore({ CORE_CALLERS_FILE: path, CORE_REFLECTION: 'yes', ...tls?.settings });
  const caller = grpcCaller(`localhost:${core.port}`, tls?.channel);
  const session = connect(`http${tls ? 's' : ''}://localhost:${core.port}`, {
    settings: { initialWindowSize: 16_384 },
    ...tls?.client,
  });
  session.on('error', () => {});
  onTestFinished(async () => {
    session.destroy();
    caller.close();
    await core.stop();
  });
  const asAdmin = (rpc: string, request: object) =>
    caller.call<{ studios: { id: string }[] }>(rpc, request, { authorization: `Bearer ${ADMIN}` });
  await asAdmin('DirectoryService/PutStudio', { studio: { id: STUDIO, status: 'STUDIO_STATUS_ACTIVE' } });
  const begin = (path: string, by = token, type = 'application/grpc') => {
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': type,
      ...(by && { authorization: `Bearer ${by}` }),
    });
    return stream.on('error', () => {});
  };
  /** Replaces the file, and waits until it applies. */
  const replace = async (next: CallerEntries) => {
    put(next);
    const isRefused = () =>
      caller.call('DirectoryService/ListStudios', {}, { authorization: `Bearer ${TOKEN}` }).then(
        () => false,
        () => true,
      );
    await expect.poll(isRefused).toBe(true);
  };
  return { asAdmin, begin, session, caller, put, replace };
}

test('no call is executed whose message arrives after its caller lost access', async () => {
  const { asAdmin, begin, replace } = await startWith({ admin, it }, TOKEN);
  const calls = UNARY.map(({ parent, name }) => {
    const stream = begin(`/${parent.typeName}/${name}`);
    const seen = { name, status: undefined as number | undefined };
    stream
      .on('headers', (headers) => {
        seen.status ??= Number(headers['grpc-status']);
      })
      .on('response', (headers) => {
        if (headers['grpc-status'] !== undefined) seen.status = Number(headers['grpc-status']);
      })
      .on('trailers', (trailers) => {
        seen.status = Number(trailers['grpc-status']);
      });
    return { stream, seen, message: framed(requestBytes(`${parent.name}/${name}`, VALID[name] ?? {})) };
  });

  await replace(AFTERWARDS);
  for (const { stream, message } of calls) stream.end(message);
  await Promise.all(calls.map(({ stream }) => readRest(stream)));

  const { studios } = await asAdmin('DirectoryService/ListStudios', {});
  expect(studios.map(({ id }) => id)).toEqual([STUDIO]);
  expect(calls.map(({ seen }) => seen)).toEqual(UNARY.map(({ name }) => ({ name, status: 16 })));
});

// @proves bounds-65
test('buffered responses never arrive after their caller lost access', async () => {
  const { asAdmin, begin, replace } = await startWith({ admin, it }, TOKEN);
  const note = 'x'.repeat(2000);
  await Promise.all(times(100, () => asAdmin('LeadIntakeService/CreateLead', aCreateLeadRequest(STUDIO, { note }))));
  // This connection stays open, because a caller with access uses it, too.
  await readRest(begin('/leadintake.v1.DirectoryService/ListStudios', ADMIN).end(framed(Buffer.alloc(0))));
  const [list, exporting, watch] = ['ListLeads', 'ExportLeads', 'WatchLeadChanges'].map((name) => {
    const stream = begin(`/leadintake.v1.LeadIntakeService/${name}`);
    const request = name === 'WatchLeadChanges' ? {} : { studioId: STUDIO };
    return stream.end(framed(requestBytes(`LeadIntakeService/${name}`, request)));
  }) as [ClientHttp2Stream, ClientHttp2Stream, ClientHttp2Stream];
  // Waits until their windows are full; a paused stream opens no further one.
  await Promise.all([list, exporting, watch].map((stream) => once(stream, 'readable')));

  await replace(AFTERWARDS);
  // The streams end although their client reads nothing.
  await expect.poll(() => [list, exporting, watch].map(({ closed }) => closed)).toEqual([true, true, true]);

  for (const stream of [list, exporting, watch]) expect(stream.readableLength).toBeLessThan(MAX_HELD_BYTES);
});

/** Returns settings of a core with mutual TLS, and clients with a certificate of the subject. */
async function mutualTls(folder: string) {
  const authority = await anAuthority('The authority of the tests');
  const own = writeCertificate(folder, 'core', await authority.issue('localhost', 'server'));
  const { cert, key } = await authority.issue(SUBJECT.CN, 'client');
  const ca = writeCertificate(folder, 'authority', authority).cert;
  return {
    settings: { CORE_TLS_CERT_FILE: own.cert, CORE_TLS_KEY_FILE: own.key, CORE_TLS_CLIENT_CA_FILE: ca },
    client: { ca: authority.cert, cert, key },
    channel: credentials.createSsl(Buffer.from(authority.cert), Buffer.from(key), Buffer.from(cert)),
  };
}

async function readRest(stream: ClientHttp2Stream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  if (!stream.closed && !stream.destroyed) await once(stream, 'close');
  return Buffer.concat(chunks);
}
