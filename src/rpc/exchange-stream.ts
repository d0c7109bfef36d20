import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  type ContextValues,
  createHandlerContext,
  type HandlerContext,
  type MethodImpl,
} from '@connectrpc/connect';
import type { UniversalServerRequest } from '@connectrpc/connect/protocol';
import {
  contentTypeStreamProto,
  endStreamFlag,
  endStreamToJson,
  headerStreamAcceptEncoding,
  headerStreamEncoding,
  headerTimeout,
} from '@connectrpc/connect/protocol-connect';
import { readEnvelopes, toEnvelope } from '../../common/envelopes.ts';
import { ExchangeService } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { readCaller } from './callers.ts';
import type { Sent } from './interceptors.ts';
import { takeUntil } from './take-until.ts';

const { exchange: method } = ExchangeService.method;

export interface ServedExchange {
  readonly implement: MethodImpl<typeof method>;
  /** The maximum size of a message; bytes. */
  readonly readMaxBytes: number;
}

/** The checks that every call passes. */
interface Checks {
  /** @throws ConnectError if the call is refused before its messages are read */
  readonly gate: (context: HandlerContext) => Promise<void>;
  /** Refuses unreadable messages. */
  readonly readable: <Message>(sent: Sent<Message>) => AsyncIterable<Message>;
}

/**
 * Whether a call is made the way gateways do: over HTTP/2, with Connect, in binary, uncompressed, and without a
 * deadline. The library serves all others.
 */
export const isOfGateway = (request: IncomingMessage | Http2ServerRequest): request is Http2ServerRequest =>
  'stream' in request &&
  request.method === 'POST' &&
  request.headers['content-type'] === contentTypeStreamProto &&
  ![headerTimeout, headerStreamEncoding, headerStreamAcceptEncoding].some(
    (name) => name.toLowerCase() in request.headers,
  );

/**
 * Returns a function that serves gateways' calls as the library would, but directly on the HTTP/2 stream. The library's
 * layers in between take longer than most requests.
 */
export function exchangeServer({ implement, readMaxBytes }: ServedExchange, { gate, readable }: Checks) {
  return async (
    { stream }: Http2ServerRequest,
    response: Http2ServerResponse,
    call: UniversalServerRequest & { contextValues: ContextValues },
  ): Promise<void> => {
    const { signal, header, contextValues, url } = call;
    const traits = { requestMethod: call.method, url, requestSignal: signal, requestHeader: header, contextValues };
    const context = createHandlerContext({ service: method.parent, method, protocolName: 'connect', ...traits });
    let fault: ConnectError | undefined;
    response.writeHead(200, { 'content-type': contentTypeStreamProto });
    try {
      await gate(context);
      const requests = readable({ method, header, contextValues, message: messages() });
      for await (const answer of implement(takeUntil(readCaller(context).withdrawn, requests), context)) {
        const isBelowHighWaterMark = response.write(toEnvelope(toBinary(method.output, create(method.output, answer))));
        if (!isBelowHighWaterMark) await once(stream, 'drain', { signal });
      }
    } catch (error) {
      // The caller gets nothing more.
      if (signal.aborted) return;
      fault = error instanceof ConnectError ? error : new ConnectError('internal error', Code.Internal);
    } finally {
      context.abort(fault);
    }
    response.end(toEnvelope(Buffer.from(JSON.stringify(endStreamToJson(new Headers(), fault, {}))), endStreamFlag));

    async function* messages() {
      for await (const { flags, message } of readEnvelopes(stream, readMaxBytes)) {
        if (flags & endStreamFlag) throw new ConnectError('unexpected end flag', Code.InvalidArgument);
        yield fromBinary(method.input, message);
      }
    }
  };
}
