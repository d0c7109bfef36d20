import { type AddressInfo, createServer, type Socket } from 'node:net';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createOtlpTracer } from '../../common/otlp-tracer.ts';
import type { Tracer } from '../../common/tracing.ts';
import { heapBytes } from '../support/heap.ts';
import { type ReceivedSpan, startOtlpReceiver } from '../support/otlp-receiver.ts';

const SILENT = pino({ level: 'silent' });

/** The number of spans, and the minimum memory of a queued span; bytes. */
const SPANS = 100_000;
const SPAN_BYTES = 500;

// @proves bounds-32
test('a receiver that reads nothing costs no more memory than the bounded queue of spans', async () => {
  const sockets: Socket[] = [];
  const receiver = createServer((socket) => sockets.push(socket.pause()));
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const tracer = createOtlpTracer('test', `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`, SILENT);
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    receiver.close();
    await tracer.close();
  });
  const before = heapBytes();
  for (let index = 0; index < SPANS; index += 1) {
    tracer.begin('createLead', undefined).end({ failed: false, attributes: { requestId: `${index}` } });
    if (index % 1000 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  expect(heapBytes() - before).toBeLessThan((SPANS * SPAN_BYTES) / 3);
});

/** Returns the spans that a receiver gets. */
async function received(
  work: (tracer: Tracer) => void,
  ...sampling: Parameters<typeof createOtlpTracer>[3][]
): Promise<readonly ReceivedSpan[]> {
  const receiver = await startOtlpReceiver();
  onTestFinished(() => receiver.stop());
  const tracer = createOtlpTracer('test', receiver.url, SILENT, ...sampling);
  work(tracer);
  await tracer.close();
  return receiver.spans;
}

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const SPAN_ID = 'b7ad6b7169203331';
const SUCCESS = { failed: false };

describe('a traceparent', () => {
  test.each([
    ['of version 00', `00-${TRACE_ID}-${SPAN_ID}-01`],
    ['of a later version with more fields', `cc-${TRACE_ID}-${SPAN_ID}-01-what-the-future-will-be-like`],
  ])('a traceparent %s is continued as version 00', async (_, traceparent) => {
    let continued = '';
    const [span] = await received((tracer) => {
      const begun = tracer.begin('listLeads', traceparent);
      continued = begun.traceparent;
      begun.end(SUCCESS);
    });
    expect(span).toMatchObject({ traceId: TRACE_ID, parentSpanId: SPAN_ID });
    expect(continued).toBe(`00-${TRACE_ID}-${span?.spanId}-01`);
  });

  test.each([
    undefined,
    '',
    `00-${TRACE_ID}-${SPAN_ID}`,
    `00-${TRACE_ID.toUpperCase()}-${SPAN_ID}-01`,
    `00-${'0'.repeat(32)}-${SPAN_ID}-01`,
    `00-${'0'.repeat(32)}-${SPAN_ID}-00`,
    `00-${TRACE_ID}-${'0'.repeat(16)}-00`,
    `ff-${TRACE_ID}-${SPAN_ID}-01`,
    `00-${TRACE_ID}-${SPAN_ID}-01\n${TRACE_ID}`,
  ])('an invalid traceparent starts a new trace: %j', async (traceparent) => {
    const [span] = await received((tracer) => tracer.begin('listLeads', traceparent).end(SUCCESS));
    expect(span?.parentSpanId).toBe('');
    expect(span?.traceId).toMatch(/^[\da-f]{32}$/);
    expect(span?.traceId).not.toBe(TRACE_ID);
  });

  test('an unsampled traceparent is passed on as unsampled, and no span is sent', async () => {
    const passedOn: string[] = [];
    const spans = await received((tracer) => {
      const span = tracer.begin('listLeads', `00-${TRACE_ID}-${SPAN_ID}-00`);
      const part = span.child('core ListLeads', {});
      passedOn.push(part.traceparent);
      part.end(SUCCESS);
      span.end(SUCCESS);
    });
    expect(passedOn).toEqual([expect.stringMatching(new RegExp(`^00-${TRACE_ID}-[\\da-f]{16}-00$`))]);
    expect(spans).toEqual([]);
  });
});

describe('a sampler', () => {
  const parents = {
    none: undefined,
    sampled: `00-${TRACE_ID}-${SPAN_ID}-01`,
    unsampled: `00-${TRACE_ID}-${SPAN_ID}-00`,
  };

  /** Each sampler and ratio, with the parents whose traces are sent. */
  test.each([
    ['always_on', 1, ['none', 'sampled', 'unsampled']],
    ['always_off', 1, []],
    ['traceidratio', 0, []],
    ['parentbased_traceidratio', 1, ['none', 'sampled']],
    ['parentbased_traceidratio', 0, ['sampled']],
  ] as const)('the sampler %s of %d sends the traces that OpenTelemetry specifies', async (name, ratio, sent) => {
    const spans = await received(
      (tracer) => {
        for (const [parent, traceparent] of Object.entries(parents)) {
          const span = tracer.begin(parent, traceparent);
          span.child(`part of ${parent}`, {}).end(SUCCESS);
          span.end(SUCCESS);
        }
      },
      [name, ratio],
    );
    const all = sent.flatMap((parent) => [parent, `part of ${parent}`]);
    expect(spans.map((span) => span.name).toSorted()).toEqual(all.toSorted());
  });
});

test('the environment may set the service name and resource attributes', async () => {
  const env = { OTEL_SERVICE_NAME: 'leads-in-berlin', OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=staging' };
  Object.assign(process.env, env);
  onTestFinished(() => {
    for (const name of Object.keys(env)) delete process.env[name];
  });
  const spans = await received((tracer) => tracer.begin('listLeads', undefined).end(SUCCESS));

  expect(spans.map(({ service }) => service)).toEqual(['leads-in-berlin']);
});
