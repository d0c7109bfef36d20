import type { DescMethod } from '@bufbuild/protobuf';
import { Code, ConnectError, type ContextValues } from '@connectrpc/connect';
import { createAsyncIterable, type UniversalServerResponse } from '@connectrpc/connect/protocol';
import { codeToHttpStatus, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { trailerFlag, trailerSerialize } from '@connectrpc/connect/protocol-grpc-web';
import { toEnvelope } from '../../common/envelopes.ts';
import { Refusal } from '../domain/refusal.ts';
import { callerIfAny } from './callers.ts';
import { unauthenticated } from './refusals.ts';
import { newCall, type RunCall, recordRefusal } from './run-call.ts';

/** The faults of requests that no method serves, by HTTP status. */
const UNSERVED: Readonly<Record<number, string>> = {
  405: 'The method of HTTP must be POST.',
  415: 'The content type must be one of gRPC, gRPC-Web or Connect, and of the kind of the method.',
  505: 'The method needs HTTP/2.',
};

/** Logs and counts a request that no method serves, and returns its answer. @param method the method of its path, if any */
export async function unserved(
  { header, values, status }: { readonly header: Headers; readonly values: ContextValues; readonly status: number },
  method: DescMethod | undefined,
  run: RunCall,
): Promise<UniversalServerResponse> {
  const caller = callerIfAny({ values });
  const known = UNSERVED[status];
  const refusal = !caller
    ? unauthenticated()
    : known
      ? new Refusal('INVALID_REQUEST', known)
      : new ConnectError('unknown method', Code.Unimplemented);
  return toAnswer(header, await recordRefusal(run, newCall(method, header, caller), refusal), caller ? status : 401);
}

/** Returns an error as an answer in the request's protocol. @param status the HTTP status, if the protocol has none of its own */
export function toAnswer(
  header: Headers,
  error: ConnectError,
  status = codeToHttpStatus(error.code),
): UniversalServerResponse {
  const [type, isWeb] = /^application\/grpc(-web)?(?:\+proto|\+json)?/.exec(header.get('content-type') ?? '') ?? [];
  // gRPC clients treat a plain 404 as a transport failure.
  if (type) {
    const state = setTrailerStatus(new Headers(), error);
    const answer = { status: 200, header: new Headers({ 'content-type': type }) };
    if (!isWeb) return { ...answer, trailer: state };
    return { ...answer, body: createAsyncIterable([toEnvelope(trailerSerialize(state), trailerFlag)]) };
  }
  const body = errorToJsonBytes(error, undefined);
  const head = { 'content-type': 'application/json', 'content-length': `${body.length}`, 'cache-control': 'no-store' };
  return { status, header: new Headers(head), body: createAsyncIterable([body]) };
}
