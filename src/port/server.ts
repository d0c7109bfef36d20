import { type IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer, createServer, type Http2SecureServer, type Http2Server } from 'node:http2';
import type { Socket } from 'node:net';
import { REQUEST_ARRIVAL_MS } from '../../common/deadlines.ts';
import type { TlsPem } from '../../common/tls-credentials.ts';
import type { Request, Response } from '../rpc/request.ts';
import { MAX_CALLS_PER_CONNECTION } from './connection.ts';

/** How often Node checks for late HTTP/1.1 requests; milliseconds. */
const ARRIVAL_CHECK_MS = 1000;

/** Options for HTTP/1.1. Node reads them, but its types lack them. */
const HTTP1_OPTIONS: object = {
  // Otherwise Node itself answers requests without a host.
  requireHostHeader: false,
  headersTimeout: REQUEST_ARRIVAL_MS,
  requestTimeout: REQUEST_ARRIVAL_MS,
  connectionsCheckingInterval: ARRIVAL_CHECK_MS,
};

type Handle = (request: Request, response: Response) => Promise<void>;

/**
 * Creates Node's server for both versions of HTTP. It passes every request to one function, including those that Node
 * would answer by itself.
 */
export function createPortServer(pem: TlsPem, handle: Handle): Http2Server | Http2SecureServer {
  const server = createHttp2Server(pem);
  const pass = (request: Request, response: Response) => {
    // An HTTP/1.1 request that is cut off may fail after the library stopped listening, which would end the process.
    request.on('error', () => {});
    return handle(request, response);
  };
  const events = ['request', 'checkContinue', 'checkExpectation'] as const;
  for (const event of events) server.on(event, pass as (...args: unknown[]) => void);
  // For CONNECT over HTTP/1.1, Node removes its own error listener.
  server.on('secureConnection', (socket: Socket) => socket.on('error', () => {}));
  server.on('connect', (request: Request, response: Response | Socket) => {
    // For HTTP/1.1, Node passes the bare socket.
    if ('stream' in request) return pass(request, response as Response);
    const answer = new ServerResponse(request as IncomingMessage);
    try {
      answer.assignSocket(response as Socket);
    } catch {
      // An earlier request still has no response, and this one would end the connection.
      return (response as Socket).destroy();
    }
    answer.once('finish', () => (response as Socket).destroySoon());
    return pass(request, answer);
  });
  return server;
}

function createHttp2Server(pem: TlsPem): Http2Server | Http2SecureServer {
  const settings = { maxConcurrentStreams: MAX_CALLS_PER_CONNECTION };
  if (!pem.cert) return createServer({ settings });
  return createSecureServer({
    settings,
    ...pem,
    ...(pem.ca ? { requestCert: true, rejectUnauthorized: true } : {}),
    allowHTTP1: true,
    ...HTTP1_OPTIONS,
  });
}
