import type { ClientHttp2Stream } from 'node:http2';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { createMethodUrl } from '@connectrpc/connect/protocol';
import {
  endStreamFlag,
  endStreamFromJson,
  requestHeader,
  validateResponse,
} from '@connectrpc/connect/protocol-connect';
import { type CoreSessions, type CoreToken, MAX_RESPONSE_BYTES } from '../../common/core-connection.ts';
import { readEnvelopes, toEnvelope } from '../../common/envelopes.ts';
import {
  ExchangeRequestSchema,
  type ExchangeResponse,
  ExchangeResponseSchema,
  ExchangeService,
} from '../../proto/gen/leadintake/v1/exchange_pb.ts';

const { exchange } = ExchangeService.method;

type Messages = AsyncIterable<MessageInitShape<typeof ExchangeRequestSchema>>;

/**
 * Makes a call of the exchange, and yields the responses until the signal aborts it.
 *
 * @throws ConnectError without a cause if the core refused the call, anything else if the call was cut off
 */
export type Exchange = (messages: Messages, signal: AbortSignal) => AsyncGenerator<ExchangeResponse>;

/** Returns exchange calls as Connect's library makes them, but directly on an HTTP/2 stream. */
export function exchangeOver(coreUrl: string, sessions: CoreSessions, token: CoreToken): Exchange {
  const path = new URL(createMethodUrl(coreUrl, exchange)).pathname;
  return async function* call(messages, signal) {
    const { authorization } = token;
    const header = requestHeader(exchange.methodKind, true, undefined, authorization ? { authorization } : {}, true);
    const stream = await sessions.request('POST', path, Object.fromEntries(header), {});
    signal.addEventListener('abort', () => stream.destroy());
    const envelopes = readEnvelopes(stream, MAX_RESPONSE_BYTES);
    stream.once('response', ({ ':status': status = 0, 'content-type': type = '' }) => {
      try {
        validateResponse(exchange.methodKind, true, status, new Headers({ 'content-type': type }));
      } catch (error) {
        stream.destroy(error as ConnectError);
      }
    });
    // Only a bug of ours makes a message that cannot be written. Such a message ends the call, not the process.
    send(messages, stream).catch((error) => stream.destroy(error));
    try {
      for await (const { flags, message } of envelopes) {
        sessions.notifyResponseByteRead(stream);
        if (flags & endStreamFlag) {
          const { error } = endStreamFromJson(message);
          // The core refused one of two tokens before it read a message. So the call ends like a call to a stopping core.
          if (error && token.findReplacement(authorization, error) === undefined) throw error;
          return;
        }
        yield fromBinary(ExchangeResponseSchema, message);
      }
      throw new ConnectError('the call ended without an end-of-stream message', Code.Unavailable);
    } finally {
      stream.close();
    }
  };
}

/** Sends one message after the other. Requests that are not yet in the stream can still be dropped or overtaken. */
async function send(messages: Messages, stream: ClientHttp2Stream): Promise<void> {
  for await (const message of messages) {
    const bytes = toEnvelope(toBinary(ExchangeRequestSchema, create(ExchangeRequestSchema, message)));
    const isSent = await new Promise((resolve) => stream.write(bytes, (error) => resolve(!error)));
    // The reader of the stream gets the error.
    if (!isSent) return;
  }
  stream.end();
}
