import { randomBytes, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hashKeySecret } from '../../common/rules/key-secret.ts';
import { times } from '../support/builders.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { aCapture, readLead, type Service, startService } from '../support/service.ts';
import { describeWithRedis } from '../tools/servers.ts';

let receiver: OtlpReceiver;
beforeEach(async () => {
  receiver = await startOtlpReceiver();
});
afterEach(() => receiver.stop());

/** Starts a traced service. The receiver has all of its spans after dispose(). */
function startTraced(env: { core?: Record<string, string>; gateway?: Record<string, string> } = {}): Promise<Service> {
  const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  return startService({ core: { ...traced, ...env.core }, gateway: { ...traced, ...env.gateway } });
}

interface Tree {
  readonly [name: string]: Tree;
}

/** Returns the tree of spans below a span, by process and name. */
function treeBelow(traceId: string, spanId: string): Tree {
  const children = receiver.spans.filter((span) => span.traceId === traceId && span.parentSpanId === spanId);
  return Object.fromEntries(
    children.map(({ service, name, spanId }) => [
      `${service.replace('lead-intake-', '')}: ${name}`,
      treeBelow(traceId, spanId),
    ]),
  );
}

/** Returns a trace that a caller has begun, and the header that continues it. */
function aTrace(isSampled = true) {
  const traceId = randomBytes(16).toString('hex');
  const spanId = randomBytes(8).toString('hex');
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}` } };
}

/** Returns the spans of a creation. @param counting the spans of the quota */
const creation = (counting: Tree): Tree => ({
  'gateway: createLead': { ...counting, 'gateway: core CreateLead': { 'core: CreateLead': {} } },
});

/** The additional spans of the first creation with a key. */
const KEY_LOOK_UP: Tree = { 'gateway: core AuthenticateApiKey': { 'core: AuthenticateApiKey': {} } };

describe('a trace', () => {
  test('a trace continues from the caller through gateway and core, without request contents', async () => {
    const service = await startTraced();
    const { secret } = await service.aStudioWithKey();
    const [first, second] = [aTrace(), aTrace()];
    const capture = aCapture({
      displayName: 'Hidden',
      note: 'hidden',
      contact: { type: 'email', value: 'hid@den.org' },
    });
    await readLead(await service.post(secret, capture, first.headers), 201);
    await readLead(await service.post(secret, aCapture(), second.headers), 201);
    const probes = await Promise.all(['healthz', 'readyz'].map((probe) => fetch(`${service.url}/${probe}`)));
    expect(probes.map(({ status }) => status)).toEqual([200, 200]);
    await service.dispose();
    expect(receiver.spans.filter(({ name }) => /^(healthz|readyz)$/.test(name))).toEqual([]);

    const known = creation({});
    const [root = ''] = Object.keys(known);
    expect(treeBelow(second.traceId, second.spanId)).toEqual(known);
    expect(treeBelow(first.traceId, first.spanId)).toEqual({ [root]: { ...known[root], ...KEY_LOOK_UP } });
    expect(receiver.text()).not.toMatch(/hidden|hid@den/i);
    expect(receiver.text()).not.toContain(secret);
  });
});

/** Creates a lead for each of the traces, all in one message and with one key. */
async function createTogether(service: Service, secret: string, traces: readonly ReturnType<typeof aTrace>[]) {
  const contact = () => ({ value: { case: 'email' as const, value: `${randomUUID()}@example.org` } });
  const creation = () => ({ idempotencyKey: randomUUID(), displayName: 'Ada', contact: contact() });
  const items = traces.map(({ headers: { traceparent } }) => ({
    traceparent,
    secretSha256: hashKeySecret(secret),
    request: { case: 'createLead' as const, value: creation() },
  }));
  const cases: unknown[] = [];
  const answers = service.exchange.exchange(
    (async function* () {
      yield { items };
    })(),
  );
  for await (const { results } of answers) cases.push(...results.map(({ outcome }) => outcome.case));
  expect(cases).toEqual(traces.map(() => 'body'));
}

test('each item of a message has a span in its own trace, if that is sampled', async () => {
  const service = await startTraced();
  const { secret } = await service.aStudioWithKey();
  const unsampled = aTrace(false);
  const sampled = times(5, () => aTrace());
  await createTogether(service, secret, [unsampled, ...sampled]);
  await service.dispose();

  expect(receiver.spans.filter(({ traceId }) => traceId === unsampled.traceId)).toEqual([]);
  for (const { traceId, spanId } of sampled) {
    expect(treeBelow(traceId, spanId)).toEqual({ 'core: CreateLead': {} });
  }
});

describeWithRedis('a trace with Redis', (redisUrl) => {
  test('a trace has the spans of the quota in Redis', async () => {
    const service = await startTraced({ gateway: { REDIS_URL: redisUrl() } });
    const { secret } = await service.aStudioWithKey();
    await readLead(await service.post(secret, aCapture()), 201);
    const created = aTrace();
    await readLead(await service.post(secret, aCapture(), created.headers), 201);
    const read = aTrace();
    expect((await service.get(secret, '', read.headers)).status).toBe(200);
    await service.dispose();

    expect(treeBelow(created.traceId, created.spanId)).toEqual(creation({ 'gateway: redis consume': {} }));
    expect(treeBelow(read.traceId, read.spanId)).toEqual({
      'gateway: listLeads': {
        'gateway: redis consume': {},
        'gateway: core ListLeads': { 'core: ListLeads': {} },
      },
    });
  });
});
