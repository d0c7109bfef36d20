import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { times } from './support/builders.ts';
import { allLeads, arrangeStudio, connectToCore } from './support/core-clients.ts';
import { build, describeWithKustomize, kubectlThatKeeps, parseManifests } from './support/kubernetes.ts';
import { sendAgainIfLate } from './support/late-counts.ts';
import { describeWithMongo } from './support/mongodb.ts';
import { aCluster, type Cluster, type Pod } from './support/pods.ts';
import { aCapture, LEADS } from './support/service.ts';
import { commandsIn } from './tools/commands.ts';
import { bash, ROOT, temporaryFolder } from './tools/processes.ts';
import { describeWithRedis } from './tools/servers.ts';

/** The number of callers, and the pause after each request, which keeps all of them within one key's quota; milliseconds. */
const CALLERS = 4;
const PAUSE_MS = 450;
const [CORE, GATEWAY, RELAY] = ['lead-intake-core', 'lead-intake-gateway', 'lead-intake-relay'] as const;
const TOKEN = 'the token of the pods of this test';
const PAGE = readFileSync(join(ROOT, 'docs/how-to/kubernetes.md'), 'utf8');
const CERTIFICATES = readFileSync(join(ROOT, 'docs/how-to/certificates.md'), 'utf8');

/** Defines suites that run the image in pods as the Kubernetes manifests describe them, with upgrades and crashes. */
export function describeInPods(image: () => string): void {
  describeWithKustomize('in pods of the manifests', () => {
    withDatabaseAndRedis(image);

    // @proves kubernetes-3
    test('on SQLite, a core is replaced by one on the same volume, and no request fails', async () => {
      const secrets = temporaryFolder();
      for (const name of [CORE, GATEWAY]) {
        mkdirSync(join(secrets, name));
        writeFileSync(join(secrets, name, 'core-token'), TOKEN);
      }
      const manifests = parseManifests(build(join(ROOT, 'ops/kubernetes/overlays/sqlite')));
      const cluster = await aCluster(image(), manifests, secrets);
      const core = await cluster.start(CORE);
      await cluster.start(GATEWAY);
      const connectTo = (pod?: Pod) => connectToCore(`http://${pod?.address}:50051`, TOKEN);
      const first = connectTo(core);
      const { studioId, secret } = await arrangeStudio(first);
      first.close();
      const caller = startCallers(cluster, secret);
      await caller.untilMoreCreated();
      expect(await cluster.replace(core)).toBe(0);
      await caller.untilMoreCreated();
      const created = await caller.stop();
      expect(caller.failures).toEqual([]);
      const second = connectTo(cluster.findEndpoints(CORE)[0]);
      onTestFinished(() => second.close());
      expect(await allLeads(second, studioId)).toHaveLength(created);
    });
  });
}

function withDatabaseAndRedis(image: () => string): void {
  describeWithMongo('with a database', (mongoUrl) => {
    describeWithRedis('and a Redis', (redisUrl) => {
      // @proves kubernetes-3 kubernetes-1
      test('pods are replaced without failures, and requests of killed pods succeed on retry', async () => {
        const urls = { database: `${mongoUrl()}kubernetes-${crypto.randomUUID()}`, redis: redisUrl() };
        const { folder, secrets } = await writeDeployment(urls);
        const manifests = parseManifests(build(join(folder, 'production')));
        const cluster = await aCluster(image(), manifests, secrets);
        await Promise.all([cluster.start(CORE), cluster.start(CORE)]);
        await Promise.all([cluster.start(GATEWAY), cluster.start(GATEWAY)]);
        const secret = await runGuide(cluster);
        await expectConfined(cluster);
        const relay = await cluster.start(RELAY);

        const created = await replaceAndCrashAll(cluster, secret);
        const exported = await inPod(cluster, CORE, 'lead-intake leads export my-studio | tail -n +2 | wc -l');
        expect(Number(exported)).toBe(created);
        expect(await relay.stop()).toBe(0);
      });
    });
  });
}

/** Replaces each pod, and then kills some, while callers create leads. Returns the number of leads. */
async function replaceAndCrashAll(cluster: Cluster, secret: string): Promise<number> {
  const caller = startCallers(cluster, secret);
  await caller.untilMoreCreated();
  const replaceAll = async (deployment: string) => {
    const ended: unknown[] = [];
    for (const pod of [...cluster.findEndpoints(deployment)]) ended.push(await cluster.replace(pod));
    return ended;
  };
  expect(await Promise.all([replaceAll(CORE), replaceAll(GATEWAY)])).toEqual([
    [0, 0],
    [0, 0],
  ]);
  await caller.untilMoreCreated();
  expect(caller.failures).toEqual([]);

  for (const deployment of [CORE, GATEWAY]) {
    await cluster.crash(cluster.findEndpoints(deployment)[0] as Pod);
    await caller.untilMoreCreated();
  }
  const created = await caller.stop();
  expect(caller.failures.filter((failure) => failure !== '503' && failure !== 'no answer')).toEqual([]);
  return created;
}

/** Writes the guide's overlay, and its secrets with these addresses. Returns both folders. */
async function writeDeployment(urls: { database: string; redis: string }) {
  const folder = temporaryFolder();
  const secrets = join(folder, 'cluster');
  symlinkSync(ROOT, join(folder, 'lead-intake'));
  await bash(`set -e; cd ${folder}\n${commandsIn(PAGE, 'kubernetes-overlay')}`);
  const output = await bash(`set -e; cd ${folder}/production
${kubectlThatKeeps(secrets)}
${commandsIn(CERTIFICATES, 'certificates').replace('name=core\n', `name=${CORE}\n`)}
${commandsIn(PAGE, 'kubernetes-secrets')
  .replace(/'mongodb:[^']+'/, `'${urls.database}'`)
  .replace(/'rediss:[^']+'/, `'${urls.redis}'`)}
${commandsIn(PAGE, 'kubernetes-apply-secrets')}
echo done`);
  expect(output).toMatch(/done\n$/);
  return { folder, secrets };
}

/** Runs those of the guide's first commands that run in pods. Returns the secret of the key. */
async function runGuide(cluster: Cluster): Promise<string> {
  const lines = commandsIn(PAGE, 'kubernetes-start').trim().split('\n');
  const inPods = lines.filter((line) => line.startsWith('kubectl exec '));
  expect(lines.length - inPods.length).toBe(3);
  let printed = '';
  for (const line of inPods) {
    const [, deployment = '', command = '', answer = ''] = /deployment\/(\S+) -- (.+?) +# → (.+)$/.exec(line) ?? [];
    printed = await inPod(cluster, deployment, command);
    expect({ line, printed }).toEqual({ line, printed: expect.stringContaining(answer) });
  }
  return /lik_\S{48}/.exec(printed)?.[0] ?? '';
}

/** Runs a command in a pod of a deployment, and returns its output. */
async function inPod(cluster: Cluster, deployment: string, command: string): Promise<string> {
  const [pod] = cluster.findEndpoints(deployment);
  const quoted = pod?.commandPrefix.map((word) => `'${word}'`).join(' ');
  return bash(`${quoted} sh -c '${command}' < /dev/null`);
}

/** Expects that a pod can do no more than its manifest says, and that its gateway finds every core by one name. */
async function expectConfined(cluster: Cluster): Promise<void> {
  const status = await inPod(cluster, GATEWAY, 'cat /proc/1/status');
  expect(status).toMatch(/^Uid:\t1000\t1000\t1000\t1000$/m);
  for (const set of ['CapEff', 'CapBnd', 'CapAmb']) expect(status).toMatch(new RegExp(`^${set}:\\t0+$`, 'm'));
  expect(status).toMatch(/^NoNewPrivs:\t1$/m);
  for (const place of ['/app', '/app/src', '/etc', '/home/node', '/run/secrets/lead-intake', '/tmp']) {
    expect(await inPod(cluster, GATEWAY, `touch ${place}/x`)).toMatch(/Read-only file system|Permission denied/);
  }
  expect(await inPod(cluster, CORE, 'touch /tmp/x && echo written')).toBe('written\n');

  // The gateway resolves the name like this, and connects to the first address.
  const program = 'import { lookUpCore } from "/app/common/core-connection.ts";'
    .concat(
      'const first = () => new Promise((done) => lookUpCore("lead-intake-core", { all: true }, (_, all) => done(all[0].address)));',
    )
    .concat('console.log([...new Set(await Promise.all(Array.from({ length: 60 }, first)))].toSorted().join());');
  const addresses = cluster.findEndpoints(CORE).map(({ address }) => address);
  expect(await inPod(cluster, GATEWAY, `node --input-type=module --eval "${program.replaceAll('"', '\\"')}"`)).toBe(
    `${addresses.toSorted().join()}\n`,
  );
}

/** Starts callers that create leads at any gateway of the cluster, and retry failed requests with the same key. */
function startCallers(cluster: Cluster, secret: string) {
  const failures: string[] = [];
  const sendCounted = sendAgainIfLate();
  let created = 0;
  let isOver = false;
  const create = async () => {
    const headers = {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      'idempotency-key': crypto.randomUUID(),
    };
    const body = JSON.stringify(aCapture());
    for (;;) {
      const gateways = cluster.findEndpoints(GATEWAY);
      const { address } = gateways[Math.floor(Math.random() * gateways.length)] as Pod;
      const url = `http://${address}:8080${LEADS}`;
      const outcome = await sendCounted(() => fetch(url, { method: 'POST', headers, body })).then(
        async (response) => `${response.status}${response.ok ? '' : await response.text()}`,
        () => 'no answer',
      );
      if (outcome === '201') return;
      failures.push(/^503.*integration_unavailable/.test(outcome) ? '503' : outcome);
      await sleep(50);
    }
  };
  const callers = times(CALLERS, async () => {
    while (!isOver) {
      await create();
      created += 1;
      await sleep(PAUSE_MS);
    }
  });
  return {
    failures,
    async untilMoreCreated() {
      const before = created;
      await expect.poll(() => created).toBeGreaterThan(before + 20);
    },
    async stop() {
      isOver = true;
      await Promise.all(callers);
      return created;
    },
  };
}
