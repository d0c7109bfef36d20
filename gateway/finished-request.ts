import type { ProblemCode } from './problems.ts';

/** An operation of the contract, or another resource that the gateway serves. */
export type Operation = 'createLead' | 'getLead' | 'listLeads' | 'healthz' | 'readyz' | 'openapi' | 'docs' | 'other';

/** How a request ended. Never contains what it carried. */
export interface FinishedRequest {
  readonly requestId: string;
  readonly operation: Operation;
  /** Undefined when there was no response. */
  readonly status: number | undefined;
  /** `not_answered`: the caller disconnected before the response. The core's log has the outcome. */
  readonly outcome: 'ok' | 'not_answered' | ProblemCode;
  /** For a creation: whether an earlier request had created the lead. */
  readonly replayed?: boolean | undefined;
  /** The lead that was created or read, or the open one that prevented a creation. */
  readonly leadId?: string | undefined;
  readonly studioId?: string | undefined;
  readonly apiKeyId?: string | undefined;
  /** Of a request that is traced. */
  readonly traceId?: string | undefined;
  readonly durationMs: number;
}

/** Describes a request that was refused before its operation was known. */
export function unknownRequest(requestId: string, status: number, outcome: ProblemCode): FinishedRequest {
  return { requestId, operation: 'other', status, outcome, durationMs: 0 };
}
