import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isRequestId, type KeyOperation, SCOPE_OF } from '../common/rules/public-api.ts';
import { ApiKeyScope } from '../proto/gen/leadintake/v1/api_key_pb.ts';
import { type KeyCheck, next, type PresentedKey, UNREAD } from './key-check.ts';
import { type FaultyField, invalidRequest, type Problem, type ProblemCode } from './problems.ts';

/** An operation of the contract, or another resource that the gateway serves. */
export type Operation = KeyOperation | 'healthz' | 'readyz' | 'openapi' | 'docs' | 'other';

export class RequestState {
  /** When the request arrived, by `performance.now()`. */
  readonly arrivedAt = performance.now();
  keyCheck: KeyCheck = UNREAD;
  problemCode: ProblemCode | undefined;
  faults: readonly FaultyField[] = [];
  isAnswered = false;
  /** Creations only: whether an earlier request had created the lead. */
  replayed: boolean | undefined;
  /** The lead that was created or read, or the open one that prevented a creation. */
  leadId: string | undefined;

  /** The request's API key, valid or not, once its owner is known. */
  get key(): PresentedKey | undefined {
    return this.keyCheck.key;
  }
}

/** The sender of a request, for the core. Both logs have the request's id. The studio may be unknown. */
export interface Sender {
  readonly secretSha256: Uint8Array;
  readonly requestId: string;
  readonly studioId?: string;
}

/** Returns the sender of a request for a call in which the core validates its key. */
export function senderToCheck(state: RequestState): Sender {
  state.keyCheck = next(state.keyCheck, { kind: 'sent' }).check;
  return state.key as PresentedKey;
}

/** Returns whether a request's key has the scope of an operation. Operations outside the contract have no scope. */
export const hasScopeFor = ({ key }: RequestState, operation: Operation | undefined): boolean =>
  key?.caller.scopes.includes(SCOPES[SCOPE_OF[operation as KeyOperation]]) === true;

const SCOPES = { 'leads.read': ApiKeyScope.LEADS_READ, 'leads.create': ApiKeyScope.LEADS_CREATE } as const;

/** The header that carries a request's id in both directions. */
export const REQUEST_ID_HEADER = 'x-request-id';

/** Returns the caller's id for the request if it is valid, or a new one. @rule 2.5.requestId 7.request-id */
export function chooseRequestId({ headers }: { readonly headers: IncomingHttpHeaders }): string {
  const given = headers[REQUEST_ID_HEADER];
  return isRequestId(given) ? given : randomUUID();
}

export const BROKEN_ENCODING = invalidRequest([], 'The address has broken percent-encoding.');
export const FRAGMENT = invalidRequest([], 'The address has a fragment.');

/** Returns the fault of a request's address. */
export function addressFault(url: string): Problem | undefined {
  // Clients never send a fragment, and the router would take it for a query.
  if (url.includes('#')) return FRAGMENT;
  try {
    // The router accepts a broken query and passes it on undecoded.
    if (url.includes('%')) decodeURIComponent(url);
    return undefined;
  } catch {
    return BROKEN_ENCODING;
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    state: RequestState;
  }
  interface FastifyContextConfig {
    /** The name of the route in the log and in metrics. */
    operation?: Operation;
  }
}
