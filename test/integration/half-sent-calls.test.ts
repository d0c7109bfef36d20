import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { type ClientHttp2Stream, connect } from 'node:http2';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { newCoreToken } from '../../common/rules/key-secret.ts';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { type CallerEntries, tokenHash } from '../../src/callers-file.ts';
import { CALLER_ROLES, type CallerRole } from '../../src/domain/caller.ts';
import { ALL_SERVICES } from '../../src/rpc/routes.ts';
import { framed } from '../security/http2-wire.ts';
import { times } from '../support/builders.ts';
import { aCreateLeadRequest, grpcCaller, requestBytes, startTestCore } from '../support/grpc.ts';
import { temporaryFolder } from '../support/processes.ts';

const STUDIO = 'studio-1';
const ADMIN = newCoreToken();
const TOKEN = newCoreToken();

/** More than a client of Node buffers that reads nothing, and less than a page of the leads below; bytes. */
const MAX_HELD_BYTES = 150_000;

const entry = (token: string, may: readonly CallerRole[], studios?: readonly string[]) => ({
  may,
  tokens: [{ sha256: tokenHash(token) }],
  ...(studios && { studios }),
});
const admin = entry(ADMIN, CALLER_ROLES);
const it = entry(TOKEN, CALLER_ROLES);

/** Each way to lose access, by the callers of the file afterwards. */
const WAYS: Readonly<Record<string, CallerEntries>> = {
  'is removed': { admin },
  'loses roles': { admin, it: entry(TOKEN, ['gateway']) },
  'is limited to another studio': { admin, it: entry(TOKEN, CALLER_ROLES, ['studio-2']) },
};

const UNARY = ALL_SERVICES.filter((service) => service !== Health)
  .flatMap(({ methods }) => methods)
  .filter(({ methodKind }) => methodKind === 'unary');

/** Requests that would be executed; the others would at least be refused for what they lack. */
const VALID: Readonly<Record<string, object>> = {
  PutStudio: { studio: { id: 'studio-3', status: 'STUDIO_STATUS_ACTIVE' } },
  ListLeads: { studioId: STUDIO },
  CreateLead: aCreateLeadRequest(STUDIO),
};

async function startWith(callers: CallerEntries) {
  const path = join(temporaryFolder(), 'callers.json');
  const put = (next: CallerEntries) => {
    writeFileSync(`${path}.next`, JSON.stringify({ callers: next }));
    renameSync(`${path}.next`, path);
  };
  put(callers);
  const core = await startTestCore({ CORE_CALLERS_FILE: path });
  const caller = grpcCaller(`127.0.0.1:${core.port}`);
  const session = connect(core.url);
  session.on('error', () => {});
  onTestFinished(async () => {
    session.destroy();
    caller.close();
    await core.stop();
  });
  const asAdmin = (rpc: string, request: object) =>
    caller.call<{ studios: { id: string }[] }>(rpc, request, { authorization: `Bearer ${ADMIN}` });
  await asAdmin('DirectoryService/PutStudio', { studio: { id: STUDIO, status: 'STUDIO_STATUS_ACTIVE' } });
  const begin = (path: string, token = TOKEN) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      authorization: `Bearer ${token}`,
    });
    return stream.on('error', () => {});
  };
  /** Replaces the file, and waits until it counts. */
  const replace = async (next: CallerEntries) => {
    put(next);
    const isRefused = () =>
      caller.call('DirectoryService/ListStudios', {}, { authorization: `Bearer ${TOKEN}` }).then(
        () => false,
        () => true,
      );
    await expect.poll(isRefused).toBe(true);
  };
  return { asAdmin, begin, replace };
}

test.each(Object.keys(WAYS))('no call whose message arrives after its caller %s is executed', async (way) => {
  const { asAdmin, begin, replace } = await startWith({ admin, it });
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

  await replace(WAYS[way] as CallerEntries);
  for (const { stream, message } of calls) stream.end(message);
  await Promise.all(calls.map(({ stream }) => restOf(stream)));

  const { studios } = await asAdmin('DirectoryService/ListStudios', {});
  expect(studios.map(({ id }) => id)).toEqual([STUDIO]);
  expect(calls.map(({ seen }) => seen)).toEqual(UNARY.map(({ name }) => ({ name, status: 16 })));
});

test.each(Object.keys(WAYS))('what waits to be sent when its caller %s never arrives', async (way) => {
  const { asAdmin, begin, replace } = await startWith({ admin, it });
  const note = 'x'.repeat(2000);
  await Promise.all(times(100, () => asAdmin('LeadIntakeService/CreateLead', aCreateLeadRequest(STUDIO, { note }))));
  // Keeps the connection open: it is that of a caller with access, too.
  await restOf(begin('/leadintake.v1.DirectoryService/ListStudios', ADMIN).end(framed(Buffer.alloc(0))));
  const [list, exporting, watch] = ['ListLeads', 'ExportLeads', 'WatchLeadChanges'].map((name) => {
    const stream = begin(`/leadintake.v1.LeadIntakeService/${name}`);
    const request = name === 'WatchLeadChanges' ? {} : { studioId: STUDIO };
    return stream.end(framed(requestBytes(`LeadIntakeService/${name}`, request)));
  }) as [ClientHttp2Stream, ClientHttp2Stream, ClientHttp2Stream];
  // Until their windows are full; a paused stream opens no further one.
  await Promise.all([list, exporting, watch].map((stream) => once(stream, 'readable')));

  await replace(WAYS[way] as CallerEntries);
  // They end although their client reads nothing.
  await expect.poll(() => [list, exporting, watch].map(({ closed }) => closed)).toEqual([true, true, true]);

  for (const stream of [list, exporting, watch]) expect(stream.readableLength).toBeLessThan(MAX_HELD_BYTES);
});

async function restOf(stream: ClientHttp2Stream): Promise<void> {
  stream.resume();
  if (!stream.closed && !stream.destroyed) await once(stream, 'close');
}
