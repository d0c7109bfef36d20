import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isRequestId, type KeyOperation, SCOPE_OF } from '../common/rules/public-api.ts';
import { ApiKeyScope, type AuthenticateApiKeyResponse } from '../proto/gen/leadintake/v1/api_key_pb.ts';
import { type FaultyField, invalidRequest, type Problem, type ProblemCode } from './problems.ts';

/** An operation of the contract, or another resource that the gateway serves. */
export type Operation = KeyOperation | 'healthz' | 'readyz' | 'openapi' | 'docs' | 'other';

export class RequestState {
  /** When it arrived, by `performance.now()`. */
  readonly arrivedAt = performance.now();
  /** Its API key, valid or not; set once the key has the form of one and its owner is known. */
  key: PresentedKey | undefined;
  problemCode: ProblemCode | undefined;
  faults: readonly FaultyField[] = [];
  isAnswered = false;
  /** For a creation: whether an earlier request had created the lead. */
  replayed: boolean | undefined;
  /** The lead that was created or read, or the open one that prevented a creation. */
  leadId: string | undefined;
}

export interface PresentedKey {
  readonly secretSha256: Uint8Array;
  readonly secretHint: string;
  readonly caller: AuthenticateApiKeyResponse;
  /** Whether the core has validated the key, or does so with the pending call. */
  isChecked: boolean;
  /** The quota windows that count the request; undefined: it was not counted. */
  countedIn: readonly number[] | undefined;
}

/** What the core is told of the sender of a request, and the request's id, which joins the logs of both sides. */
export interface Sender {
  /** Hash of the API key's secret; 32 bytes. */
  readonly secretSha256: Uint8Array;
  readonly requestId: string;
  /** The studio of the key, where it is known. */
  readonly studioId?: string;
}

/** Marks a key as checked, for a call in which the core validates it, and returns the sender. */
export function senderToCheck(key: PresentedKey, requestId: string): Sender {
  key.isChecked = true;
  return { secretSha256: key.secretSha256, requestId, studioId: key.caller.studioId };
}

/** Whether a key has the scope of an operation; other operations are for none. */
export const hasScopeFor = ({ scopes }: AuthenticateApiKeyResponse, operation: Operation | undefined): boolean =>
  scopes.includes(SCOPES[SCOPE_OF[operation as KeyOperation]]);

const SCOPES = { 'leads.read': ApiKeyScope.LEADS_READ, 'leads.create': ApiKeyScope.LEADS_CREATE } as const;

/** The header that names a request, in both directions. */
export const REQUEST_ID_HEADER = 'x-request-id';

/** Returns the caller's id for the request if it is a valid one, else a new one. @rule 2.5.requestId 7.request-id */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers[REQUEST_ID_HEADER];
  return isRequestId(given) ? given : randomUUID();
}

export const BROKEN_ENCODING = invalidRequest([], 'The address has broken percent-encoding.');
export const FRAGMENT = invalidRequest([], 'The address has a fragment.');

/** Returns what is wrong with the address of a request. */
export function addressFault(url: string): Problem | undefined {
  // Clients do not send a fragment; the router would treat it as a query.
  if (url.includes('#')) return FRAGMENT;
  try {
    // The router accepts a broken query and passes it on undecoded.
    decodeURIComponent(url);
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
