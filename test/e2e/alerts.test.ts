import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Db, MongoClient } from 'mongodb';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ConsumerStart } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { openStore } from '../../src/store/open-store.ts';
import { type Deployment, deployApart, portToKeep, UNKNOWN_KEY } from '../crash/deployment.ts';
import { DAY_MS, times } from '../support/builders.ts';
import { arrangeStudio, type CoreClients, connectToCore } from '../support/core-clients.ts';
import { canSetClocks, MachineClock } from '../support/machine-clock.ts';
import { describeWithMongoServer, startWireServer } from '../support/mongodb.ts';
import { type PrometheusServer, startPrometheus } from '../support/prometheus.ts';
import { aCapture, LEADS } from '../support/service.ts';
import { aWebhookSecret } from '../support/webhooks.ts';
import { anAuthority, writeCertificate } from '../tools/certificates.ts';
import { ROOT, readAddress, run, temporaryFolder } from '../tools/processes.ts';
import { aRedis, describeIf, describeWithRedisServer, hasCommand, startRedisCluster } from '../tools/servers.ts';

/** How long an alert may take to fire or to end on a busy machine; milliseconds. */
const CHANGES_WITHIN_MS = 180_000;

/** Enough callers for a storm of guessed keys, although refusals of an address with many guesses take a second each. */
const GUESSERS = 64;

/**
 * Enough pending requests to fire the overload alert, in crowds with a key each, and the delay between crowds; milliseconds.
 * Requests of one key end together and are repeated together, so a scrape might see few of a single crowd.
 */
const [CROWDS, CROWD, NEXT_CROWD_MS] = [8, 100, 600];

/** How long a pause of the core lasts, and how long the core runs after it; milliseconds. */
const [PAUSED_MS, RUNNING_MS] = [320, 60];

/** How long the gateway keeps serving after SIGTERM; milliseconds. */
const DRAIN_MS = 30_000;

const HOUR_MS = 3_600_000;

/** The remaining validity of certificates that are due for renewal. */
const CERTIFICATE_DAYS = 10;

const dashboard = JSON.parse(readFileSync(join(ROOT, 'ops/grafana-dashboard.json'), 'utf8')) as {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
};

const canRun = hasCommand('prometheus') && canSetClocks;
// @proves monitoring-1
describeIf(canRun, 'a Prometheus that scrapes core and gateway,', 'install prometheus and faketime', () => {
  describeWithRedisServer('with Redis', () => {
    describeWithMongoServer('and MongoDB,', () => {
      const title = 'every alert fires for its failure, and every panel of the dashboard has data';
      // The test waits for some twenty alerts, one after the other.
      test(title, { timeout: 900_000 }, async () => {
        const redis = await aRedis();
        const database = await startWireServer();
        onTestFinished(() => database.stop());
        const databaseUrl = `${database.url}test-${randomUUID()}`;
        const [coreMetrics, gatewayMetrics] = [`127.0.0.1:${await portToKeep()}`, `127.0.0.1:${await portToKeep()}`];
        const deployment = await deployApart({
          DATABASE_URL: databaseUrl,
          REDIS_URL: redis.url,
          CORE_METRICS_ADDRESS: coreMetrics,
          GATEWAY_METRICS_ADDRESS: gatewayMetrics,
          SHUTDOWN_DRAIN_MS: `${DRAIN_MS}`,
        });
        const expiring = await deployWithCertificates(CERTIFICATE_DAYS);
        const muted = await deployMuted(deployment.coreUrl);
        const core = connectToCore(deployment.coreUrl);
        onTestFinished(() => core.close());
        const relayMetrics = await deployRelay(deployment.coreUrl, core);
        const prometheus = await startPrometheus({
          relay: relayMetrics,
          core: coreMetrics,
          gateway: gatewayMetrics,
          'core over TLS': expiring.coreMetrics,
          'gateway over TLS': expiring.gatewayMetrics,
          'muted gateway': muted.metrics,
        });
        onTestFinished(() => prometheus.stop());
        const { studioId, secret } = await arrangeStudio(core);
        const retained = { studio: { id: studioId, retentionDays: 365 }, updateMask: { paths: ['retention_days'] } };
        await core.directory.putStudio(retained);
        // A core first reads this time a minute after its start.
        await putRetentionTime(databaseUrl);
        const api = makeCalls(deployment, secret);
        const { fire, end, fired } = watchAlerts(prometheus);

        const usual = repeat(2, api.everything);
        // There are no metrics before the first scrape.
        await end('LeadIntakeNoMetrics');

        /** Causes the failures of the muted gateway while the main deployment has its own. */
        const failMuted = async () => {
          const requests = repeat(1, muted.request);
          await muted.killNode();
          const probes = repeat(8, muted.probe);
          await fire('LeadIntakeLogLinesDropped');
          await probes.stop();
          await fire('LeadIntakeQuotaPartlyAway', 'LeadIntakeSpansDropped');
          await requests.stop();
        };
        const failExpiring = async () => {
          await fire('LeadIntakeCertificateExpires');
          await expiring.breakInvariant();
          await fire('LeadIntakeInvariantBroken');
          expiring.clock.set(3600);
          await fire('LeadIntakeClockWrong');
          expiring.spoilFiles();
          await fire('LeadIntakeFilesUnusable');
          await expiring.kill();
          await fire('LeadIntakeReplicaAway');
        };
        const elsewhere = Promise.all([failMuted(), failExpiring()]);
        elsewhere.catch(() => {});

        await redis.kill();
        await fire('LeadIntakeQuotaStoreAway', 'LeadIntakeErrorBudgetFastBurn', 'LeadIntakeErrorBudgetSlowBurn');
        await redis.restart();
        await end('LeadIntakeQuotaStoreAway');

        await database.kill();
        await fire('LeadIntakeStoreAway', 'LeadIntakeCoreAway');
        await database.revive();
        await end('LeadIntakeStoreAway', 'LeadIntakeCoreAway');

        const guesses = repeat(GUESSERS, () => api.list(UNKNOWN_KEY));
        await fire('LeadIntakeBadKeyStorm');
        await guesses.stop();
        await fire('LeadIntakeWebhooksFail');
        await usual.stop();

        const late = repeat(1, () => pauseBriefly(deployment));
        await fire('LeadIntakeEventLoopLate');
        await late.stop();

        const studios = await Promise.all(times(CROWDS, () => arrangeStudio(core)));
        deployment.process('core').child.kill('SIGSTOP');
        const crowds = studios.map((studio, place) =>
          repeat(CROWD, makeCalls(deployment, studio.secret).create, place * NEXT_CROWD_MS),
        );
        await fire('LeadIntakeOverload', 'LeadIntakeLatencyBudgetFastBurn', 'LeadIntakeLatencyBudgetSlowBurn');
        deployment.process('core').child.kill('SIGCONT');
        for (const crowd of crowds) await crowd.stop();
        await end('LeadIntakeOverload');
        await elsewhere;
        await expectEveryPanelDrawn(prometheus);

        const relay = { consumer: { name: 'relay', allStudios: true }, start: ConsumerStart.ALL_LEADS };
        await core.consumers.createConsumer(relay);
        await core.leads.pullLeadChanges({ consumer: 'relay' });
        // A core caches the count of pending changes for half a minute, and the count of keys for an hour. While no core writes,
        // PostgreSQL finds no deadlock with an update of all leads.
        await deployment.kill('core');
        await backdateChanges(databaseUrl);
        await letKeysEndSoon(databaseUrl);
        await deployment.restart('core');
        await deployment.serves();
        const consumer = repeat(1, () => acknowledgeOne(core).catch(() => {}));
        // A busy database answers after the deadline of the call.
        const pull = () => core.leads.pullLeadChanges({ consumer: 'relay' });
        const { changes } = await vi.waitFor(pull, { timeout: CHANGES_WITHIN_MS });
        const [{ lead, revision } = expect.fail()] = changes;
        const aside = { studioId: lead?.studioId ?? '', leadId: lead?.id ?? '', revision, reason: 'HTTP_500' };
        await core.consumers.setAsideLeadChanges({ consumer: 'relay', leads: [aside] });
        await fire(
          'LeadIntakeChangesWait',
          'LeadIntakeConsumerWaits',
          'LeadIntakeConsumerSetAside',
          'LeadIntakeKeysEnd',
        );
        await consumer.stop();

        deployment.process('gateway').child.kill('SIGTERM');
        await fire('LeadIntakeStopsTooLong');
        await deployment.kill('core');
        await fire('LeadIntakeNoMetrics', 'LeadIntakeRelayWithoutFeed');

        expect([...fired].sort()).toEqual(prometheus.alerts.toSorted());
      });
    });
  });
});

/** Starts a gateway whose log is on a full disk and whose spans nothing receives. It counts in a Redis Cluster. */
async function deployMuted(coreUrl: string) {
  const cluster = await startRedisCluster({ 'cluster-require-full-coverage': ['no'] });
  onTestFinished(async () => void (await Promise.all(cluster.map((node) => node.stop()))));
  const [port, metrics] = [await portToKeep(), `127.0.0.1:${await portToKeep()}`];
  run('gateway/main.ts', {
    within: ['sh', '-c', 'exec "$@" > /dev/full', 'sh'],
    env: {
      CORE_URL: coreUrl,
      REDIS_URL: cluster[0]?.url ?? '',
      REDIS_CLUSTER: 'yes',
      // This address answers with 404. If no server listened there, the gateway would retry before it drops spans.
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://${metrics}`,
      GATEWAY_PORT: `${port}`,
      GATEWAY_METRICS_ADDRESS: metrics,
    },
  });
  const send = async (path: string, headers = {}) => {
    await (await fetch(`http://127.0.0.1:${port}${path}`, { headers }).catch(() => undefined))?.text();
  };
  const request = () => send(LEADS).then(() => sleep(100));
  /** Sends a request that is always served at once, and that fills the log fast. */
  const probe = () => send('/healthz', { 'x-request-id': 'x'.repeat(100) });
  return { metrics, request, probe, killNode: async () => cluster[2]?.kill() };
}

/** Starts a relay whose endpoint has no listener. Returns the address of its metrics. */
async function deployRelay(coreUrl: string, core: CoreClients): Promise<string> {
  const file = join(temporaryFolder(), 'endpoints.json');
  const endpoint = { url: 'https://127.0.0.1:1', secrets: [aWebhookSecret()], allowPrivate: true };
  writeFileSync(file, JSON.stringify({ endpoints: { hooks: endpoint } }));
  await core.consumers.createConsumer({ consumer: { name: 'hooks', allStudios: true }, start: ConsumerStart.NOW });
  const metrics = `127.0.0.1:${await portToKeep()}`;
  const env = { RELAY_CORE_ADDRESS: coreUrl, RELAY_ENDPOINTS_FILE: file, RELAY_METRICS_ADDRESS: metrics };
  await run('relay/main.ts', { env }).printed(/serving metrics/);
  return metrics;
}

/** Starts a core and a gateway with TLS and certificates that expire in `days`. Returns the addresses of their metrics. */
async function deployWithCertificates(days: number) {
  const folder = temporaryFolder();
  const authority = await anAuthority('The authority of the tests');
  const now = Date.now();
  const makeFiles = async (use: 'server' | 'client') => {
    const validity = [new Date(now - DAY_MS), new Date(now + days * DAY_MS)] as const;
    return writeCertificate(folder, use, await authority.issue('localhost', use, validity));
  };
  const [server, client] = [await makeFiles('server'), await makeFiles('client')];
  const ca = writeCertificate(folder, 'authority', authority).cert;
  const [coreMetrics, gatewayMetrics] = [`127.0.0.1:${await portToKeep()}`, `127.0.0.1:${await portToKeep()}`];
  const clock = new MachineClock('core', join(folder, 'clocks'));
  const file = join(folder, 'leads.db');
  const core = run('src/main.ts', {
    env: {
      ...clock.settings,
      DATABASE_URL: `sqlite:${file}`,
      CORE_TLS_CERT_FILE: server.cert,
      CORE_TLS_KEY_FILE: server.key,
      CORE_TLS_CLIENT_CA_FILE: ca,
      CORE_METRICS_ADDRESS: coreMetrics,
    },
  });
  const { port } = new URL(await readAddress(core));
  const coreUrl = `https://localhost:${port}`;
  const gateway = run('gateway/main.ts', {
    env: {
      CORE_URL: coreUrl,
      CORE_CA_FILE: ca,
      CORE_CLIENT_CERT_FILE: client.cert,
      CORE_CLIENT_KEY_FILE: client.key,
      GATEWAY_METRICS_ADDRESS: gatewayMetrics,
    },
  });
  await readAddress(gateway);
  const spoilFiles = () => writeFileSync(server.cert, 'no certificate');
  /** Makes the database ignore new leads, and creates one. */
  const breakInvariant = async () => {
    const [cert, key] = [readFileSync(client.cert), readFileSync(client.key)];
    const calls = connectToCore(coreUrl, undefined, { ca: readFileSync(ca), cert, key });
    const { studioId } = await arrangeStudio(calls);
    const database = new DatabaseSync(file);
    database.exec('CREATE TRIGGER ignored BEFORE INSERT ON leads BEGIN SELECT RAISE(IGNORE); END');
    database.close();
    const capture = { displayName: 'Ada', contact: { value: { case: 'email', value: 'ada@example.org' } } } as const;
    const creation = calls.leads.createLead({ studioId, idempotencyKey: randomUUID(), ...capture });
    await expect(creation).rejects.toThrow('internal error');
    calls.close();
  };
  return {
    coreMetrics,
    gatewayMetrics,
    clock,
    breakInvariant,
    spoilFiles,
    kill: () => Promise.all([core.kill(), gateway.kill()]),
  };
}

/** Returns functions that wait for alerts, and the alerts that have fired. */
function watchAlerts(prometheus: PrometheusServer) {
  const fired = new Set<string>();
  const firing = async () => {
    const alerts = await prometheus.firing();
    for (const { annotations } of alerts) expect(annotations.summary).not.toMatch(/no value|error|NaN/i);
    return alerts.map(({ labels }) => labels.alertname ?? '');
  };
  const patience = { timeout: CHANGES_WITHIN_MS, interval: 500 };
  return {
    fired,
    /** Waits until each of them has fired, not necessarily at the same time. */
    async fire(...names: string[]) {
      const missing = new Set(names);
      const look = async () => {
        for (const name of await firing()) missing.delete(name);
        return [...missing];
      };
      await expect.poll(look, patience).toEqual([]);
      for (const name of names) fired.add(name);
    },
    end: (...names: string[]) =>
      expect.poll(async () => (await firing()).filter((name) => names.includes(name)), patience).toEqual([]),
  };
}

/** Returns functions that send the callers' requests and ignore their outcome. */
function makeCalls({ gatewayUrl }: Deployment, secret: string) {
  const send = async (path: string, request: RequestInit, key = secret) => {
    const headers = { ...request.headers, authorization: `Bearer ${key}` };
    const response = await fetch(`${gatewayUrl}${path}`, { ...request, headers }).catch(() => undefined);
    await response?.text().catch(() => {});
  };
  const post = (capture: Record<string, unknown>, key: string = randomUUID()) =>
    send(LEADS, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify(capture),
    });
  const list = (key?: string) => send(LEADS, {}, key);
  return {
    list,
    create: () => post(aCapture()),
    /** Sends one request for each outcome that a panel shows. */
    async everything() {
      const [capture, key] = [aCapture(), randomUUID()];
      await post(capture, key);
      await post(capture, key);
      await post({ ...capture, displayName: 'Ada Byron' }, key);
      await post(capture);
      await list();
      await send(`${LEADS}/${randomUUID()}`, {});
      await sleep(200);
    },
  };
}

/** Repeats some work in `count` concurrent loops, after `startsAfterMs`, until it is stopped. */
function repeat(count: number, work: () => Promise<void>, startsAfterMs = 0) {
  let isOver = false;
  onTestFinished(() => {
    isOver = true;
  });
  const loops = times(count, async () => {
    await sleep(startsAfterMs);
    while (!isOver) await work();
  });
  return {
    async stop() {
      isOver = true;
      await Promise.all(loops);
    },
  };
}

/** Pauses the core for a moment. */
async function pauseBriefly(deployment: Deployment): Promise<void> {
  const { child } = deployment.process('core');
  child.kill('SIGSTOP');
  await sleep(PAUSED_MS);
  child.kill('SIGCONT');
  await sleep(RUNNING_MS);
}

/** Backdates the pending changes of all leads by two hours. */
const backdateChanges = (databaseUrl: string): Promise<void> =>
  onDatabase(databaseUrl, async (database) => {
    const since = new Date(Date.now() - 2 * HOUR_MS);
    await database.collection('leads').updateMany({}, { $set: { 'changes.since': since } });
    await database.collection('deliveries').updateMany({}, { $set: { since } });
  });

/** Stores a retention time that is a day old. */
async function putRetentionTime(databaseUrl: string): Promise<void> {
  const store = await openStore(databaseUrl);
  await store.putRetentionTime(null, new Date(Date.now() - DAY_MS));
  await store.close();
}

const letKeysEndSoon = (databaseUrl: string): Promise<void> =>
  onDatabase(databaseUrl, async (database) => {
    const expiresAt = new Date(Date.now() + DAY_MS);
    await database.collection('apiKeys').updateMany({}, { $set: { expiresAt } });
  });

async function onDatabase(databaseUrl: string, change: (database: Db) => Promise<void>): Promise<void> {
  const client = new MongoClient(databaseUrl);
  try {
    await change(client.db());
  } finally {
    await client.close();
  }
}

async function acknowledgeOne({ leads }: CoreClients): Promise<void> {
  const { changes } = await leads.pullLeadChanges({ max: 1 });
  await leads.acknowledgeLeadChanges({
    acknowledgements: changes.map(({ lead, revision }) => ({
      studioId: lead?.studioId ?? '',
      leadId: lead?.id ?? '',
      revision,
    })),
  });
  await sleep(300);
}

async function expectEveryPanelDrawn(prometheus: PrometheusServer): Promise<void> {
  let empty = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));
  const look = async () => {
    const without: typeof empty = [];
    for (const panel of empty) {
      const query = panel.expr.replaceAll('$__rate_interval', '3s').replaceAll('$deployment', '.*');
      if ((await prometheus.values(query)).flat().length === 0) without.push(panel);
    }
    empty = without;
    return empty;
  };
  await expect.poll(look, { timeout: 240_000, interval: 1000 }).toEqual([]);
}
