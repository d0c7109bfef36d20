import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import type { CoreToken } from '../../common/core-connection.ts';
import { hashKeySecret, newCoreToken } from '../../common/rules/key-secret.ts';
import { TlsCredentials } from '../../common/tls-credentials.ts';
import { readGatewayConfig } from '../../gateway/config.ts';
import { createCoreClient } from '../../gateway/core/core-client.ts';
import { ConsumerStart } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { readRelayConfig } from '../../relay/config.ts';
import { connectCore } from '../../relay/core.ts';
import { newId } from '../../src/domain/new-id.ts';
import { times } from '../support/builders.ts';
import { arrangeStudio, type CoreClients, connectToCore } from '../support/core-clients.ts';
import { startTestCore, type TestCore } from '../support/grpc.ts';
import { scrape } from '../support/metrics.ts';
import { aReplacedToken } from '../support/replaced-token.ts';
import { temporaryFolder } from '../tools/processes.ts';

// CORE_TOKEN after the file of a gateway or relay was replaced, but not its core's. No health check tries the token
// first: the calls here are the only ones.

const [FORMER, NEWEST, OTHER] = [newCoreToken(), newCoreToken(), newCoreToken()];

/** The number of concurrent requests of each kind. */
const COUNT = 40;

// All tokens wait for their files at the same time.
let tokens: readonly CoreToken[] = [];
beforeAll(async () => {
  tokens = await Promise.all(times(7, () => aReplacedToken(FORMER, NEWEST)));
});

// @proves secrets-3
test.each<[string, accepted: string[], number]>([
  ['with the former token', [FORMER], 0],
  ['with the new one', [NEWEST], 1],
  ['with the former, and then, restarted, with the new one', [FORMER, NEWEST], 2],
  ['with the new one, and then, as another of several, with the former', [NEWEST, FORMER], 3],
])('all first calls of a gateway to a core %s succeed, each executed once', async (_, accepted, at) => {
  const cores = severalCores();
  let gateway: ReturnType<typeof startGatewayAt> | undefined;
  for (const each of accepted) {
    const { core, crm } = await cores.next(each);
    const studio = await arrangeStudio(crm);
    const { lead } = await crm.leads.createLead(aCreation(studio.studioId));
    gateway ??= startGatewayAt(core, tokens[at] as CoreToken);

    const sender = { secretSha256: hashKeySecret(studio.secret), requestId: randomUUID() };
    const { recordRequests, authenticate, createLead, getLead, listLeads, check } = gateway;
    const outcomes = await Promise.allSettled([
      ...times(COUNT, () => [
        authenticate(sender),
        createLead(sender, aCreation()),
        getLead(sender, lead?.id ?? ''),
        listLeads(sender, { limit: 5, cursor: undefined }),
      ]).flat(),
      recordRequests(aReport(studio)),
      check(),
    ]);
    expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([]);

    const metrics = await scrape(core.metricsUrl);
    const executed = (operation: string) =>
      metrics.get(`lead_intake_core_call_duration_seconds_count{operation="${operation}",outcome="ok"}`);
    const operations = ['AuthenticateApiKey', 'CreateLead', 'GetLead', 'ListLeads', 'RecordRequests'];
    expect(operations.map(executed)).toEqual([COUNT, COUNT + 1, COUNT, COUNT, 1]);
  }
});

// @proves secrets-3
test.each([
  { first: 'former', accepted: [FORMER, NEWEST], at: 4 },
  { first: 'new', accepted: [NEWEST, FORMER], at: 5 },
])('a relay that only watches gets its feed with the $first token first, then with the other', async (each) => {
  const cores = severalCores();
  let relay: ReturnType<typeof startRelayAt> | undefined;
  for (const token of each.accepted) {
    const { core, crm } = await cores.next(token);
    if (!relay) {
      await crm.consumers.createConsumer({
        consumer: { name: 'hooks', allStudios: true },
        start: ConsumerStart.NOW,
      });
    }
    const { lead } = await crm.leads.createLead(aCreation((await arrangeStudio(crm)).studioId));
    relay ??= startRelayAt(core, tokens[each.at] as CoreToken);
    const ids = new Set<string | undefined>();
    const watching = new AbortController();
    for await (const changes of relay.watch('hooks', watching.signal)) {
      for (const change of changes) ids.add(change.lead?.id);
      if (ids.has(lead?.id)) break;
    }
    watching.abort();
  }
});

test('a core that accepts neither token is called a bounded number of times', async () => {
  const { core } = await severalCores().next(OTHER);
  const token = tokens[6] as CoreToken;
  const gateway = startGatewayAt(core, token);
  const sender = { secretSha256: hashKeySecret('none'), requestId: randomUUID() };
  await expect(gateway.createLead(sender, aCreation())).rejects.toMatchObject({ status: 503 });
  const report = aReport({ studioId: 'none', apiKeyId: newId() });
  await expect(gateway.recordRequests(report)).rejects.toThrow('unauthenticated');
  const feed = startRelayAt(core, token).watch('hooks', new AbortController().signal);
  await expect(feed.next()).rejects.toThrow('unauthenticated');
});

/** Starts cores of one database at one address, one at a time. */
function severalCores() {
  const DATABASE_URL = `sqlite:${join(temporaryFolder(), 'leads.db')}`;
  let running: { readonly core: TestCore; readonly crm: CoreClients } | undefined;
  const stop = async () => {
    running?.crm.close();
    await running?.core.stop();
  };
  onTestFinished(stop);
  return {
    /** Stops the running core, and starts another that accepts a token. */
    async next(CORE_TOKEN: string) {
      await stop();
      const CORE_PORT = `${running?.core.port ?? 0}`;
      const env = { CORE_TOKEN, CORE_PORT, DATABASE_URL, CORE_METRICS_ADDRESS: '127.0.0.1:0' };
      const core = await startTestCore(env);
      running = { core, crm: connectToCore(core.url, CORE_TOKEN) };
      return running;
    },
  };
}

const noFiles = () => new TlsCredentials({ ca: undefined, cert: undefined, key: undefined });

function startGatewayAt({ url }: TestCore, token: CoreToken) {
  const client = createCoreClient(readGatewayConfig({ CORE_URL: url }), noFiles(), token, undefined);
  onTestFinished(() => client.close());
  return client;
}

function startRelayAt({ url }: TestCore, token: CoreToken) {
  const endpoints = join(temporaryFolder(), 'endpoints.json');
  writeFileSync(endpoints, '{ "endpoints": {} }');
  const config = readRelayConfig({ RELAY_CORE_ADDRESS: url, RELAY_ENDPOINTS_FILE: endpoints });
  const core = connectCore(config, noFiles(), token);
  onTestFinished(() => core.close());
  return core;
}

const aCreation = (studioId = '') => ({
  ...(studioId && { studioId }),
  idempotencyKey: newId(),
  displayName: 'Ada',
  contact: { value: { case: 'email', value: `${newId()}@example.org` } } as const,
});

/** Returns a report of one request of a key. */
const aReport = ({ studioId, apiKeyId }: { readonly studioId: string; readonly apiKeyId: string }) => ({
  batchId: randomUUID(),
  requests: [
    {
      ...{ studioId, apiKeyId, secretHint: 'a1B_', requestId: randomUUID() },
      ...{ time: timestampFromDate(new Date()), operation: 'listLeads', status: 200, code: '' },
      ...{ faultyFields: [], replayed: false, durationMs: 1, omittedCount: 0 },
    },
  ],
});
