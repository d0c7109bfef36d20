/** Tests of an endpoint of the relay when its feed ends, with scripted cores. */

import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import pino from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { CoreToken, tlsToCore } from '../../common/core-connection.ts';
import { Secret } from '../../common/secret.ts';
import { TlsCredentials } from '../../common/tls-credentials.ts';
import { ConsumerService } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import {
  LeadChangeKind as Kind,
  LeadChangeSchema,
  LeadIntakeService,
} from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { readRelayConfig } from '../../relay/config.ts';
import { type Core, connectCore, type FeedChange } from '../../relay/core.ts';
import { Endpoint } from '../../relay/endpoint.ts';
import { aWebhookReceiver } from '../support/webhooks.ts';
import { temporaryFolder } from '../tools/processes.ts';

const aChange = (id: string, kind: Kind = Kind.CREATED): FeedChange => ({
  ...create(LeadChangeSchema, {
    lead: { id, studioId: 'demo', displayName: 'Ada' } as object,
    revision: 1n,
    kinds: [{ kind, time: { seconds: 1n } }],
  }),
  databaseEpoch: 0n,
  restoredToTime: undefined,
});

/** Returns a core whose watches send the given changes one after the other, each until it is ended. */
function aCore(...feeds: readonly (readonly FeedChange[])[]) {
  let watches = 0;
  let end = () => {};
  const core: Core = {
    async *watch(_, signal) {
      const changes = feeds[watches];
      watches += 1;
      if (!changes) throw new ConnectError('unknown token', Code.Unauthenticated);
      const ended = Promise.withResolvers<void>();
      end = ended.resolve;
      signal.addEventListener('abort', end);
      yield changes;
      await ended.promise;
    },
    acknowledge: async () => {},
    setAside: async () => {},
    close: () => {},
  };
  return { core, endWatch: () => end(), watches: () => watches };
}

/** Returns an endpoint with one request at a time, and its receiver. */
async function anEndpoint(core: Core, kinds?: readonly ['created']) {
  const receiver = await aWebhookReceiver(temporaryFolder());
  const [secret = ''] = receiver.secrets;
  const settings = {
    url: new Secret(receiver.url),
    secrets: [new Secret(secret)],
    payload: 'thin',
    allowPrivate: true,
  };
  const network = {
    ca: readFileSync(receiver.caFile, 'utf8'),
    resolve: async () => [{ address: '127.0.0.1', family: 4 }],
  };
  const parts = { core, log: pino({ level: 'silent' }), metrics: undefined, concurrency: 1, network };
  const endpoint = new Endpoint('hooks', { ...settings, kinds } as ConstructorParameters<typeof Endpoint>[1], parts);
  onTestFinished(() => endpoint.stop());
  return { endpoint, receiver, settings: { ...settings, kinds } as Parameters<Endpoint['change']>[0] };
}

// @proves relay-11
describe('an endpoint whose feed ends', () => {
  test.each<[string, readonly (readonly FeedChange[])[]]>([
    ['a revoked token, even while the core refuses acknowledgements of unwanted kinds', []],
    ['a restored database, which has other leads', [[aChange('other')]]],
  ])('an endpoint whose feed ends gets nothing more that waited: %s', async (_, later) => {
    const others = [aChange('unwanted', Kind.UPDATED)];
    const { core, endWatch, watches } = aCore([aChange('first'), aChange('second'), ...others], ...later);
    core.acknowledge = async () => Promise.reject(new ConnectError('unknown token', Code.Unauthenticated));
    const { endpoint, receiver, settings } = await anEndpoint(core, ['created']);
    const held = Promise.withResolvers<number>();
    receiver.answer = () => held.promise;
    await expect.poll(() => receiver.received.length).toBe(1);
    endWatch();
    await expect.poll(watches).toBe(2);
    receiver.answer = () => 204;
    held.resolve(502);
    await expect.poll(() => endpoint.state).toBe('slow');
    endpoint.change({ ...settings, payload: 'full' });
    const expected = ['first', ...later.flat().map(({ lead }) => lead?.id)];
    await expect.poll(() => receiver.received.map(({ leadId }) => leadId)).toEqual(expected);
    await sleep(200);
    expect(receiver.received).toHaveLength(expected.length);
  });
});

/** Returns a client of a core with the given services. */
async function clientOfCore(routes: (router: ConnectRouter) => void) {
  const server = createServer(connectNodeAdapter({ routes }));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void server.close());
  const endpointsFile = join(temporaryFolder(), 'endpoints.json');
  writeFileSync(endpointsFile, JSON.stringify({ endpoints: {} }));
  const config = readRelayConfig({
    RELAY_CORE_ADDRESS: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    RELAY_ENDPOINTS_FILE: endpointsFile,
  });
  const core = connectCore(config, new TlsCredentials(tlsToCore(config)), new CoreToken(config));
  onTestFinished(() => core.close());
  return core;
}

/** Returns a feed, and the calls that it gets. */
function aFeed() {
  const calls: string[] = [];
  const feed = (router: ConnectRouter) =>
    router.service(LeadIntakeService, {
      async *watchLeadChanges() {
        calls.push('watch');
        yield { changes: [aChange('first')] };
      },
      acknowledgeLeadChanges() {
        calls.push('acknowledge');
        return {};
      },
    });
  return { feed, calls };
}

test('a core that cannot read the changes set aside is still watched', async () => {
  const { feed, calls } = aFeed();
  const listSetAsideLeadChanges = () => {
    throw new ConnectError('not readable', Code.Internal);
  };
  const core = await clientOfCore((router) => feed(router).service(ConsumerService, { listSetAsideLeadChanges }));
  const watch = core.watch('hooks', new AbortController().signal);
  expect((await watch.next()).value).toMatchObject([{ lead: { id: 'first' } }]);
  expect(calls).toEqual(['watch']);
});
