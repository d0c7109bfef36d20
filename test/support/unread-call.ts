import { type ClientHttp2Session, connect } from 'node:http2';
import { buffer } from 'node:stream/consumers';
import { expect } from 'vitest';
import { CORE_TOKEN } from './grpc.ts';

/** A call whose results stay unread until `results` is called. */
interface UnreadCall<Result> {
  readonly session: ClientHttp2Session;
  /** Sends messages as fast as the server takes them, then ends the request. */
  send(messages: readonly object[]): Promise<void>;
  /** Reads all results to the end of the call. */
  results(): Promise<Result[]>;
}

/**
 * Starts a call of `Service/Method` over a separate connection, in Connect's JSON. Its responses can be left unread; the gRPC
 * client always reads from the network.
 */
export function openUnreadCall<Result>(url: string, rpc: string): UnreadCall<Result> {
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
        // The last message has the status of the call.
        if (bytes[0] === 2) expect(message).not.toHaveProperty('error');
        else results.push(...message.results);
        bytes = bytes.subarray(end);
      }
      return results;
    },
  };
}
