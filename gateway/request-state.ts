import type { AuthenticateApiKeyResponse } from '../proto/gen/leadintake/v1/api_key_pb.ts';
import type { ProblemCode } from './problems.ts';

/** An operation of the contract, or another resource that the gateway serves. */
export type Operation = 'createLead' | 'getLead' | 'listLeads' | 'healthz' | 'readyz' | 'openapi' | 'docs' | 'other';

/** The state of a request while it is handled. */
export class RequestState {
  /** When it arrived, by `performance.now()`. */
  readonly arrivedAt = performance.now();
  /** Its API key, valid or not; set once the key has the form of one and its owner is known. */
  key: PresentedKey | undefined;
  problemCode: ProblemCode | undefined;
  isAnswered = false;
  /** For a creation: whether an earlier request had created the lead. */
  replayed: boolean | undefined;
  /** The lead that was created or read, or the open one that prevented a creation. */
  leadId: string | undefined;
}

/** The API key of a request. */
export interface PresentedKey {
  readonly secretSha256: Uint8Array;
  readonly caller: AuthenticateApiKeyResponse;
  /** Whether the core has validated the key, or does so with the pending call. */
  isChecked: boolean;
  /** The quota windows that count the request; undefined: it was not counted. */
  countedIn: readonly number[] | undefined;
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
