import type { Interceptor } from '@connectrpc/connect';
import type { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { CORE_TOKEN } from '../support/grpc.ts';

export type MakeTransport = typeof createGrpcTransport;

/** Makes a transport that also supports HTTP/1.1 use HTTP/2. */
export function overHttp2(make: typeof createConnectTransport | typeof createGrpcWebTransport): MakeTransport {
  return (options) => make({ ...options, httpVersion: '2' });
}

/** Adds the token of a core under test to each call. */
export const withToken: Interceptor = (next) => (request) => {
  request.header.set('authorization', `Bearer ${CORE_TOKEN}`);
  return next(request);
};
