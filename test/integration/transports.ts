import type { Interceptor } from '@connectrpc/connect';
import { CORE_TOKEN } from '../support/grpc.ts';

/** Adds the token of a core under test to each call. */
export const withToken: Interceptor = (next) => (request) => {
  request.header.set('authorization', `Bearer ${CORE_TOKEN}`);
  return next(request);
};
