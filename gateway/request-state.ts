import type { ApiKeyScope, AuthenticateApiKeyResponse } from '../proto/gen/leadintake/v1/api_key_pb.ts';
import type { Operation } from './finished-request.ts';
import type { ProblemCode } from './problems.ts';

/** What is found out about a request on its way. */
export class RequestState {
  /** When it arrived, on the clock of `performance`. */
  readonly arrivedAt = performance.now();
  /** The key that it carries; there once that can be one, and it is known whose it is, be it good or not. */
  key: PresentedKey | undefined;
  /** The code of the problem that it is answered with. */
  problemCode: ProblemCode | undefined;
  isAnswered = false;
  /** Of a creation: whether an earlier request had made the lead. */
  replayed: boolean | undefined;
  /** The lead that was created, read, or in the way. */
  leadId: string | undefined;
}

/** A key, as a request came with it. */
export interface PresentedKey {
  readonly secretSha256: Uint8Array;
  readonly caller: AuthenticateApiKeyResponse;
  /** Whether the core has said whether the key is good, or will with its answer. */
  isChecked: boolean;
  /** The windows that the request was taken out of; undefined: it was not counted. */
  countedIn: readonly number[] | undefined;
}

declare module 'fastify' {
  interface FastifyRequest {
    state: RequestState;
  }
  interface FastifyContextConfig {
    /** What the route is called where requests are counted. */
    operation?: Operation;
    /** The scope that the route needs. */
    scope?: ApiKeyScope;
  }
}
