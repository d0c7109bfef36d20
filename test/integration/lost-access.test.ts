import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { type ClientHttp2Stream, connect } from 'node:http2';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { credentials } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import { newCoreToken } from '../../common/rules/key-secret.ts';
import { ServerReflectionRequestSchema } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import { type CallerEntries, tokenHash } from '../../src/callers-file.ts';
import { CALLER_ROLES, type CallerRole } from '../../src/domain/caller.ts';
import { ALL_SERVICES } from '../../src/rpc/routes.ts';
import { framed } from '../security/http2-wire.ts';
import { times } from '../support/builders.ts';
import { anAuthority, writeCertificate } from '../support/certificates.ts';
import { aCreateLeadRequest, CORE_TOKEN, grpcCaller, refusalOf, requestBytes, startTestCore } from '../support/grpc.ts';
import { temporaryFolder } from '../support/processes.ts';

const STUDIO = 'studio-1';
const EXPORT = 'LeadIntakeService/ExportLeads';
const ADMIN = newCoreToken();
const TOKEN = newCoreToken();

/** Of the certificate of a caller that presents no token. */
const SUBJECT = { CN: 'website-7' };

const entry = (token: string, may: readonly CallerRole[], studios?: readonly string[]) => ({
  may,
  tokens: [{ sha256: tokenHash(token) }],
  ...(studios && { studios }),
});
const admin = entry(ADMIN, ['crm', 'operator']);
const it = entry(TOKEN, CALLER_ROLES);
const certified = { may: CALLER_ROLES, certificateSubject: SUBJECT };

type Way = readonly [token: string | undefined, before: CallerEntries, ...after: CallerEntries[]];

/** Every way to lose access: the token, if not the certificate, and the callers of the file at first and then. */
const WAYS: Readonly<Record<string, Way>> = {
  'is removed': [TOKEN, { admin, it }, { admin }],
  'loses its token, and has another': [TOKEN, { admin, it }, { admin, it: entry(newCoreToken(), CALLER_ROLES) }],
  'has other roles': [TOKEN, { admin, it }, { admin, it: entry(TOKEN, ['gateway']) }],
  'has other studios': [TOKEN, { admin, it }, { admin, it: entry(TOKEN, CALLER_ROLES, ['studio-2']) }],
  'presents CORE_TOKEN, which the file lists with other roles': [
    CORE_TOKEN,
    { admin },
    { admin, it: entry(CORE_TOKEN, ['gateway']) },
  ],
  'presents CORE_TOKEN, which the file lists and lists no more': [
    CORE_TOKEN,
    { admin },
    { admin, it: entry(CORE_TOKEN, ['gateway']) },
    { admin },
  ],
  'with a certificate is removed': [undefined, { admin, it: certified }, { admin }],
  'with a certificate has another, and keeps its token': [
    undefined,
    { admin, it: { ...certified, ...it } },
    { admin, it: { ...certified, ...it, certificateSubject: { CN: 'website-8' } } },
  ],
  'with a certificate has a token instead': [undefined, { admin, it: certified }, { admin, it }],
  'with a certificate has other roles': [
    undefined,
    { admin, it: certified },
    { admin, it: { ...certified, may: ['gateway'] } },
  ],
  'with a certificate has other studios': [
    undefined,
    { admin, it: certified },
    { admin, it: { ...certified, studios: ['studio-2'] } },
  ],
};

/** What opens each streaming method so that it stays open; an item of a key that does not exist gets an answer. */
const secretSha256 = Buffer.alloc(32);
const OPENING: Readonly<Record<string, () => Buffer>> = {
  'LeadIntakeService/WatchLeadChanges': () => requestOf('LeadIntakeService/WatchLeadChanges', {}),
  [EXPORT]: () => requestOf(EXPORT, { studioId: STUDIO }),
  'ExchangeService/Exchange': () =>
    requestOf('ExchangeService/Exchange', { items: [{ secretSha256, authenticate: {} }] }),
  'Health/Watch': () => framed(Buffer.alloc(0)),
  'ServerReflection/ServerReflectionInfo': () =>
    framed(
      toBinary(
        ServerReflectionRequestSchema,
        create(ServerReflectionRequestSchema, { messageRequest: { case: 'listServices', value: '' } }),
      ),
    ),
};

const requestOf = (rpc: string, request: object) => framed(requestBytes(rpc, request));

const STREAMS = ALL_SERVICES.flatMap(({ methods }) => methods).filter(({ methodKind }) => methodKind !== 'unary');
const nameOf = ({ parent, name }: (typeof STREAMS)[number]) => `${parent.name}/${name}`;

test('every streaming method is tried', () =>
  expect(Object.keys(OPENING).toSorted()).toEqual(STREAMS.map(nameOf).toSorted()));

// @proves bounds-49
test.each(Object.keys(WAYS))(
  'nothing arrives by any stream after its caller %s, and its connection ends',
  async (way) => {
    const [token, before, ...after] = WAYS[way] as Way;
    const folder = temporaryFolder();
    const path = join(folder, 'callers.json');
    const put = (callers: CallerEntries) => {
      writeFileSync(`${path}.next`, JSON.stringify({ callers }));
      renameSync(`${path}.next`, path);
    };
    put(before);
    const tls = token === undefined ? await mutualTls(folder) : undefined;
    const core = await startTestCore({ CORE_CALLERS_FILE: path, CORE_REFLECTION: 'yes', ...tls?.settings });
    const caller = grpcCaller(`localhost:${core.port}`, tls?.channel);
    const session = connect(`http${tls ? 's' : ''}://localhost:${core.port}`, {
      settings: { initialWindowSize: 16_384 },
      ...tls?.client,
    });
    session.on('error', () => {});
    const closed = once(session, 'close');
    onTestFinished(async () => {
      session.destroy();
      caller.close();
      await core.stop();
    });
    const asAdmin = (rpc: string, request: object) => caller.call(rpc, request, { authorization: `Bearer ${ADMIN}` });
    await asAdmin('DirectoryService/PutStudio', { studio: { id: STUDIO, status: 'STUDIO_STATUS_ACTIVE' } });
    const create = (note: string) => asAdmin('LeadIntakeService/CreateLead', aCreateLeadRequest(STUDIO, { note }));
    await Promise.all(times(300, () => create('x'.repeat(2000))));

    const authorization = token && `Bearer ${token}`;
    const streams = STREAMS.map((method) => {
      const name = nameOf(method);
      const stream = session.request({
        ':method': 'POST',
        ':path': `/${method.parent.typeName}/${method.name}`,
        'content-type': 'application/grpc',
        ...(authorization && { authorization }),
      });
      const seen = { name, status: undefined as number | undefined };
      stream
        .on('error', () => {})
        .on('trailers', (trailers) => {
          seen.status = Number(trailers['grpc-status']);
        });
      const message = (OPENING[name] as () => Buffer)();
      if (method.methodKind === 'server_streaming') stream.end(message);
      else stream.write(message);
      return { seen, stream, method, message };
    });
    await Promise.all(streams.map(({ stream }) => once(stream, 'readable')));

    // The export is not read, so that it cannot be complete.
    const rests = streams.map(({ seen, stream }) => (seen.name === EXPORT ? undefined : restOf(stream)));

    for (const callers of after) {
      put(callers);
      const isKnown = JSON.stringify(callers).includes(token ? tokenHash(token) : SUBJECT.CN);
      const expected = isKnown ? 'CALLER_FORBIDDEN' : 'CALLER_UNAUTHENTICATED';
      const list = () => refusalOf(caller.call('DirectoryService/ListStudios', {}, { authorization }));
      await expect
        .poll(() =>
          list().then(
            ({ reason }) => reason,
            () => undefined,
          ),
        )
        .toBe(expected);
    }
    await create('later-lead');
    for (const { stream, method, message } of streams) {
      if (method.methodKind !== 'server_streaming' && stream.writable) stream.write(message);
    }
    for (const [index, { seen, stream }] of streams.entries()) {
      const bytes = await (rests[index] ?? restOf(stream));
      expect(bytes.includes('later-lead'), seen.name).toBe(false);
      if (seen.name === EXPORT) expect(seen.status).not.toBe(0);
    }
    await closed;
  },
);

/** A core with mutual TLS, and clients with a certificate of the subject. */
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

async function restOf(stream: ClientHttp2Stream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  if (!stream.closed && !stream.destroyed) await once(stream, 'close');
  return Buffer.concat(chunks);
}
