import {
  type Context,
  isSpanContextValid,
  type Span as OtlpSpan,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { TRACES_CLOSE_MS } from './deadlines.ts';
import type { Attributes, Span, Tracer } from './tracing.ts';

/** How long the receiver may take for a message; milliseconds. */
const EXPORT_TIMEOUT_MS = 5000;

/** How many spans that are over wait to be sent at most; further ones are dropped. */
const MOST_SPANS = 2048;

/** A tracer that sends its spans by OTLP over HTTP. A receiver that is away costs spans and nothing else. */
export function createOtlpTracer(processName: string, endpoint: string): Tracer {
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces`, timeoutMillis: EXPORT_TIMEOUT_MS });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': `lead-intake-${processName}` }),
    spanProcessors: [new BatchSpanProcessor({ exporter, maxQueueSize: MOST_SPANS })],
  });
  const tracer = provider.getTracer('lead-intake');

  const start = (name: string, kind: SpanKind, parent: Context, attributes: Attributes = {}): Span => {
    const span = tracer.startSpan(name, { kind, attributes: known(attributes) }, parent);
    return {
      traceparent: traceparentOf(span),
      child: (part, more) => start(part, SpanKind.CLIENT, trace.setSpan(ROOT_CONTEXT, span), more),
      end({ failed, attributes: more = {} }) {
        span.setAttributes(known(more));
        if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      },
    };
  };

  return {
    begin: (name, traceparent) => start(name, SpanKind.SERVER, parentOf(traceparent)),
    async close() {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, TRACES_CLOSE_MS);
      });
      await Promise.race([provider.shutdown().catch(() => {}), late]);
      clearTimeout(timer);
    },
  };
}

function traceparentOf(span: OtlpSpan): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** Version 00 of W3C Trace Context, and what later versions must begin with. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:$|-)/;

function parentOf(traceparent: string | undefined): Context {
  const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  const parent = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
  return isSpanContextValid(parent) ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT;
}

const known = (attributes: Attributes) =>
  Object.fromEntries(Object.entries(attributes).filter((attribute) => attribute[1] !== undefined)) as Record<
    string,
    string | number | boolean
  >;
