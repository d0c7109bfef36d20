import { randomBytes, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { describeWithMongo } from '../support/mongodb.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../support/otlp-receiver.ts';
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

/** A trace that a caller has begun. */
function aTrace() {
  const traceId = randomBytes(16).toString('hex');
  const spanId = randomBytes(8).toString('hex');
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-01` } };
}

/** What a creation leaves behind, where it is counted like this and leaves that in the core. */
const creation = (quota: string, inCore: Tree): Tree => ({
  'gateway: createLead': {
    [`gateway: ${quota} consume`]: {},
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

    const known = creation('memory', { 'core: sqlite commit': {} });
    const [root = ''] = Object.keys(known);
    expect(treeBelow(second.traceId, second.spanId)).toEqual(known);
    expect(treeBelow(first.traceId, first.spanId)).toEqual({ [root]: { ...known[root], ...keyLookUp({}) } });
    expect(receiver.text()).not.toMatch(/hidden|hid@den/i);
    expect(receiver.text()).not.toContain(secret);
  });

  test('is whole for each of many that share messages and a commit', async () => {
    const service = await startTraced();
    const { secret } = await service.aStudioWithKey();
    const traces = Array.from({ length: 20 }, aTrace);
    await Promise.all(traces.map(({ headers }) => service.post(secret, aCapture(), headers)));
    await service.dispose();

    for (const { traceId, spanId } of traces) {
      // Whoever asks for one key in one turn shares the answer, and with it what the core did for it.
      expect(treeBelow(traceId, spanId)['gateway: createLead']?.['gateway: core CreateLead']).toEqual({
        'core: CreateLead': { 'core: sqlite commit': {} },
      });
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

describeWithMongo('a trace on MongoDB', (mongoUrl) => {
  describeWithRedis('and Redis', (redisUrl) => {
    test('goes on into both', async () => {
      const service = await startTraced({
        core: { DATABASE_URL: new URL(`/test-${randomUUID()}`, mongoUrl()).href },
        gateway: { REDIS_URL: redisUrl() },
      });
      const { secret } = await service.aStudioWithKey();
      const traces = Array.from({ length: 5 }, aTrace);
      await Promise.all(
        traces.map(async ({ headers }) => leadOf(await service.post(secret, aCapture(), headers), 201)),
      );
      const alone = aTrace();
      await leadOf(await service.post(secret, aCapture(), alone.headers), 201);
      const read = aTrace();
      expect((await service.get(secret, '', read.headers)).status).toBe(200);
      await service.dispose();

      const write = { 'core: mongodb find': {}, 'core: mongodb insert': {} };
      expect(treeBelow(alone.traceId, alone.spanId)).toEqual(creation('redis', write));
      expect(treeBelow(read.traceId, read.spanId)).toEqual({
        'gateway: listLeads': {
          'gateway: redis consume': {},
          'gateway: core ListLeads': { 'core: ListLeads': { 'core: mongodb find': {} } },
        },
      });
      for (const { traceId, spanId } of traces) {
        expect(treeBelow(traceId, spanId)['gateway: createLead']?.['gateway: core CreateLead']).toEqual({
          'core: CreateLead': write,
        });
      }
    });
  });
});
