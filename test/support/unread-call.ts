import { type ClientHttp2Session, connect } from 'node:http2';
import { buffer } from 'node:stream/consumers';
import { fromBinary, fromJsonString } from '@bufbuild/protobuf';
import { expect } from 'vitest';
import { ExchangeResponseSchema } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { framed } from '../security/http2-wire.ts';
import { CORE_TOKEN, requestBytes } from './grpc.ts';

/** A call of the exchange whose results stay unread until `results` is called. */
interface UnreadCall {
  readonly session: ClientHttp2Session;
  /** Sends messages as fast as the server takes them, then ends the request. */
  send(messages: readonly { readonly items: readonly object[] }[]): Promise<void>;
  /** Reads all results to the end of the call. */
  results(): Promise<{ readonly index: number; readonly body: string }[]>;
}

/** How messages are written and read, by the content type; `proto` is how gateways call. */
const FORMATS = {
  json: {
    write: (message: object) => Buffer.from(JSON.stringify(message)),
    read: (bytes: Buffer) => fromJsonString(ExchangeResponseSchema, bytes.toString()),
  },
  proto: {
    write: (message: object) => requestBytes('ExchangeService/Exchange', message),
    read: (bytes: Buffer) => fromBinary(ExchangeResponseSchema, bytes),
  },
};

/**
 * Starts a call of the exchange over a separate connection, by Connect. Its responses can be left unread; the gRPC client always
 * reads from the network.
 */
export function openUnreadCall(url: string, format: keyof typeof FORMATS): UnreadCall {
  const session = connect(url);
  const { write, read } = FORMATS[format];
  const stream = session.request({
    ':method': 'POST',
    ':path': '/leadintake.v1.ExchangeService/Exchange',
    'content-type': `application/connect+${format}`,
    authorization: `Bearer ${CORE_TOKEN}`,
  });
  for (const side of [session, stream]) side.on('error', () => {});
  return {
    session,
    async send(messages) {
      for (const message of messages) await new Promise((resolve) => stream.write(framed(write(message)), resolve));
      stream.end();
    },
    async results() {
      const results: { readonly index: number; readonly body: string }[] = [];
      let bytes = await buffer(stream);
      while (bytes.length > 0) {
        const end = 5 + bytes.readUInt32BE(1);
        const message = bytes.subarray(5, end);
        // The last message has the status of the call.
        if (bytes[0] === 2) expect(JSON.parse(message.toString())).not.toHaveProperty('error');
        else {
          for (const { index, outcome } of read(message).results) {
            results.push({ index, body: Buffer.from(outcome.value as Uint8Array).toString() });
          }
        }
        bytes = bytes.subarray(end);
      }
      return results;
    },
  };
}
