import type { Readable } from 'node:stream';
import { Code, ConnectError } from '@connectrpc/connect';
import { compressedFlag } from '@connectrpc/connect/protocol';

/** The bytes in front of a message: its flags, then its length in four bytes. */
const HEAD_BYTES = 5;

/** A message of a stream, as gRPC and Connect send it. */
export interface Envelope {
  readonly flags: number;
  readonly message: Uint8Array;
}

/** Returns a message with its envelope head. */
export function toEnvelope(message: Uint8Array, flags = 0): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + message.length);
  bytes[0] = flags;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, HEAD_BYTES);
  return bytes;
}

/**
 * Yields the envelopes of a stream as they arrive, and stops reading while nobody takes them. The library needs a dozen steps for that,
 * each with its own promises, which cost more than handling the message.
 *
 * @throws ConnectError unless envelopes are uncompressed and at most `maxBytes` long; what the stream fails with
 */
export function readEnvelopes(stream: Readable, maxBytes: number): AsyncGenerator<Envelope> {
  const ready: Envelope[] = [];
  let chunks: Buffer[] = [];
  let missing = HEAD_BYTES;
  let end: { readonly error?: unknown } | undefined;
  let wake: (() => void) | undefined;
  const finish = (error?: unknown) => {
    end ??= { error };
    wake?.();
  };
  stream.on('data', (chunk: Buffer) => {
    if (end) return;
    chunks.push(chunk);
    missing -= chunk.length;
    try {
      if (missing <= 0) split(chunks.length === 1 ? chunk : Buffer.concat(chunks));
    } catch (error) {
      finish(error);
    }
    if (wake) wake();
    else stream.pause();
  });
  stream.once('end', () => finish(chunks.length > 0 ? faulty('it ends within a message') : undefined));
  stream.on('error', finish);
  stream.once('close', () => finish(new Error('the stream was closed before its end')));
  return take();

  function split(bytes: Buffer): void {
    let rest = bytes;
    for (;;) {
      missing = HEAD_BYTES - rest.length;
      if (missing > 0) break;
      const [flags = 0] = rest;
      const length = rest.readUInt32BE(1);
      if (length > maxBytes) throw faulty(`a message has more than ${maxBytes} bytes`);
      if (flags & compressedFlag) throw faulty('a message is compressed');
      missing += length;
      if (missing > 0) break;
      ready.push({ flags, message: rest.subarray(HEAD_BYTES, HEAD_BYTES + length) });
      rest = rest.subarray(HEAD_BYTES + length);
    }
    chunks = rest.length > 0 ? [rest] : [];
  }

  async function* take(): AsyncGenerator<Envelope> {
    for (;;) {
      const envelope = ready.shift();
      if (envelope) yield envelope;
      else if (end) break;
      else {
        const more = Promise.withResolvers<void>();
        wake = more.resolve;
        if (stream.isPaused()) stream.resume();
        await more.promise;
        wake = undefined;
      }
    }
    if (end.error !== undefined) throw end.error;
  }
}

/** Returns an error with a cause, which shows that the peer did not send it: a gateway whose core dies does not know the outcome. */
function faulty(fault: string): ConnectError {
  const message = `the stream is malformed: ${fault}`;
  return new ConnectError(message, Code.InvalidArgument, undefined, undefined, new Error(message));
}
