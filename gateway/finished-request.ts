import type { ProblemCode } from './problems.ts';

/** What a request asked for: an operation of the contract, or what else the gateway answers. */
export type Operation = 'createLead' | 'getLead' | 'listLeads' | 'healthz' | 'readyz' | 'openapi' | 'docs' | 'other';

/** How a request ended. Never what it carried. */
export interface FinishedRequest {
  readonly requestId: string;
  readonly operation: Operation;
  /** Undefined when there was no answer. */
  readonly status: number | undefined;
  /** Nobody was answered when the caller left before; what the core made of it stands in the core's log. */
  readonly outcome: 'ok' | 'not_answered' | ProblemCode;
  /** Of a creation: whether an earlier request had made the lead. */
  readonly replayed?: boolean | undefined;
  /** The lead that was created, read, or in the way. */
  readonly leadId?: string | undefined;
  readonly studioId?: string | undefined;
  readonly apiKeyId?: string | undefined;
  readonly durationMs: number;
}

/** A request that was turned away before it could be known what it was about. */
export function unknownRequest(requestId: string, status: number, outcome: ProblemCode): FinishedRequest {
  return { requestId, operation: 'other', status, outcome, durationMs: 0 };
}
