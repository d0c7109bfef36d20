import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { type ClientHttp2Stream, connect } from 'node:http2';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { expect, onTestFinished, test } from 'vitest';
import { newCoreToken } from '../../common/rules/key-secret.ts';
import { ServerReflectionRequestSchema } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import { type CallerEntries, tokenHash } from '../../src/callers-file.ts';
import { CALLER_ROLES, type CallerRole } from '../../src/domain/caller.ts';
import { ALL_SERVICES } from '../../src/rpc/routes.ts';
import { framed } from '../security/http2-wire.ts';
import { times } from '../support/builders.ts';
import { aCreateLeadRequest, CORE_TOKEN, grpcCaller, refusalOf, requestBytes, startTestCore } from '../support/grpc.ts';
import { temporaryFolder } from '../support/processes.ts';

const STUDIO = 'studio-1';
const EXPORT = 'LeadIntakeService/ExportLeads';
const ADMIN = newCoreToken();
const TOKEN = newCoreToken();

const entry = (token: string, may: readonly CallerRole[], studios?: readonly string[]) => ({
  may,
  tokens: [{ sha256: tokenHash(token) }],
  ...(studios && { studios }),
});
const admin = entry(ADMIN, ['crm', 'operator']);
const it = entry(TOKEN, CALLER_ROLES);

/** Every way to lose access: the token, and the callers of the file at first and then. */
const WAYS: Readonly<Record<string, readonly [token: string, before: CallerEntries, ...after: CallerEntries[]]>> = {
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
};

/** What opens each streaming method so that it stays open; an item of a key that does not exist gets an answer. */
const secretSha256 = Buffer.alloc(32);
const AN_ITEM = { secretSha256s: [secretSha256], requests: [{}] };
const OPENING: Readonly<Record<string, () => Buffer>> = {
  'LeadIntakeService/WatchLeadChanges': () => requestOf('LeadIntakeService/WatchLeadChanges', {}),
  [EXPORT]: () => requestOf(EXPORT, { studioId: STUDIO }),
  'LeadIntakeService/BatchCreateLeads': () => requestOf('LeadIntakeService/BatchCreateLeads', AN_ITEM),
  'LeadIntakeService/BatchGetLeads': () => requestOf('LeadIntakeService/BatchGetLeads', AN_ITEM),
  'LeadIntakeService/BatchListLeads': () => requestOf('LeadIntakeService/BatchListLeads', AN_ITEM),
  'ExchangeService/Exchange': () =>
    requestOf('ExchangeService/Exchange', { items: [{ secretSha256, authenticate: {} }] }),
  'ApiKeyService/BatchAuthenticateApiKeys': () =>
    requestOf('ApiKeyService/BatchAuthenticateApiKeys', { requests: [{ secretSha256 }] }),
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

test.each(Object.keys(WAYS))(
  'nothing arrives by any stream after its caller %s, and its connection ends',
  async (way) => {
    const [token, before, ...after] = WAYS[way] as (typeof WAYS)[string];
    const path = join(temporaryFolder(), 'callers.json');
    const put = (callers: CallerEntries) => {
      writeFileSync(`${path}.next`, JSON.stringify({ callers }));
      renameSync(`${path}.next`, path);
    };
    put(before);
    const core = await startTestCore({ CORE_CALLERS_FILE: path, CORE_REFLECTION: 'yes' });
    const caller = grpcCaller(`127.0.0.1:${core.port}`);
    const session = connect(core.url, { settings: { initialWindowSize: 16_384 } });
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

    const streams = STREAMS.map((method) => {
      const name = nameOf(method);
      const stream = session.request({
        ':method': 'POST',
        ':path': `/${method.parent.typeName}/${method.name}`,
        'content-type': 'application/grpc',
        authorization: `Bearer ${token}`,
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
      const expected =
        callers.it && callers.it.tokens?.[0]?.sha256 === tokenHash(token)
          ? 'CALLER_FORBIDDEN'
          : 'CALLER_UNAUTHENTICATED';
      const list = () =>
        refusalOf(caller.call('DirectoryService/ListStudios', {}, { authorization: `Bearer ${token}` }));
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

async function restOf(stream: ClientHttp2Stream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  if (!stream.closed && !stream.destroyed) await once(stream, 'close');
  return Buffer.concat(chunks);
}
