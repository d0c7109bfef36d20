import { type IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer, createServer, type Http2SecureServer, type Http2Server } from 'node:http2';
import type { Socket } from 'node:net';
import { REQUEST_ARRIVAL_MS } from '../../common/deadlines.ts';
import type { TlsPem } from '../../common/tls-credentials.ts';
import type { Request, Response } from '../rpc/request.ts';
import { MAX_CALLS_PER_CONNECTION } from './connection.ts';

/** How often Node checks for requests of HTTP/1.1 that have not arrived in time; milliseconds. */
const ARRIVAL_CHECK_MS = 1000;

/** Of HTTP/1.1. Node reads them; its types lack them. */
const HTTP1_OPTIONS: object = {
  // Otherwise Node answers by itself.
  requireHostHeader: false,
  headersTimeout: REQUEST_ARRIVAL_MS,
  requestTimeout: REQUEST_ARRIVAL_MS,
  connectionsCheckingInterval: ARRIVAL_CHECK_MS,
};

type Handle = (request: Request, response: Response) => Promise<void>;

/** Creates Node's server of both versions of HTTP, which passes every request to one function. */
export function createPortServer(pem: TlsPem, handle: Handle): Http2Server | Http2SecureServer {
  const server = createHttp2Server(pem);
  handleAll(server, handle);
  return server;
}

/** Passes every request to one function, whichever way Node would answer it by itself. */
function handleAll(server: Http2Server | Http2SecureServer, handle: Handle): void {
  const pass = (request: Request, response: Response) => {
    // Of HTTP/1.1, one that is cut off may fail when the library listens no more, which would end the process.
    request.on('error', () => {});
    return handle(request, response);
  };
  const events = ['request', 'checkContinue', 'checkExpectation'] as const;
  for (const event of events) server.on(event, pass as (...args: unknown[]) => void);
  // CONNECT of HTTP/1.1 takes Node's own listener away.
  server.on('secureConnection', (socket: Socket) => socket.on('error', () => {}));
  server.on('connect', (request: Request, response: Response | Socket) => {
    // Of HTTP/1.1, Node passes the bare socket.
    if ('stream' in request) return pass(request, response as Response);
    const answer = new ServerResponse(request as IncomingMessage);
    try {
      answer.assignSocket(response as Socket);
    } catch {
      // An earlier request has no response yet, and this one would end the connection.
      return (response as Socket).destroy();
    }
    answer.once('finish', () => (response as Socket).destroySoon());
    return pass(request, answer);
  });
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
