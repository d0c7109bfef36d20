import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Context,
  defaultTextMapGetter,
  type Tracer as OtelTracer,
  type Span as OtlpSpan,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import { TRACES_CLOSE_MS } from './deadlines.ts';
import { errorSummary } from './error-summary.ts';
import type { Span, Tracer } from './tracing.ts';

/** Timeout of an export request; milliseconds. */
const EXPORT_TIMEOUT_MS = 5000;

/** The maximum number of ended spans that wait to be sent. Further ones are dropped. */
const MAX_SPANS = 2048;

const NOT_ACCEPTED = 'spans are dropped: their receiver does not accept them. Check OTEL_EXPORTER_OTLP_ENDPOINT';

const { NOT_RECORD } = SamplingDecision;

const W3C = new W3CTraceContextPropagator();

/** A `traceparent` of version 00. Reading it here takes a tenth of the library's time. */
const VERSION_00 = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** The name of a sampler, as in OTEL_TRACES_SAMPLER, and the ratio for samplers that take one. */
type Sampling = readonly [name: string, ratio: number];

/**
 * Creates a tracer that sends spans by OTLP over HTTP. An unavailable receiver costs only spans. The environment may set attributes of the
 * process, including its name (OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME).
 */
export function createOtlpTracer(
  processName: string,
  endpoint: string,
  log: Logger,
  sampling: Sampling = ['parentbased_always_on', 1],
): Tracer {
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces`, timeoutMillis: EXPORT_TIMEOUT_MS });
  const spans = new CountedSpans(exporter, log);
  const sampler = createSampler(sampling);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': `lead-intake-${processName}` }).merge(
      detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] }),
    ),
    sampler,
    spanProcessors: [spans],
  });
  const tracer = provider.getTracer('lead-intake');
  return {
    begin(name, traceparent = '') {
      const kind = SpanKind.SERVER;
      const context = parseTraceparent(traceparent);
      const caller = trace.getSpanContext(context);
      // Asking the sampler takes less time than beginning a span that is not sent.
      if (caller && sampler.shouldSample(context, caller.traceId, name, kind, {}, []).decision === NOT_RECORD) {
        return unsentSpan({ ...caller, traceFlags: TraceFlags.NONE });
      }
      const span = tracer.startSpan(name, { kind }, context);
      return span.isRecording() ? sentSpan(tracer, span) : unsentSpan(span.spanContext());
    },
    dropped: () => spans.dropped,
    async close() {
      const timeout = sleep(TRACES_CLOSE_MS, undefined, { ref: false });
      await Promise.race([provider.shutdown().catch(() => {}), timeout]);
    },
  };
}

function createSampler([name, ratio]: Sampling): Sampler {
  const root = name.endsWith('always_off')
    ? new AlwaysOffSampler()
    : name.endsWith('always_on')
      ? new AlwaysOnSampler()
      : new TraceIdRatioBasedSampler(ratio);
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}

/** Sends spans in batches, and counts spans that the receiver did not accept. */
class CountedSpans implements SpanProcessor {
  dropped = 0;
  readonly #batches: SpanProcessor;
  /** Ended spans that were neither delivered nor dropped yet. */
  #unsent = 0;
  #reported = 0;
  #isRefused = false;

  constructor(exporter: SpanExporter, log: Logger) {
    this.#batches = new BatchSpanProcessor({
      maxQueueSize: MAX_SPANS,
      exporter: {
        export: (spans, done) =>
          exporter.export(spans, (result) => {
            this.#unsent -= spans.length;
            if (result.code === ExportResultCode.SUCCESS) this.#reportDropped(log);
            else {
              this.dropped += spans.length;
              // A receiver that is only down accepts spans again. A wrong address never does.
              if (!this.#isRefused) log.warn({ reason: errorSummary(result.error) }, NOT_ACCEPTED);
            }
            this.#isRefused = result.code !== ExportResultCode.SUCCESS;
            done(result);
          }),
        shutdown: () => exporter.shutdown(),
      },
    });
  }

  onStart(): void {}

  onEnd(span: Parameters<SpanProcessor['onEnd']>[0]): void {
    if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) return;
    if (this.#unsent >= MAX_SPANS) {
      this.dropped += 1;
      return;
    }
    this.#unsent += 1;
    this.#batches.onEnd(span);
  }

  forceFlush = (): Promise<void> => this.#batches.forceFlush();
  shutdown = (): Promise<void> => this.#batches.shutdown();

  #reportDropped(log: Logger): void {
    const dropped = this.dropped - this.#reported;
    this.#reported = this.dropped;
    if (dropped > 0) log.warn({ dropped }, 'spans dropped: their receiver did not accept them, and does again');
  }
}

function sentSpan(tracer: OtelTracer, span: OtlpSpan): Span {
  const context = span.spanContext();
  return {
    traceparent: formatTraceparent(context),
    traceId: context.traceId,
    isSent: true,
    child(name, attributes) {
      const options = { kind: SpanKind.CLIENT, attributes };
      return sentSpan(tracer, tracer.startSpan(name, options, trace.setSpan(ROOT_CONTEXT, span)));
    },
    end({ failed, attributes = {} }) {
      span.setAttributes(attributes);
      if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    },
  };
}

/** Returns a span of a trace that is not sampled. Other processes must know that, and logs need its id. */
function unsentSpan(context: SpanContext): Span {
  const span: Span = {
    traceparent: formatTraceparent(context),
    traceId: context.traceId,
    isSent: false,
    child: () => span,
    end() {},
  };
  return span;
}

const formatTraceparent = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-0${traceFlags & TraceFlags.SAMPLED}`;

function parseTraceparent(traceparent: string): Context {
  if (traceparent === '') return ROOT_CONTEXT;
  const [, traceId, spanId, flags = ''] = VERSION_00.exec(traceparent) ?? [];
  return traceId && spanId
    ? trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true })
    : W3C.extract(ROOT_CONTEXT, { traceparent }, defaultTextMapGetter);
}
