import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { connect } from 'node:http2';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { newCoreToken } from '../../common/rules/key-secret.ts';
import { type CallerEntries, tokenHash } from '../../src/callers-file.ts';
import { MAX_AUTHENTICATED_CONNECTIONS } from '../../src/port/connections.ts';
import { times } from '../support/builders.ts';
import { CORE_TOKEN, grpcCaller, requestBytes } from '../support/grpc.ts';
import { readAddress, run, temporaryFolder } from '../tools/processes.ts';
import {
  callBlock,
  FLAG,
  FRAME,
  frame,
  framed,
  grpcCall,
  NO_WINDOW,
  onStream,
  opening,
  talk,
  wholeCall,
} from './http2-wire.ts';

const READER = newCoreToken();
const GATEWAY = newCoreToken();
const reader = { may: ['read'], studios: ['studio-1'], tokens: [{ sha256: tokenHash(READER) }] } as const;
const website = { may: ['gateway'], tokens: [{ sha256: tokenHash(GATEWAY) }] } as const;

const EXPORT = '/leadintake.v1.LeadIntakeService/ExportLeads';
const EXCHANGE = '/leadintake.v1.ExchangeService/Exchange';

const as = (token: string) => ({ authorization: `Bearer ${token}` });

/** Opens a connection with one call in flight, and waits until it has begun. */
async function anExport(port: number): Promise<Socket> {
  const message = requestBytes('LeadIntakeService/ExportLeads', { studioId: 'studio-1' });
  const { socket, frames } = await talk(
    port,
    opening(NO_WINDOW),
    wholeCall(1, callBlock(EXPORT, as(READER)), framed(message)),
    frame(FRAME.ping, FLAG.none, 0, Buffer.alloc(8)),
  );
  const hasBegun = () => frames().some(({ type, flags }) => type === FRAME.ping && flags & FLAG.ack);
  await expect.poll(() => hasBegun() || socket.destroyed).toBe(true);
  return socket;
}

// @proves bounds-48 bounds-49
test('a caller with all connections does not lock out others and is disconnected when removed', async () => {
  const file = join(temporaryFolder(), 'callers.json');
  const put = (callers: CallerEntries) => {
    writeFileSync(`${file}.next`, JSON.stringify({ callers }));
    renameSync(`${file}.next`, file);
  };
  put({ reader, website });
  const env = { CORE_TOKEN, CORE_CALLERS_FILE: file, DATABASE_URL: `sqlite:${join(temporaryFolder(), 'l.db')}` };
  const core = run('src/main.ts', { env });
  const url = await readAddress(core);
  const port = Number(new URL(url).port);
  const admin = grpcCaller(`127.0.0.1:${port}`);
  onTestFinished(() => admin.close());
  await admin.call('DirectoryService/PutStudio', { studio: { id: 'studio-1', status: 'STUDIO_STATUS_ACTIVE' } });
  const openSession = () => {
    const session = connect(url).on('error', () => {});
    onTestFinished(() => session.destroy());
    return session;
  };
  const established = openSession();
  const exchange = established.request(grpcCall(EXCHANGE, as(GATEWAY))).on('error', () => {});
  const anItem = requestBytes('ExchangeService/Exchange', {
    items: [{ secretSha256: Buffer.alloc(32), authenticate: {} }],
  });
  exchange.write(framed(anItem));
  await once(exchange, 'data');
  const ended = vi.fn();
  established.on('close', ended);

  const all: Socket[] = [];
  while (all.length < MAX_AUTHENTICATED_CONNECTIONS + 64) {
    all.push(...(await Promise.all(times(64, () => anExport(port)))));
  }
  const others = await Promise.all(
    times(32, () => onStream(openSession(), grpcCall(EXCHANGE, as(GATEWAY)), framed(anItem))),
  );
  expect(others.map(({ grpcStatus }) => grpcStatus)).toEqual(times(32, () => 0));
  expect(ended).not.toHaveBeenCalled();

  const open = () => all.filter(({ destroyed, readyState }) => !destroyed && readyState === 'open').length;
  expect(open()).toBeGreaterThan(MAX_AUTHENTICATED_CONNECTIONS / 2);
  put({ website });
  await expect.poll(open).toBe(0);
  expect(ended).not.toHaveBeenCalled();
  exchange.end();
  await once(exchange.resume(), 'close');
});
