import { type ClientHttp2Session, constants, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** The outcome of one stream. */
export interface StreamOutcome {
  /** The HTTP status; undefined without a response. */
  readonly status: number | undefined;
  /** The gRPC status, from the headers or the trailers; undefined if there was none. */
  readonly grpcStatus: number | undefined;
  /** All text that was received: headers, trailers, body. */
  readonly text: string;
  /** The HTTP/2 error code of the end of the stream; 0 is NO_ERROR. */
  readonly resetCode: number;
}

/** Sends a request with any headers and bytes on its own stream, and waits for the stream to end. */
export function onStream(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body: Uint8Array,
): Promise<StreamOutcome> {
  return new Promise((resolve) => {
    const stream = session.request(headers);
    const heads: IncomingHttpHeaders[] = [];
    const chunks: Buffer[] = [];
    stream.on('response', (head) => heads.push(head));
    stream.on('trailers', (trailers) => heads.push(trailers));
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', () => {});
    stream.on('close', () => {
      const all = Object.assign({}, ...heads) as IncomingHttpHeaders;
      const grpcStatus = all['grpc-status'];
      resolve({
        status: all[constants.HTTP2_HEADER_STATUS] as unknown as number | undefined,
        grpcStatus: grpcStatus === undefined ? undefined : Number(grpcStatus),
        text: JSON.stringify(all) + Buffer.concat(chunks).toString('latin1'),
        resetCode: stream.rstCode,
      });
    });
    stream.end(body);
  });
}

/** Frame types. */
export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

/** Frame flags. */
export const FLAG = { none: 0, endStream: 1, ack: 1, endHeaders: 4, padded: 8 } as const;

/** The connection preface of a client. */
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** Encodes a frame. */
export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Puts a message in a gRPC frame, each part of which can be falsified. */
export function framed(bytes: Uint8Array, { flag = 0, length = bytes.length } = {}): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** Returns every complete frame in some bytes. */
export function framesIn(bytes: Buffer): { type: number; flags: number; stream: number; payload: Buffer }[] {
  const frames: { type: number; flags: number; stream: number; payload: Buffer }[] = [];
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    const end = at + 9 + bytes.readUIntBE(at, 3);
    if (end > bytes.length) break;
    frames.push({
      type: bytes[at + 3] ?? -1,
      flags: bytes[at + 4] ?? 0,
      stream: bytes.readUInt32BE(at + 5),
      payload: bytes.subarray(at + 9, end),
    });
  }
  return frames;
}

/** Encodes a header block of short literals. */
export function headerBlock(headers: Readonly<Record<string, string>>): Buffer {
  const text = (value: string) => Buffer.concat([Buffer.of(value.length), Buffer.from(value, 'latin1')]);
  return Buffer.concat(
    Object.entries(headers).map(([name, value]) => Buffer.concat([Buffer.of(0), text(name), text(value)])),
  );
}

/** Opens a connection that can send any bytes and reads only enough to notice its end. */
export function wire(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true }, () => {
      socket.off('error', reject);
      socket.on('error', () => {});
      resolve(socket);
    });
    socket.once('error', reject);
  });
}

/** Opens a connection for the current test that sends bytes, reads all responses, and notices its end. */
export async function talk(port: number, ...parts: readonly Uint8Array[]) {
  const socket = await wire(port);
  onTestFinished(() => void socket.destroy());
  const received: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => received.push(chunk));
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const send = (...more: readonly Uint8Array[]) => void socket.write(Buffer.concat(more));
  send(...parts);
  return {
    socket,
    closed,
    send,
    bytes: () => Buffer.concat(received),
    frames: () => framesIn(Buffer.concat(received)),
  };
}

/** The headers of a gRPC call. */
export const grpcCall = (path: string, extra: Readonly<Record<string, string>> = {}) => ({
  ':method': 'POST',
  ':path': path,
  'content-type': 'application/grpc',
  te: 'trailers',
  ...extra,
});

/** The header block of a gRPC call. */
export const callBlock = (path: string, extra: Readonly<Record<string, string>> = {}): Buffer =>
  headerBlock({ ':scheme': 'http', ':authority': 'x', ...grpcCall(path, extra) });

/** Returns the first bytes of a connection. */
export const opening = (settings: Uint8Array = Buffer.alloc(0)): Buffer =>
  Buffer.concat([PREFACE, frame(FRAME.settings, FLAG.none, 0, settings)]);

/** A call whose request is complete. */
export const wholeCall = (stream: number, block: Uint8Array, message: Uint8Array): Buffer =>
  Buffer.concat([
    frame(FRAME.headers, FLAG.endHeaders, stream, block),
    frame(FRAME.data, FLAG.endStream, stream, message),
  ]);

/** Encodes the cancellation of a stream by its client. */
export const aReset = (stream: number): Buffer => frame(FRAME.reset, FLAG.none, stream, Buffer.from('00000008', 'hex'));

/** Settings with a zero window for responses, and with the largest possible one. */
export const [NO_WINDOW, WIDE_WINDOW] = ['000400000000', '00047fffffff'].map((hex) => Buffer.from(hex, 'hex')) as [
  Buffer,
  Buffer,
];
