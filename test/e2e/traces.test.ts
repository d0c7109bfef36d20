import { randomBytes, randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hashKeySecret } from '../../common/rules/key-secret.ts';
import { times } from '../support/builders.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { describeWithRedis } from '../support/servers.ts';
import { aCapture, leadOf, type Service, startService } from '../support/service.ts';

let receiver: OtlpReceiver;
beforeEach(async () => {
  receiver = await startOtlpReceiver();
});
afterEach(() => receiver.stop());

/** Starts a traced service; its spans are complete after dispose(). */
function startTraced(env: { core?: Record<string, string>; gateway?: Record<string, string> } = {}): Promise<Service> {
  const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  return startService({ core: { ...traced, ...env.core }, gateway: { ...traced, ...env.gateway } });
}

interface Tree {
  readonly [name: string]: Tree;
}

/** The tree of spans below a span, by process and name. */
function treeBelow(traceId: string, spanId: string): Tree {
  const children = receiver.spans.filter((span) => span.traceId === traceId && span.parentSpanId === spanId);
  return Object.fromEntries(
    children.map(({ service, name, spanId }) => [
      `${service.replace('lead-intake-', '')}: ${name}`,
      treeBelow(traceId, spanId),
    ]),
  );
}

/** A trace that a caller has begun, sampled or not. */
function aTrace(isSampled = true) {
  const traceId = randomBytes(16).toString('hex');
  const spanId = randomBytes(8).toString('hex');
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}` } };
}

const linkTo = (span: ReceivedSpan) => ({ traceId: span.traceId, spanId: span.spanId });

/** The spans of a name that are children of a span or linked with it. */
function spansReachedFrom(from: ReceivedSpan, name: string): ReceivedSpan[] {
  const isPart = (span: ReceivedSpan) => span.traceId === from.traceId && span.parentSpanId === from.spanId;
  const isLinked = (span: ReceivedSpan) => from.links.some((link) => isDeepStrictEqual(link, linkTo(span)));
  return receiver.spans.filter((span) => span.name === name && (isPart(span) || isLinked(span)));
}

/** The core's span of the creation in a trace. */
function creationIn(traceId: string): ReceivedSpan {
  const found = receiver.spans.filter((span) => span.traceId === traceId && span.name === 'CreateLead');
  expect(found).toHaveLength(1);
  return found[0] as ReceivedSpan;
}

/** The spans of a creation, with those of the quota and those inside the core. */
const creation = (counting: Tree, inCore: Tree): Tree => ({
  'gateway: createLead': {
    ...counting,
    'gateway: core CreateLead': { 'core: CreateLead': inCore },
  },
});

/** The additional spans of the first creation with a key. */
const keyLookUp = (inCore: Tree): Tree => ({
  'gateway: core AuthenticateApiKey': { 'core: AuthenticateApiKey': inCore },
});

describe('a trace', () => {
  test('continues from the caller through gateway and core to the store, without the content of requests', async () => {
    const service = await startTraced();
    const { secret } = await service.aStudioWithKey();
    const [first, second] = [aTrace(), aTrace()];
    const capture = aCapture({
      displayName: 'Hidden',
      note: 'hidden',
      contact: { type: 'email', value: 'hid@den.org' },
    });
    await leadOf(await service.post(secret, capture, first.headers), 201);
    await leadOf(await service.post(secret, aCapture(), second.headers), 201);
    const probes = await Promise.all(['healthz', 'readyz'].map((probe) => fetch(`${service.url}/${probe}`)));
    expect(probes.map(({ status }) => status)).toEqual([200, 200]);
    await service.dispose();
    expect(receiver.spans.filter(({ name }) => /^(healthz|readyz)$/.test(name))).toEqual([]);

    const known = creation({}, { 'core: sqlite commit': {} });
    const [root = ''] = Object.keys(known);
    expect(treeBelow(second.traceId, second.spanId)).toEqual(known);
    expect(treeBelow(first.traceId, first.spanId)).toEqual({ [root]: { ...known[root], ...keyLookUp({}) } });
    expect(receiver.text()).not.toMatch(/hidden|hid@den/i);
    expect(receiver.text()).not.toContain(secret);
  });

  test('is linked with the spans of the messages and the commit that it shares with others', async () => {
    const service = await startTraced();
    const { secret } = await service.aStudioWithKey();
    const traces = times(20, () => aTrace());
    await Promise.all(traces.map(({ headers }) => service.post(secret, aCapture(), headers)));
    await service.dispose();

    for (const { traceId, spanId } of traces) {
      const inCore = treeBelow(traceId, spanId)['gateway: createLead']?.['gateway: core CreateLead'];
      expect(Object.keys(inCore ?? {})).toEqual(['core: CreateLead']);
      expect(spansReachedFrom(creationIn(traceId), 'sqlite commit')).toHaveLength(1);
    }
  });

  test.each(['', 'nonsense', `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`, `ff-${'1'.repeat(32)}-${'1'.repeat(16)}-01`])(
    'begins at the gateway when the caller sends no valid traceparent: %j',
    async (traceparent) => {
      const service = await startTraced();
      const { secret } = await service.aStudioWithKey();
      await service.get(secret, '', { traceparent });
      await service.dispose();

      const first = receiver.spans.find(({ name }) => name === 'listLeads');
      expect(first).toMatchObject({ service: 'lead-intake-gateway', parentSpanId: '', failed: false });
      expect(Object.keys(treeBelow(first?.traceId ?? '', first?.spanId ?? ''))).toContain('gateway: core ListLeads');
    },
  );

  test('shows where a request failed', async () => {
    const service = await startTraced();
    const { secret } = await service.aStudioWithKey();
    await service.stopCore();
    const { traceId, headers } = aTrace();
    expect((await service.get(secret, '', headers)).status).toBe(503);
    await service.startCore();
    await service.dispose();

    const failed = receiver.spans.filter((span) => span.traceId === traceId && span.failed).map(({ name }) => name);
    expect(failed.sort()).toEqual(['core AuthenticateApiKey', 'listLeads']);
  });

  test('that cannot be exported affects no request, and delays the stop by less than 8 s', async () => {
    await receiver.stop();
    const service = await startTraced();
    const { secret } = await service.aStudioWithKey();

    await leadOf(await service.post(secret, aCapture()), 201);
    const began = performance.now();
    await service.dispose();

    expect(performance.now() - began).toBeLessThan(8000);
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

/** The one span of a name in any of the traces. */
function onlySpan(name: string, traces: readonly { readonly traceId: string }[]): ReceivedSpan {
  const found = receiver.spans.filter(
    (span) => span.name === name && traces.some(({ traceId }) => traceId === span.traceId),
  );
  expect(found).toHaveLength(1);
  return found[0] as ReceivedSpan;
}

/** Expects a span to be a child of the first call, and links in both directions with each of the others. */
function expectShared(shared: ReceivedSpan, [first, ...others]: readonly ReceivedSpan[]): void {
  expect(shared).toMatchObject({ traceId: first?.traceId, parentSpanId: first?.spanId });
  expect(shared.links).toEqual(others.map(linkTo));
  expect(first?.links).not.toContainEqual(linkTo(shared));
  for (const other of others) expect(other.links).toContainEqual(linkTo(shared));
}

describe('a span that several requests share', () => {
  test('is in the trace of the first, linked with all others', async () => {
    const service = await startTraced();
    const { secret } = await service.aStudioWithKey();
    const traces = times(5, () => aTrace());
    await createTogether(service, secret, traces);
    await service.dispose();

    const calls = traces.map(({ traceId }) => creationIn(traceId));
    expectShared(onlySpan('authenticate', traces), calls);
    expectShared(onlySpan('sqlite commit', traces), calls);
  });

  test('is in the first sampled trace, and not in one that its caller does not sample', async () => {
    const service = await startTraced();
    const { secret } = await service.aStudioWithKey();
    const unsampled = aTrace(false);
    const sampled = [aTrace(), aTrace()];
    await createTogether(service, secret, [unsampled, ...sampled]);
    await service.dispose();

    expect(receiver.spans.filter(({ traceId }) => traceId === unsampled.traceId)).toEqual([]);
    expect(receiver.spans.flatMap(({ links }) => links).map(({ traceId }) => traceId)).not.toContain(unsampled.traceId);
    const calls = sampled.map(({ traceId }) => creationIn(traceId));
    expectShared(onlySpan('authenticate', sampled), calls);
    expectShared(onlySpan('sqlite commit', sampled), calls);
  });

  test('is an ordinary child when only one trace is sampled', async () => {
    const service = await startTraced();
    const { secret } = await service.aStudioWithKey();
    const sampled = aTrace();
    await createTogether(service, secret, [aTrace(false), sampled]);
    await service.dispose();

    expect(treeBelow(sampled.traceId, sampled.spanId)).toEqual({ 'core: CreateLead': { 'core: sqlite commit': {} } });
    expect(receiver.spans.flatMap(({ links }) => links)).toEqual([]);
  });
});

describeWithMongo('a trace on MongoDB', (mongoUrl) => {
  const aDatabase = () => new URL(`/test-${randomUUID()}`, mongoUrl()).href;

  test('has one span of what several requests share, linked with each', async () => {
    const service = await startTraced({ core: { DATABASE_URL: aDatabase() } });
    const { secret } = await service.aStudioWithKey();
    const traces = times(5, () => aTrace());
    await createTogether(service, secret, traces);
    await service.dispose();

    const calls = traces.map(({ traceId }) => creationIn(traceId));
    expectShared(onlySpan('mongodb insert', traces), calls);
    const authentication = onlySpan('authenticate', traces);
    expectShared(authentication, calls);
    // Its children are the reads of the key and of the studio.
    expect(spansReachedFrom(authentication, 'mongodb find')).toHaveLength(2);
    for (const call of calls) expect(spansReachedFrom(call, 'mongodb find')).toEqual([]);
  });

  describeWithRedis('and Redis', (redisUrl) => {
    test('continues into both', async () => {
      const service = await startTraced({
        core: { DATABASE_URL: aDatabase() },
        gateway: { REDIS_URL: redisUrl() },
      });
      const { secret } = await service.aStudioWithKey();
      const traces = times(5, () => aTrace());
      await Promise.all(
        traces.map(async ({ headers }) => leadOf(await service.post(secret, aCapture(), headers), 201)),
      );
      const alone = aTrace();
      await leadOf(await service.post(secret, aCapture(), alone.headers), 201);
      const read = aTrace();
      expect((await service.get(secret, '', read.headers)).status).toBe(200);
      await service.dispose();

      const write = { 'core: mongodb find': {}, 'core: mongodb insert': {} };
      expect(treeBelow(alone.traceId, alone.spanId)).toEqual(creation({ 'gateway: redis consume': {} }, write));
      expect(treeBelow(read.traceId, read.spanId)).toEqual({
        'gateway: listLeads': {
          'gateway: redis consume': {},
          'gateway: core ListLeads': { 'core: ListLeads': { 'core: mongodb find': {} } },
        },
      });
      for (const { traceId } of traces) {
        expect(spansReachedFrom(creationIn(traceId), 'mongodb insert')).toHaveLength(1);
      }
    });
  });
});
