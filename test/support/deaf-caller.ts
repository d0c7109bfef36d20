import { type ClientHttp2Session, connect } from 'node:http2';
import { buffer } from 'node:stream/consumers';
import { expect } from 'vitest';
import { CORE_TOKEN } from './grpc.ts';

/** A call whose results nobody takes before one asks for them. */
interface DeafCall<Result> {
  readonly session: ClientHttp2Session;
  /** Sends messages as the other side takes them, and the end after the last. */
  send(messages: readonly object[]): Promise<void>;
  /** Takes everything that comes until the end. */
  results(): Promise<Result[]>;
}

/**
 * Begins a call of `Service/Method` over a connection of its own, in Connect's JSON, whose bytes one can leave where they are: the
 * client of gRPC takes them from the network whether anybody wants them or not.
 */
export function openWithoutReading<Result>(url: string, rpc: string): DeafCall<Result> {
  const session = connect(url);
  const stream = session.request({
    ':method': 'POST',
    ':path': `/leadintake.v1.${rpc}`,
    'content-type': 'application/connect+json',
    authorization: `Bearer ${CORE_TOKEN}`,
  });
  for (const side of [session, stream]) side.on('error', () => {});
  return {
    session,
    async send(messages) {
      for (const message of messages) {
        const bytes = Buffer.from(JSON.stringify(message));
        const head = Buffer.alloc(5);
        head.writeUInt32BE(bytes.length, 1);
        await new Promise((resolve) => stream.write(Buffer.concat([head, bytes]), resolve));
      }
      stream.end();
    },
    async results() {
      const results: Result[] = [];
      let bytes = await buffer(stream);
      while (bytes.length > 0) {
        const end = 5 + bytes.readUInt32BE(1);
        const message = JSON.parse(bytes.toString('utf8', 5, end));
        // The last one tells how the call ended.
        if (bytes[0] === 2) expect(message).not.toHaveProperty('error');
        else results.push(...message.results);
        bytes = bytes.subarray(end);
      }
      return results;
    },
  };
}
