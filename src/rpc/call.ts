import type { DescMethod } from '@bufbuild/protobuf';
import { createContextKey } from '@connectrpc/connect';
import type { Caller } from '../domain/caller.ts';

/** A call, or an item of one, as it is logged, counted and traced. */
export interface Call {
  /** The method's name, preceded by the service's if that is not one of `leadintake.v1`. */
  readonly operation: string;
  /** The caller's id of the request; not logged if it is not a valid one. */
  readonly requestId: string | undefined;
  /** The message; undefined if it was not read. */
  readonly request: object | undefined;
  /** The W3C `traceparent`, if the caller sent one. */
  readonly traceparent: string | undefined;
  /** Undefined: not authenticated. */
  readonly caller: Caller | undefined;
}

/** Returns a call by its method and headers, without its message. @param method undefined: no method of this service */
export function callOf(method: DescMethod | undefined, header: Headers, caller: Caller | undefined): Call {
  return {
    operation: method ? operationOf(method) : 'other',
    requestId: header.get('x-request-id') ?? undefined,
    request: undefined,
    traceparent: header.get('traceparent') ?? undefined,
    caller,
  };
}

function operationOf({ parent, name }: DescMethod): string {
  return parent.file.proto.package === 'leadintake.v1' ? name : `${parent.name}/${name}`;
}

/** Aborted when the call's connection is drained; open-ended calls then end. */
export const connectionDraining = createContextKey<AbortSignal>(new AbortController().signal, {
  description: 'aborted when the connection is drained',
});
