import { randomUUID } from 'node:crypto';
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Lead } from '../../src/domain/lead.ts';
import { isCoreServing, isGatewayReady, startBalancer } from '../support/balancer.ts';
import { times } from '../support/builders.ts';
import { allLeads, arrangeStudio, type CoreClients, connectToCore } from '../support/core-clients.ts';
import { sendAgainIfLate } from '../support/late-counts.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { describeWithLastRelease } from '../support/releases.ts';
import { aCapture, LEADS } from '../support/service.ts';
import { ROOT, type RunningProcess, readAddress, run, temporaryFolder } from '../tools/processes.ts';
import { describeWithRedis, freePort } from '../tools/servers.ts';
import { testSize } from '../tools/test-size.ts';
import { dropDatabase } from './mongo-documents.ts';

vi.setConfig({ testTimeout: 600_000 });

const CORE_TOKEN = 'the token of two releases side by side';

/** The interval of the balancers' probes, much shorter than the drain of a stopping process; milliseconds. */
const PROBE_MS = 100;
const DRAIN_MS = 2000;
const CALLERS = 2;

/** The number of rounds of requests between two replacements. */
const ROUNDS_BETWEEN = testSize('NEIGHBOUR_ROUNDS', { usual: 2, soak: 12 });

/** The pause of a caller between two rounds; milliseconds. Requests must be continuous, not many. */
const PAUSE_MS = 500;

/** The number of creations that are finally replayed, spread over all. */
const REPEATED = 20;

describeWithLastRelease('the last release and this one', (folder) => {
  describeWithMongo('on one database', (mongoUrl) => {
    describeWithRedis('and one Redis', (redisUrl) => {
      // @proves exchange-8 leads-32 requests-7
      test('the last release and this one replace each other under load without failures', async () => {
        const databaseUrl = new URL(`/test-${randomUUID()}`, mongoUrl()).href;
        onTestFinished(() => dropDatabase(databaseUrl));
        const deployment = await deploy(folder, { databaseUrl, redisUrl: redisUrl() });
        const { cores, gateways, secret, url } = deployment;
        const load = deployment.startLoad();
        const replace = async (places: readonly Place[], by: string) => {
          for (const place of places) {
            await load.more();
            await place.replaceBy(by);
          }
          await load.more();
        };
        // Either side can be updated first.
        const forth = [...gateways.slice(0, 1), ...cores, ...gateways.slice(1)];

        await replace(forth, ROOT);
        const extension = '030 1234567 x200';
        const { text } = await request(url, secret, 201, { capture: aCapture({ contact: aPhone(extension) }) });
        const asked = await askAgain(deployment);

        await replace([...gateways, ...cores], folder);
        const refused = await request(url, secret, 409, { capture: aCapture({ contact: aPhone(extension) }) });
        await correctAndErase(deployment, asked);
        const client = new MongoClient(databaseUrl);
        const stored = await client.db().collection('leads').find().toArray();
        await client.close();
        expectKeptAndErased(asked, JSON.stringify(stored));
        expect(refused.headers.get('link')).toContain(JSON.parse(text).lead.id);
        await expectAllThere(deployment, load.created);

        await load.stop();
        expect(load.failures).toEqual([]);
        await expectAllThere(deployment, load.created);
        for (const { capture } of load.created.slice(0, 5)) await request(url, secret, 409, { capture });
      });
    });
  });

  // @proves exchange-8 leads-32
  test("the last release's gateway works with this core, and its core with the unmigrated copy", async () => {
    const path = join(temporaryFolder(), 'leads.db');
    const [coreUrl, gatewayUrl] = [await aUrl(), await aUrl()];
    const startCore = (of: string) =>
      run('src/main.ts', {
        release: of,
        env: { CORE_TOKEN, DATABASE_URL: `sqlite:${path}`, CORE_PORT: new URL(coreUrl).port },
      });
    const stop = async (running: RunningProcess) => {
      running.child.kill('SIGTERM');
      expect(await running.ended()).toBe(0);
    };
    const isReady = () => vi.waitUntil(() => isGatewayReady(gatewayUrl).catch(() => false), { timeout: 30_000 });
    const ofRelease = startCore(folder);
    await readAddress(ofRelease);
    run('gateway/main.ts', {
      release: folder,
      env: { CORE_TOKEN, CORE_URL: coreUrl, GATEWAY_PORT: new URL(gatewayUrl).port, QUOTA_LIMIT: '1000000' },
    });
    await isReady();
    const clients = connectToCore(coreUrl, CORE_TOKEN);
    onTestFinished(() => clients.close());
    const { secret } = await arrangeStudio(clients);
    const serveSome = async () => {
      const load = startLoad(gatewayUrl, secret);
      await load.more();
      await load.stop();
      expect(load.failures).toEqual([]);
      return load.created;
    };
    const isReplayed = async ({ key, capture, text }: Created) =>
      (await request(gatewayUrl, secret, 201, { capture, key })).text === text;

    const before = await serveSome();
    await stop(ofRelease);
    const ofThis = startCore(ROOT);
    await readAddress(ofThis);
    await isReady();
    const after = await serveSome();
    for (const each of [...before, ...after]) expect(await isReplayed(each)).toBe(true);
    await stop(ofThis);

    const again = startCore(folder);
    expect(await again.ended()).toBe(1);
    expect(again.output()).toContain('a newer release has written the database file');

    // Going back restores the unmigrated file.
    for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
    renameSync(`${path}.before-2.0`, path);
    const back = startCore(folder);
    await readAddress(back);
    await isReady();
    for (const each of before) expect(await isReplayed(each)).toBe(true);
    await stop(back);
  });
});

type Asked = Readonly<Record<'corrected' | 'erased', Created & { readonly note: string }>>;

/** Creates two leads, and requests the contact of each again. */
async function askAgain({ url, secret }: Pick<Deployment, 'url' | 'secret'>): Promise<Asked> {
  const ask = async () => {
    const [capture, key, note] = [aCapture(), randomUUID(), `Kept-${randomUUID()}`];
    const { text } = await request(url, secret, 201, { capture, key });
    await request(url, secret, 409, { capture: { ...capture, note } });
    return { capture, key, text, note };
  };
  return { corrected: await ask(), erased: await ask() };
}

/** Checks at a core of the last release that it responds alike and replays a corrected lead as it was. */
async function correctAndErase(
  { url, secret, clients, studioId }: Pick<Deployment, 'url' | 'secret' | 'clients' | 'studioId'>,
  { corrected, erased }: Asked,
): Promise<void> {
  const [{ id }, { id: leadId }] = [corrected, erased].map(({ text }) => JSON.parse(text).lead) as [Lead, Lead];
  await request(url, secret, 409, { capture: { ...corrected.capture, note: 'kept by that release' } });
  await clients.leads.updateLead({ studioId, lead: { id, note: 'corrected' } });
  expect((await request(url, secret, 201, corrected)).text).toBe(corrected.text);
  await clients.leads.eraseLead({ studioId, leadId });
}

function expectKeptAndErased({ corrected, erased }: Asked, stored: string): void {
  expect(stored).toContain(corrected.note);
  expect(stored).not.toContain(erased.note);
}

const aPhone = (value: string) => ({ type: 'phone', value });

/** An address at which a process of either release runs. */
interface Place {
  /** Stops the current process and starts one of another release at its address. */
  replaceBy(release: string): Promise<void>;
}

interface Deployment {
  readonly cores: readonly Place[];
  readonly gateways: readonly Place[];
  /** The address of the gateways' balancer. */
  readonly url: string;
  readonly secret: string;
  readonly studioId: string;
  readonly clients: CoreClients;
  /** The ids of all leads of the studio, as listed by the core. */
  leadIds(): Promise<string[]>;
  startLoad(): Load;
}

/** Starts two cores and two gateways of a release, each pair behind a balancer. */
async function deploy(
  release: string,
  { databaseUrl, redisUrl }: { readonly databaseUrl: string; readonly redisUrl: string },
): Promise<Deployment> {
  const common = { CORE_TOKEN, SHUTDOWN_DRAIN_MS: `${DRAIN_MS}` };
  const coreUrls = await Promise.all(times(2, aUrl));
  const toCores = await startBalancer(coreUrls, isCoreServing, PROBE_MS);
  onTestFinished(() => toCores.stop());
  const gatewayUrls = await Promise.all(times(2, aUrl));
  const toGateways = await startBalancer(gatewayUrls, isGatewayReady, PROBE_MS);
  onTestFinished(() => toGateways.stop());

  const cores = coreUrls.map((url) =>
    aPlace(toCores, url, 'src/main.ts', { ...common, DATABASE_URL: databaseUrl, CORE_PORT: new URL(url).port }),
  );
  const gateways = gatewayUrls.map((url) =>
    aPlace(toGateways, url, 'gateway/main.ts', {
      ...common,
      CORE_URL: toCores.url,
      REDIS_URL: redisUrl,
      QUOTA_LIMIT: '1000000000',
      GATEWAY_REQUEST_LOG: 'yes',
      GATEWAY_PORT: new URL(url).port,
    }),
  );
  for (const place of cores) await place.replaceBy(release);
  for (const place of gateways) await place.replaceBy(release);

  const clients = connectToCore(toCores.url, CORE_TOKEN);
  onTestFinished(() => clients.close());
  const { studioId, secret } = await arrangeStudio(clients, { regionCode: 'DE' });
  return {
    cores,
    gateways,
    url: toGateways.url,
    secret,
    studioId,
    clients,
    startLoad: () => startLoad(toGateways.url, secret),
    leadIds: async () => (await allLeads(clients, studioId)).map(({ id }) => id),
  };
}

const aUrl = async () => `http://127.0.0.1:${await freePort()}`;

type Balancer = Awaited<ReturnType<typeof startBalancer>>;

function aPlace(balancer: Balancer, url: string, file: string, env: Record<string, string>): Place {
  let running: ReturnType<typeof run> | undefined;
  return {
    async replaceBy(release) {
      if (running) {
        running.child.kill('SIGTERM');
        expect(await running.ended()).toBe(0);
      }
      running = run(file, { release, env });
      await readAddress(running);
      await vi.waitUntil(() => balancer.isUsed(url), { timeout: 30_000 });
    },
  };
}

/** A creation and its response. */
interface Created {
  readonly key: string;
  readonly capture: object;
  readonly text: string;
}

interface Load {
  readonly created: readonly Created[];
  readonly failures: readonly unknown[];
  /** Waits for another ROUNDS_BETWEEN rounds. */
  more(): Promise<void>;
  stop(): Promise<void>;
}

/** Runs callers that create, replay, attempt a second lead, read and list, until stopped. */
function startLoad(url: string, secret: string): Load {
  const created: Created[] = [];
  const failures: unknown[] = [];
  let isOver = false;
  const round = async () => {
    const [capture, key] = [aCapture(), randomUUID()];
    const { text } = await request(url, secret, 201, { capture, key });
    const { id } = JSON.parse(text).lead;
    const repeated = await request(url, secret, 201, { capture, key });
    expect(repeated.text).toBe(text);
    expect(repeated.headers.get('idempotent-replayed')).toBe('true');
    expect((await request(url, secret, 409, { capture })).headers.get('link')).toContain(id);
    expect(JSON.parse((await request(url, secret, 200, { path: `/${id}` })).text)).toEqual(JSON.parse(text));
    expect(JSON.parse((await request(url, secret, 200, { path: '?limit=1' })).text).leads).toHaveLength(1);
    created.push({ key, capture, text });
  };
  const callers = times(CALLERS, async () => {
    while (!isOver) {
      await round().catch((error) => failures.push(error));
      await sleep(PAUSE_MS);
    }
  });
  return {
    created,
    failures,
    async more() {
      const before = created.length;
      await vi.waitUntil(() => created.length >= before + ROUNDS_BETWEEN || failures.length > 0, { timeout: 60_000 });
    },
    async stop() {
      isOver = true;
      await Promise.all(callers);
    },
  };
}

const sendCounted = sendAgainIfLate();

/** Sends a request, and retries it if its idle connection was closed, which HTTP leaves to clients. */
async function request(
  url: string,
  secret: string,
  status: number,
  {
    capture,
    key = randomUUID(),
    path = '',
  }: { readonly capture?: object; readonly key?: string; readonly path?: string },
) {
  const send = () =>
    fetch(`${url}${LEADS}${path}`, {
      ...(capture && { method: 'POST', body: JSON.stringify(capture) }),
      headers: {
        authorization: `Bearer ${secret}`,
        ...(capture && { 'content-type': 'application/json', 'idempotency-key': key }),
      },
    });
  const response = await sendCounted(() =>
    send().catch((error) => {
      if (error.cause?.code !== 'UND_ERR_SOCKET') throw error;
      return send();
    }),
  );
  const text = await response.text();
  expect({ status: response.status, text }).toEqual({ status, text: expect.any(String) });
  return { text, headers: response.headers };
}

/** Expects every acknowledged lead to be stored once, and replays to return the original response. */
async function expectAllThere(deployment: Deployment, created: readonly Created[]): Promise<void> {
  // More leads may be created during the check.
  const acknowledged = created.slice();
  const ids = await deployment.leadIds();
  expect(new Set(ids).size).toBe(ids.length);
  const there = new Set(ids);
  expect(acknowledged.map(({ text }) => JSON.parse(text).lead.id).filter((id) => !there.has(id))).toEqual([]);
  const repeat = async ({ key, capture, text }: Created) => {
    expect((await request(deployment.url, deployment.secret, 201, { capture, key })).text).toBe(text);
  };
  const every = Math.ceil(acknowledged.length / REPEATED);
  const repeated = acknowledged.filter((_, index) => index % every === 0);
  while (repeated.length > 0) await Promise.all(repeated.splice(0, 20).map(repeat));
}
