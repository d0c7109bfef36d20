import { once } from 'node:events';
import { createServer, type Http2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { CoreToken } from '../../common/core-connection.ts';
import { TlsCredentials } from '../../common/tls-credentials.ts';
import { BUSY_THRESHOLD } from '../../gateway/admission/load-shedding.ts';
import { readGatewayConfig } from '../../gateway/config.ts';
import { createCoreClient } from '../../gateway/core/core-client.ts';
import { isRefusedByCore } from '../../gateway/core/core-problems.ts';
import { OVERLOADED } from '../../gateway/problems.ts';
import { times } from '../support/builders.ts';
import { CORE_TOKEN } from '../support/grpc.ts';

/** Returns a client of a core that answers no call. @param onCall gets each call */
async function aSilentCore(onCall: (stream: ServerHttp2Stream, session: Http2Session | undefined) => void = () => {}) {
  const server = createServer().on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => {});
    stream.resume();
    onCall(stream, stream.session);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const config = readGatewayConfig({ CORE_URL: `http://127.0.0.1:${port}`, CORE_TOKEN });
  const client = createCoreClient(config, new TlsCredentials({}), new CoreToken(config), undefined);
  onTestFinished(() => {
    client.close();
    server.close();
  });
  return client;
}

// @proves bounds-18
test.each([1, 25, 100])('one studio has at most a quarter of the pending lists: lists of %s leads', async (limit) => {
  const core = await aSilentCore();
  const list = (studioId: string) => {
    const sender = { secretSha256: new Uint8Array(32), requestId: 'any', studioId };
    return core.listLeads(sender, { limit, cursor: undefined });
  };
  for (const listing of times(BUSY_THRESHOLD / 4, () => list('one'))) listing.catch(() => {});
  for (const _ of times(1000, () => 0)) await expect(list('one')).rejects.toBe(OVERLOADED);
  expect(core.pending('listLeads')).toBeLessThan(BUSY_THRESHOLD);
  for (const listing of times(BUSY_THRESHOLD / 4, () => list('other'))) listing.catch(() => {});
  await expect(list('other')).rejects.toBe(OVERLOADED);
  expect(core.pending('listLeads')).toBeLessThan(BUSY_THRESHOLD);
});

describe('a call whose connection ends', () => {
  // @proves requests-7
  test.each([
    ['is closed', (_, session) => session?.close()],
    ['is destroyed', (_, session) => session?.destroy()],
    ['is cut off', (_, session) => session?.socket.destroy()],
    [
      'ends with a GOAWAY',
      (_, session) => {
        session?.goaway(2);
        session?.destroy();
      },
    ],
    ['cancels the call', (stream) => stream.close(8)],
    ['refuses the call unprocessed', (stream) => stream.close(7)],
    ['fails', (stream) => stream.close(2)],
  ] as [string, (stream: ServerHttp2Stream, session: Http2Session | undefined) => void][])(
    'a call whose connection %s does not count as refused by the core',
    async (_, end) => {
      const core = await aSilentCore((stream, session) => {
        end(stream, session);
        // A closed session would otherwise wait for its open stream.
        setTimeout(() => session?.destroy(), 200).unref();
      });
      const error = await core.recordRequests({ batchId: 'any', requests: [] }).catch((thrown: unknown) => thrown);
      expect([error instanceof Error, isRefusedByCore(error)]).toEqual([true, false]);
    },
  );
});
