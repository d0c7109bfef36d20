import type { DescMethod } from '@bufbuild/protobuf';
import type { Caller } from '../domain/caller.ts';

/** A request of a caller: a call of its own, or one of a batch. */
export interface Call {
  /** The method's name; with its service, where that is not one of this package. */
  readonly operation: string;
  /** What its caller names it; whatever is no fit name stays out of the log. */
  readonly requestId: string | undefined;
  /** What it carries; undefined when that was not read. */
  readonly request: object | undefined;
  /** What trace it belongs to: W3C `traceparent`, if its caller sent one. */
  readonly traceparent: string | undefined;
  /** Who makes it; undefined: nobody who is let in. */
  readonly caller: Caller | undefined;
}

/** What a call is, by its method and headers. */
export function callOf(method: DescMethod, header: Headers, caller: Caller | undefined): Call {
  return {
    operation: operationOf(method),
    requestId: header.get('x-request-id') ?? undefined,
    request: undefined,
    traceparent: header.get('traceparent') ?? undefined,
    caller,
  };
}

export function operationOf({ parent, name }: DescMethod): string {
  return parent.file.proto.package === 'leadintake.v1' ? name : `${parent.name}/${name}`;
}
