import { randomUUID } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { timestampFromDate, timestampMs } from '@bufbuild/protobuf/wkt';
import { describe, expect, onTestFinished, test } from 'vitest';
import { LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { wrongWith } from '../support/doctor.ts';
import { scrape } from '../support/metrics.ts';
import { aWebhookDeployment, aWebhookSecret, type WebhookDeployment } from '../support/webhooks.ts';
import type { RunningProcess } from '../tools/processes.ts';
import { describeIf, hasCommand } from '../tools/servers.ts';

/** Returns the highest revision of each lead that the receiver has got. Expects that revisions never decrease. */
function newestReceived({ receiver }: WebhookDeployment): Map<string, bigint> {
  const highest = new Map<string, bigint>();
  for (const { leadId, revision } of receiver.received) {
    expect(revision).toBeGreaterThanOrEqual(highest.get(leadId) ?? 0n);
    highest.set(leadId, revision);
  }
  return highest;
}

async function move({ crm, studioId, memberId }: WebhookDeployment, leadId: string, stage: LeadStage): Promise<void> {
  await crm.leads.changeLeadStage({ studioId, leadId, stage, memberId });
}

const readMetrics = async (relay: RunningProcess) => {
  const [url] = await relay.printed(/http:\/\/[0-9.:]+\/metrics/);
  return scrape(url);
};

// @proves relay-1
test('each change reaches the receiver signed and in order, and is acknowledged', async () => {
  const deployment = await aWebhookDeployment();
  const { receiver, crm, studioId } = deployment;
  deployment.relay();
  const leadId = await deployment.createLead();
  await expect.poll(() => receiver.received.map(({ kinds }) => kinds)).toEqual([['created']]);
  await expect.poll(() => deployment.waiting()).toBe(0);
  await move(deployment, leadId, LeadStage.CONTACTED);
  await expect.poll(() => receiver.received.length).toBe(2);
  await expect.poll(() => deployment.waiting()).toBe(0);
  await crm.leads.eraseLead({ studioId, leadId });
  await expect.poll(() => receiver.received.length).toBe(3);
  await expect.poll(() => deployment.waiting()).toBe(0);
  expect(receiver.received.map(({ kinds }) => kinds)).toEqual([['created'], ['stage_changed'], ['erased']]);
  expect(receiver.received.map(({ headers, revision }) => [headers['webhook-id'], revision])).toEqual(
    receiver.received.map(({ revision }) => [`${leadId}_${revision}`, revision]),
  );
  expect(new Set(newestReceived(deployment).keys())).toEqual(new Set([leadId]));
  expect(receiver.unverified()).toBe(0);
});

test('an endpoint with kinds gets only those and erasures, and other changes are acknowledged', async () => {
  const deployment = await aWebhookDeployment();
  const { receiver, crm, studioId } = deployment;
  deployment.putEndpoints({ kinds: ['stage_changed'] });
  const leadId = await deployment.createLead();
  deployment.relay();
  await expect.poll(() => deployment.waiting()).toBe(0);
  expect(receiver.received).toEqual([]);
  await move(deployment, leadId, LeadStage.CONTACTED);
  await expect.poll(() => deployment.waiting()).toBe(0);
  await crm.leads.eraseLead({ studioId, leadId });
  await expect.poll(() => deployment.waiting()).toBe(0);
  expect(receiver.received.map(({ kinds }) => kinds)).toEqual([['stage_changed'], ['erased']]);
});

// @proves relay-3
describe('the endpoints file', () => {
  test('the endpoints file can have a second secret, and is reloaded when it changes', async () => {
    const deployment = await aWebhookDeployment();
    const { receiver } = deployment;
    const [former = ''] = receiver.secrets;
    const next = aWebhookSecret();
    const relay = deployment.relay();
    await deployment.createLead();
    await expect.poll(() => receiver.received.length).toBe(1);

    deployment.putEndpoints({ secrets: [former, next] });
    await relay.printed(/endpoints reloaded/);
    for (const secret of [former, next]) {
      receiver.secrets.splice(0, 1, secret);
      await deployment.createLead();
    }
    await expect.poll(() => receiver.received.length).toBe(3);
    deployment.putEndpoints({ secrets: [next], payload: 'full' });
    await relay.printed(/endpoints reloaded[\s\S]*endpoints reloaded/);
    await deployment.createLead('ada@example.org');
    await expect.poll(() => receiver.received.length).toBe(4);
    expect(receiver.unverified()).toBe(0);
    expect(JSON.parse(receiver.received[3]?.body ?? '').data.lead.contact).toEqual({ email: 'ada@example.org' });
  });

  test('an endpoint that is removed and added again resumes after its request in flight has ended', async () => {
    const deployment = await aWebhookDeployment();
    const { receiver } = deployment;
    receiver.answer = () => (receiver.received.length === 1 ? 'nothing' : 204);
    const relay = deployment.relay();
    await deployment.createLead();
    await expect.poll(() => receiver.received.length).toBe(1);
    deployment.putEndpoints('{"endpoints": {}}');
    await relay.printed(/endpoints reloaded/);
    deployment.putEndpoints();
    await expect.poll(() => deployment.waiting()).toBe(0);
    const outcomes = [...relay.output().matchAll(/"outcome":"(\w+)"/g)].map(([, outcome]) => outcome);
    expect(outcomes).toEqual(['TIMEOUT', 'DELIVERED']);
  });

  test('removing an endpoint does not disturb those whose entries stay', async () => {
    const names = ['limited', 'gone', 'busy', 'leaves', 'comes'] as const;
    const deployment = await aWebhookDeployment({ otherConsumers: names });
    const { receiver } = deployment;
    const held = Promise.withResolvers<number>();
    const received = (name: (typeof names)[number]) =>
      receiver.received.filter(({ path }) => path.endsWith(`/${name}`)).length;
    receiver.answer = ({ path }) => {
      if (path.endsWith('/limited')) return { status: 429, headers: { 'retry-after': '3600' } };
      if (path.endsWith('/gone')) return 410;
      return path.endsWith('/busy') ? held.promise : 204;
    };
    const put = (...used: (typeof names)[number][]) => {
      const entries = used.map((name) => {
        const endpoint = { allowPrivate: true, secrets: receiver.secrets, url: `${receiver.url}/${name}` };
        return [name, endpoint];
      });
      deployment.putEndpoints(JSON.stringify({ endpoints: Object.fromEntries(entries) }, undefined, used.length));
    };
    put('limited', 'gone', 'busy', 'leaves');
    const relay = deployment.relay({ RELAY_CONCURRENCY: '1', RELAY_METRICS_ADDRESS: '127.0.0.1:0' });
    for (const _ of [1, 2]) await deployment.createLead();
    await expect.poll(() => received('leaves')).toBe(2);
    await relay.printed(/the endpoint is gone/);
    await relay.printed(/the endpoint is slow/);
    const metrics = await readMetrics(relay);
    expect(metrics.get('lead_intake_relay_endpoint_state{endpoint="limited",state="slow"}')).toBe(1);
    await expect.poll(() => received('busy')).toBe(1);

    put('comes', 'busy', 'gone', 'limited');
    // By then the relay has reloaded the file, as the removed endpoint has ended.
    await expect.poll(() => received('comes')).toBe(2);
    expect([received('limited'), received('gone'), received('busy')]).toEqual([1, 1, 1]);
    held.resolve(204);
    await expect.poll(() => received('busy')).toBe(2);
    put('limited');
    await relay.printed(/endpoints reloaded[\s\S]*endpoints reloaded/);
    await deployment.createLead();
    put('limited', 'comes');
    await expect.poll(() => received('comes')).toBe(3);
    expect([received('limited'), received('gone')]).toEqual([1, 1]);
  });

  // @proves relay-10
  test('an invalid endpoints file is refused, and the former one stays in use', async () => {
    const deployment = await aWebhookDeployment();
    const { receiver } = deployment;
    const relay = deployment.relay({ RELAY_METRICS_ADDRESS: '127.0.0.1:0' });
    await relay.printed(/settings in force/);
    deployment.putEndpoints('{"endpoints": {"hooks": {"url": "http://canary.example", "secrets": ["whsec_canary"]}}}');
    await relay.printed(/endpoints not reloaded/);
    await deployment.createLead();
    await expect.poll(() => receiver.received.length).toBe(1);
    expect((await readMetrics(relay)).get('lead_intake_files_unusable{what="endpoints"}')).toBe(1);
    expect(relay.output()).not.toContain('canary');
  });
});

// @proves relay-1
describe('a relay that is killed', () => {
  test('a relay that is killed before or after the response to a request loses no change', async () => {
    const deployment = await aWebhookDeployment();
    const { receiver } = deployment;
    const leadIds: string[] = [];
    let relay = deployment.relay();
    // Each kills the relay at a request: before a 204, after a 204 but before its acknowledgement, and before a 503.
    const kills: ((relay: RunningProcess) => number | Promise<number>)[] = [
      async (killed) => {
        await killed.kill();
        return 204;
      },
      (killed) => {
        setImmediate(() => killed.child.kill('SIGKILL'));
        return 204;
      },
      (killed) => {
        killed.child.kill('SIGKILL');
        return 503;
      },
    ];
    for (const [index, kill] of kills.entries()) {
      let isKilled = false;
      receiver.answer = () => {
        if (isKilled) return 204;
        isKilled = true;
        return kill(relay);
      };
      leadIds.push(await deployment.createLead(), await deployment.createLead());
      if (index > 0) await move(deployment, leadIds[0] ?? '', [LeadStage.CONTACTED, LeadStage.WON][index - 1] ?? 0);
      expect(await relay.ended()).toBe('SIGKILL');
      relay = deployment.relay();
    }
    receiver.answer = () => 204;
    await expect.poll(() => deployment.waiting()).toBe(0);
    expect(new Set(newestReceived(deployment).keys())).toEqual(new Set(leadIds));
    expect(receiver.unverified()).toBe(0);
  });

  test('a core that is killed loses no acknowledgement of a delivery', async () => {
    const deployment = await aWebhookDeployment({ settings: {} });
    const { receiver } = deployment;
    const relay = deployment.relay();
    receiver.answer = async () => {
      await deployment.core.kill();
      return 204;
    };
    const leadIds = [await deployment.createLead()];
    await relay.printed(/a call of the core failed/);
    receiver.answer = () => 204;
    await deployment.restartCore();
    await expect.poll(() => deployment.waiting().catch(() => -1)).toBe(0);
    leadIds.push(await deployment.createLead());
    await expect.poll(() => receiver.received.map(({ leadId }) => leadId)).toEqual(leadIds);
    await deployment.core.kill();
    relay.child.kill('SIGTERM');
    expect(await relay.ended()).toBe(0);
  });
});

test('deliveries made while the core hangs are acknowledged in a few batches', async () => {
  const deployment = await aWebhookDeployment({ settings: { LOG_LEVEL: 'info' } });
  const { core, receiver } = deployment;
  const leads = 40;
  for (let each = 0; each < leads; each += 1) await deployment.createLead();
  receiver.answer = () => {
    core.child.kill('SIGSTOP');
    return 204;
  };
  deployment.relay();
  // On a busy machine some are sent again before the core continues.
  await expect.poll(() => new Set(receiver.received.map(({ leadId }) => leadId)).size).toBe(leads);
  core.child.kill('SIGCONT');
  await expect.poll(() => deployment.waiting()).toBe(0);
  expect(core.output().split('"operation":"AcknowledgeLeadChanges"').length - 1).toBeLessThan(leads / 4);
});

// @proves relay-1
test('a stopping relay completes the request in flight', async () => {
  const deployment = await aWebhookDeployment();
  const { receiver } = deployment;
  receiver.answer = async () => {
    relay.child.kill('SIGTERM');
    await sleep(500);
    return 204;
  };
  const relay = deployment.relay();
  await deployment.createLead();
  expect(await relay.ended()).toBe(0);
  expect(await deployment.waiting()).toBe(0);
  expect(receiver.received).toHaveLength(1);
});

// @proves relay-4
describe('a lead that the receiver rejects', () => {
  test('a change that the receiver rejects is retried after a delay and blocks no other lead', async () => {
    const deployment = await aWebhookDeployment();
    const { receiver, crm } = deployment;
    const [tomorrow, soon] = [await deployment.createLead(), await deployment.createLead()];
    let attempts = 0;
    receiver.answer = ({ leadId }) => {
      if (leadId === tomorrow) return { status: 500, headers: { 'retry-after': '86400' } };
      if (leadId !== soon) return 204;
      attempts += 1;
      return attempts === 1 ? 500 : 204;
    };
    deployment.relay();
    const other = await deployment.createLead();
    const requests = () => receiver.received.map(({ leadId }) => leadId).toSorted();
    await expect.poll(requests).toEqual([tomorrow, soon, soon, other].toSorted());
    // A change with a scheduled retry still counts as waiting.
    await expect.poll(() => deployment.waiting()).toBe(1);
    const listed = await crm.consumers.listSetAsideLeadChanges({ consumer: 'hooks' });
    expect(listed.leads).toMatchObject([{ leadId: tomorrow, reason: 'HTTP_500', attempts: 1 }]);
    const [{ retryTime } = {}] = listed.leads;
    expect(retryTime && timestampMs(retryTime)).toBeGreaterThan(Date.now() + 82_800_000);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(3);
  });

  test('a change is set aside at its tenth failure, logged, and sent again once it is taken back', async () => {
    const deployment = await aWebhookDeployment();
    const { receiver, crm, studioId } = deployment;
    const leadId = await deployment.createLead();
    const setAside = async (retryTime?: Date) => {
      const { changes } = await crm.leads.pullLeadChanges({ consumer: 'hooks', wait: { seconds: 10n, nanos: 0 } });
      const [{ revision = 0n } = {}] = changes;
      const retry = retryTime && { retryTime: timestampFromDate(retryTime) };
      await crm.consumers.setAsideLeadChanges({
        consumer: 'hooks',
        leads: [{ studioId, leadId, revision, reason: 'HTTP_500', ...retry }],
      });
    };
    // These calls leave the state of nine attempts of a relay, without three days of delays.
    for (let each = 0; each < 9; each += 1) await setAside(new Date(Date.now() + 10));
    receiver.answer = () => 500;
    const relay = deployment.relay({ RELAY_METRICS_ADDRESS: '127.0.0.1:0' });
    await relay.printed(/"leadId":"[^"]+","revision":"\d+","reason":"HTTP_500","msg":"lead set aside"/);
    const listed = () => crm.consumers.listSetAsideLeadChanges({ consumer: 'hooks' });
    await expect.poll(async () => (await listed()).leads).toMatchObject([{ leadId, reason: 'HTTP_500', attempts: 10 }]);
    expect((await listed()).leads[0]?.retryTime).toBeUndefined();
    const metrics = await readMetrics(relay);
    expect(metrics.get('lead_intake_relay_attempt_duration_seconds_count{endpoint="hooks",outcome="HTTP_5XX"}')).toBe(
      1,
    );

    receiver.answer = () => 204;
    await crm.consumers.takeBackLeadChanges({ consumer: 'hooks', all: true });
    await expect.poll(() => receiver.received.length).toBe(2);
    await expect.poll(() => deployment.waiting()).toBe(0);
    expect((await listed()).leads).toEqual([]);
  });
});

// @proves relay-8 bounds-125
describeIf(
  process.getuid?.() === 0 && hasCommand('unshare'),
  'a name server that never answers',
  'run as root on Linux',
  () => {
    test('endpoints whose names do not resolve block no other endpoint', async () => {
      const dead = Array.from({ length: 8 }, (_, index) => `dead-${index}`);
      const deployment = await aWebhookDeployment({ otherConsumers: dead });
      const { receiver, endpointsFile } = deployment;
      const asked = new Set<string>();
      const nameServer = createSocket('udp4', (query) => {
        for (const name of dead) if (query.includes(name)) asked.add(name);
      });
      nameServer.bind(53, '127.66.66.66');
      await once(nameServer, 'listening');
      onTestFinished(() => void nameServer.close());
      const resolvConf = join(endpointsFile, '..', 'resolv.conf');
      writeFileSync(resolvConf, 'nameserver 127.66.66.66\n');
      const { secrets } = receiver;
      const deadEndpoints = dead.map((name) => [name, { url: `https://${name}.example/`, secrets }]);
      deployment.putEndpoints(JSON.stringify({ endpoints: Object.fromEntries(deadEndpoints) }));
      const mount = `mount --bind ${resolvConf} /etc/resolv.conf && exec "$@"`;
      const relay = deployment.relay({}, ['unshare', '--mount', 'sh', '-c', mount, 'sh']);
      for (let each = 0; each < 8; each += 1) await deployment.createLead();
      await expect.poll(() => asked.size).toBe(dead.length);

      receiver.received.length = 0;
      const hooks = { url: receiver.url, secrets, allowPrivate: true };
      deployment.putEndpoints(JSON.stringify({ endpoints: { ...Object.fromEntries(deadEndpoints), hooks } }));
      await expect.poll(() => deployment.waiting()).toBe(0);
      const outcomes = [...relay.output().matchAll(/"endpoint":"hooks".*"outcome":"(\w+)"/g)].map(([, code]) => code);
      expect(outcomes).toEqual(Array(8).fill('DELIVERED'));
    });
  },
);

describe('an endpoint', () => {
  // @proves relay-7
  test('an endpoint whose certificate has an unknown authority gets no request', async () => {
    const deployment = await aWebhookDeployment();
    const relay = deployment.relay({ NODE_EXTRA_CA_CERTS: '', NODE_TLS_REJECT_UNAUTHORIZED: '0' });
    await deployment.createLead();
    await relay.printed(/"outcome":"TLS"/);
    expect(deployment.receiver.received).toEqual([]);
  });

  // @proves relay-7
  test('an endpoint is reached directly, whatever proxy the environment names', async () => {
    const deployment = await aWebhookDeployment();
    const proxy = 'http://127.0.0.1:9';
    deployment.relay({ HTTPS_PROXY: proxy, https_proxy: proxy, ALL_PROXY: proxy, NODE_USE_ENV_PROXY: '1' });
    await deployment.createLead();
    await expect.poll(() => deployment.receiver.received.length).toBe(1);
  });
});

test('doctor explains what keeps a relay from its feed', async () => {
  const deployment = await aWebhookDeployment();
  const { coreUrl, relayToken, endpointsFile } = deployment;
  await deployment.createLead();
  const env = { RELAY_CORE_ADDRESS: coreUrl, RELAY_TOKEN: relayToken, RELAY_ENDPOINTS_FILE: endpointsFile };
  expect(await wrongWith('core', 'relay', env)).toEqual([]);
  expect(await wrongWith('core', 'relay', { ...env, RELAY_TOKEN: randomUUID() })).toEqual([
    expect.stringMatching(/^fault: at \S+ gives no changes: .*unauthenticated.* Check it, and RELAY_TOKEN$/),
  ]);
  const endpoint = { url: 'https://example.org', secrets: [aWebhookSecret()] };
  deployment.putEndpoints(JSON.stringify({ endpoints: { other: endpoint } }));
  expect(await wrongWith('core', 'relay', env)).toEqual([
    expect.stringMatching(
      /^fault: has no consumer other for this caller \(.*\): create it, and name it in the callers file/,
    ),
  ]);
  // The waiting change is still there.
  expect(await deployment.waiting()).toBe(1);
  deployment.putEndpoints('[]');
  expect(await wrongWith('relay settings', 'relay', env)).toEqual([
    expect.stringMatching(/^fault: RELAY_ENDPOINTS_FILE names a file that cannot be used: .*is not an endpoints file/),
  ]);
});

// @proves secrets-5
test("the relay's log and metrics have no personal data, secret or endpoint address", async () => {
  const deployment = await aWebhookDeployment();
  const { receiver, crm, studioId, relayToken } = deployment;
  deployment.putEndpoints({ url: `${receiver.url}/canary-path?canary-query=1`, payload: 'full' });
  const relay = deployment.relay({ LOG_LEVEL: 'trace', RELAY_METRICS_ADDRESS: '127.0.0.1:0' });
  const statuses = [500, 404, 429];
  receiver.answer = () => ({ status: statuses.pop() ?? 204, headers: { 'x-canary': 'canary' } });
  const contact = { value: { case: 'email', value: 'canary@example.org' } } as const;
  await crm.leads.createLead({
    studioId,
    idempotencyKey: randomUUID(),
    displayName: 'Canary',
    contact,
    note: 'A canary',
  });
  await relay.printed(/HTTP_429/);
  const metrics = await readMetrics(relay);
  expect(receiver.received[0]?.body).toContain('canary@example.org');
  const shown = relay.output() + JSON.stringify([...metrics]);
  expect(shown).not.toMatch(/canary/i);
  for (const secret of [relayToken, ...receiver.secrets]) expect(shown).not.toContain(secret);
});
