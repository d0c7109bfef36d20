import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

/** A received span. */
export interface ReceivedSpan {
  /** `service.name` of the process that sent it. */
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the root span of a trace. */
  readonly parentSpanId: string;
  readonly failed: boolean;
}

/** A server that receives spans by OTLP over HTTP, like a collector. */
export interface OtlpReceiver {
  readonly url: string;
  /** All spans received so far. */
  readonly spans: ReceivedSpan[];
  /** All request bodies received so far. */
  text(): string;
  stop(): Promise<void>;
}

/** Starts a receiver on a free port. The caller must stop it. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const bodies: Buffer[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    if (request.url !== '/v1/traces') return response.writeHead(404).end();
    bodies.push(body);
    spans.push(...spansIn(body));
    return response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    text: () => Buffer.concat(bodies).toString('latin1'),
    async stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Returns the fields of a message by number: strings, bytes and messages as bytes, small integers as one byte. */
function readFields(message: Uint8Array): Map<number, Buffer[]> {
  const fields = new Map<number, Buffer[]>();
  const keep = (field: number, value: Uint8Array) =>
    fields.set(field, [...(fields.get(field) ?? []), Buffer.from(value)]);
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (type === WireType.LengthDelimited) keep(field, reader.bytes());
    else if (type === WireType.Varint) keep(field, Uint8Array.of(reader.int32()));
    else reader.skip(type);
  }
  return fields;
}

const idIn = (fields: ReadonlyMap<number, Buffer[]>, field: number): string =>
  fields.get(field)?.[0]?.toString('hex') ?? '';

/** Decodes an ExportTraceServiceRequest. opentelemetry/proto/trace/v1/trace.proto has the field numbers. */
function spansIn(request: Uint8Array): ReceivedSpan[] {
  const within = (messages: readonly Uint8Array[], field: number) =>
    messages.flatMap((message) => readFields(message).get(field) ?? []);
  return within([request], 1).flatMap((resourceSpans) => {
    const attributes = within(within([resourceSpans], 1), 1).map(readFields);
    const service = attributes.find((attribute) => attribute.get(1)?.[0]?.toString() === 'service.name');
    return within(within([resourceSpans], 2), 2).map((span) => {
      const fields = readFields(span);
      const status = within(fields.get(15) ?? [], 3)[0]?.[0];
      return {
        service: within(service?.get(2) ?? [], 1).toString(),
        name: fields.get(5)?.[0]?.toString() ?? '',
        traceId: idIn(fields, 1),
        spanId: idIn(fields, 2),
        parentSpanId: idIn(fields, 4),
        failed: status === 2,
      };
    });
  });
}
