import { randomBytes, randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hashKeySecret } from '../../common/rules/key-secret.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { describeWithRedis } from '../support/servers.ts';
import { aCapture, leadOf, type Service, startService } from '../support/service.ts';

let receiver: OtlpReceiver;
beforeEach(async () => {
  receiver = await startOtlpReceiver();
});
afterEach(() => receiver.stop());

/** Starts a service that is traced; its spans are there once it is disposed of. */
function startTraced(env: { core?: Record<string, string>; gateway?: Record<string, string> } = {}): Promise<Service> {
  const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  return startService({ core: { ...traced, ...env.core }, gateway: { ...traced, ...env.gateway } });
}

interface Tree {
  readonly [name: string]: Tree;
}

/** What hangs below a span, by process and name. */
function treeBelow(traceId: string, spanId: string): Tree {
  const children = receiver.spans.filter((span) => span.traceId === traceId && span.parentSpanId === spanId);
  return Object.fromEntries(
    children.map(({ service, name, spanId }) => [
      `${service.replace('lead-intake-', '')}: ${name}`,
      treeBelow(traceId, spanId),
    ]),
  );
}

/** A trace that a caller has begun, and wants to be kept or not. */
function aTrace(isKept = true) {
  const traceId = randomBytes(16).toString('hex');
  const spanId = randomBytes(8).toString('hex');
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-${isKept ? '01' : '00'}` } };
}

const namedBy = (span: ReceivedSpan) => ({ traceId: span.traceId, spanId: span.spanId });

/** The spans of a name that a span leads to: its own parts, and what it is linked with. */
function reachedFrom(from: ReceivedSpan, name: string): ReceivedSpan[] {
  const isPart = (span: ReceivedSpan) => span.traceId === from.traceId && span.parentSpanId === from.spanId;
  const isLinked = (span: ReceivedSpan) => from.links.some((link) => isDeepStrictEqual(link, namedBy(span)));
  return receiver.spans.filter((span) => span.name === name && (isPart(span) || isLinked(span)));
}

/** What the core did for the creation in a trace. */
function creationIn(traceId: string): ReceivedSpan {
  const found = receiver.spans.filter((span) => span.traceId === traceId && span.name === 'CreateLead');
  expect(found).toHaveLength(1);
  return found[0] as ReceivedSpan;
}

/** What a creation leaves behind, where counting it leaves this and it leaves that in the core. */
const creation = (counting: Tree, inCore: Tree): Tree => ({
  'gateway: createLead': {
    ...counting,
    'gateway: core CreateLead': { 'core: CreateLead': inCore },
  },
});

/** What the first creation with a key leaves behind besides. */
const keyLookUp = (inCore: Tree): Tree => ({
  'gateway: core AuthenticateApiKey': { 'core: AuthenticateApiKey': inCore },
});

describe('a trace', () => {
  test('goes on from the caller through gateway and core to the store, and says nothing of what was sent', async () => {
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
    await service.dispose();

    const known = creation({}, { 'core: sqlite commit': {} });
    const [root = ''] = Object.keys(known);
    expect(treeBelow(second.traceId, second.spanId)).toEqual(known);
    expect(treeBelow(first.traceId, first.spanId)).toEqual({ [root]: { ...known[root], ...keyLookUp({}) } });
    expect(receiver.text()).not.toMatch(/hidden|hid@den/i);
    expect(receiver.text()).not.toContain(secret);
  });

  test('leads to what it shares with others, of many that share messages and a commit', async () => {
    const service = await startTraced();
    const { secret } = await service.aStudioWithKey();
    const traces = Array.from({ length: 20 }, () => aTrace());
    await Promise.all(traces.map(({ headers }) => service.post(secret, aCapture(), headers)));
    await service.dispose();

    for (const { traceId, spanId } of traces) {
      const inCore = treeBelow(traceId, spanId)['gateway: createLead']?.['gateway: core CreateLead'];
      expect(Object.keys(inCore ?? {})).toEqual(['core: CreateLead']);
      expect(reachedFrom(creationIn(traceId), 'sqlite commit')).toHaveLength(1);
    }
  });

  test.each(['', 'nonsense', `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`, `ff-${'1'.repeat(32)}-${'1'.repeat(16)}-01`])(
    'begins at the gateway when the caller sends none that can be read: %j',
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

  test('tells where a request failed', async () => {
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

  test('that nobody takes costs nothing but the trace', async () => {
    await receiver.stop();
    const service = await startTraced();
    const { secret } = await service.aStudioWithKey();

    await leadOf(await service.post(secret, aCapture()), 201);
    const began = performance.now();
    await service.dispose();

    expect(performance.now() - began).toBeLessThan(8000);
  });
});

/** Has the core create a lead for each of the traces, all in one message and with one key. */
async function createTogether(service: Service, secret: string, traces: readonly ReturnType<typeof aTrace>[]) {
  const message = {
    requests: traces.map(() => ({
      idempotencyKey: randomUUID(),
      displayName: 'Ada',
      contact: { value: { case: 'email' as const, value: `${randomUUID()}@example.org` } },
    })),
    secretSha256s: traces.map(() => hashKeySecret(secret)),
    traceparents: traces.map(({ headers }) => headers.traceparent),
  };
  const cases: unknown[] = [];
  const answers = service.leads.batchCreateLeads(
    (async function* () {
      yield message;
    })(),
  );
  for await (const { results } of answers) cases.push(...results.map(({ outcome }) => outcome.case));
  expect(cases).toEqual(traces.map(() => 'response'));
}

/** The one span of a name in any of the traces. */
function theOne(name: string, traces: readonly { readonly traceId: string }[]): ReceivedSpan {
  const found = receiver.spans.filter(
    (span) => span.name === name && traces.some(({ traceId }) => traceId === span.traceId),
  );
  expect(found).toHaveLength(1);
  return found[0] as ReceivedSpan;
}

/** Expects it to be a part of the first call, and linked with each of the others, and these with it. */
function expectShared(shared: ReceivedSpan, [first, ...others]: readonly ReceivedSpan[]): void {
  expect(shared).toMatchObject({ traceId: first?.traceId, parentSpanId: first?.spanId });
  expect(shared.links).toEqual(others.map(namedBy));
  expect(first?.links).not.toContainEqual(namedBy(shared));
  for (const other of others) expect(other.links).toContainEqual(namedBy(shared));
}

describe('what several requests share', () => {
  test('stands once: in the trace of the first, linked with all others', async () => {
    const service = await startTraced();
    const { secret } = await service.aStudioWithKey();
    const traces = Array.from({ length: 5 }, () => aTrace());
    await createTogether(service, secret, traces);
    await service.dispose();

    const calls = traces.map(({ traceId }) => creationIn(traceId));
    expectShared(theOne('authenticate', traces), calls);
    expectShared(theOne('sqlite commit', traces), calls);
  });

  test('is in no trace that its caller does not want kept, and in the next one instead', async () => {
    const service = await startTraced();
    const { secret } = await service.aStudioWithKey();
    const unwanted = aTrace(false);
    const wanted = [aTrace(), aTrace()];
    await createTogether(service, secret, [unwanted, ...wanted]);
    await service.dispose();

    expect(receiver.spans.filter(({ traceId }) => traceId === unwanted.traceId)).toEqual([]);
    expect(receiver.spans.flatMap(({ links }) => links).map(({ traceId }) => traceId)).not.toContain(unwanted.traceId);
    const calls = wanted.map(({ traceId }) => creationIn(traceId));
    expectShared(theOne('authenticate', wanted), calls);
    expectShared(theOne('sqlite commit', wanted), calls);
  });

  test('is an ordinary part of the only one whose trace is kept', async () => {
    const service = await startTraced();
    const { secret } = await service.aStudioWithKey();
    const wanted = aTrace();
    await createTogether(service, secret, [aTrace(false), wanted]);
    await service.dispose();

    expect(treeBelow(wanted.traceId, wanted.spanId)).toEqual({ 'core: CreateLead': { 'core: sqlite commit': {} } });
    expect(receiver.spans.flatMap(({ links }) => links)).toEqual([]);
  });
});

describeWithMongo('a trace on MongoDB', (mongoUrl) => {
  const aDatabase = () => new URL(`/test-${randomUUID()}`, mongoUrl()).href;

  test('has what several requests share once, linked with each', async () => {
    const service = await startTraced({ core: { DATABASE_URL: aDatabase() } });
    const { secret } = await service.aStudioWithKey();
    const traces = Array.from({ length: 5 }, () => aTrace());
    await createTogether(service, secret, traces);
    await service.dispose();

    const calls = traces.map(({ traceId }) => creationIn(traceId));
    expectShared(theOne('mongodb insert', traces), calls);
    const authentication = theOne('authenticate', traces);
    expectShared(authentication, calls);
    // What is read for it is its own part: of the key, and of the studio.
    expect(reachedFrom(authentication, 'mongodb find')).toHaveLength(2);
    for (const call of calls) expect(reachedFrom(call, 'mongodb find')).toEqual([]);
  });

  describeWithRedis('and Redis', (redisUrl) => {
    test('goes on into both', async () => {
      const service = await startTraced({
        core: { DATABASE_URL: aDatabase() },
        gateway: { REDIS_URL: redisUrl() },
      });
      const { secret } = await service.aStudioWithKey();
      const traces = Array.from({ length: 5 }, () => aTrace());
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
        expect(reachedFrom(creationIn(traceId), 'mongodb insert')).toHaveLength(1);
      }
    });
  });
});
