import { hash } from 'node:crypto';

export const AUDIT_ACTIONS = [
  'api-key-created',
  'api-key-replaced',
  'api-key-revoked',
  'api-key-quota-changed',
  'studio-status-changed',
  'studio-quota-changed',
  'studio-region-changed',
  'studio-member-changed',
  'studio-enquiries-changed',
  'studio-retention-changed',
  'studio-source-changed',
  'studio-emptied',
  'lead-created',
  'lead-stage-changed',
  'lead-updated',
  'lead-erased',
  'leads-resent',
  'leads-set-aside',
  'consumer-changed',
  'database-restored',
  // No core writes these two any more. The log must lose nothing, so stored ones stay.
  'studio-hold-changed',
  'lead-hold-changed',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** The studio of deployment events. It is not a valid studio id. */
export const OF_DEPLOYMENT = '';

/** An entry of the audit log, stored in the same write as its change, or before an action of many writes. */
export interface AuditEvent {
  /** OF_DEPLOYMENT: the event belongs to no studio. */
  readonly studioId: string;
  readonly action: AuditAction;
  /** The member who did it; null: the request named none. */
  readonly memberId: string | null;
  /** The program that did it: a name in the callers file, a command line, BY_RETENTION or BY_MIGRATION; null: the caller has no name. */
  readonly caller: string | null;
  /** The id of the call: its `x-request-id`, or the id of a run of the command line; null: it has none. */
  readonly callId: string | null;
  readonly time: Date;
  /** The API key or lead that changed; both null: something else of the studio or of the deployment. */
  readonly apiKeyId: string | null;
  readonly leadId: string | null;
  /**
   * The value before and after; null: none. It is a status, stage, quota, region, keeping of enquiries, reason of a hold or days of retention; a
   * member's id and role; a source's id and whether it is enabled; or a consumer's name.
   * `lead-updated`: null, and the names of the corrected fields. `leads-resent`: null, and the consumer (null: all). `leads-set-aside`: the reason,
   * and the consumer. `studio-emptied`: null, and the number of leads. `database-restored`: null, and the time up to which all data is there.
   */
  readonly from: string | null;
  readonly to: string | null;
}

/** The program that performs an action, and its call. */
export interface CallingProgram {
  /** Null or undefined: the program has no name. */
  readonly caller?: string | null | undefined;
  /** Null or undefined: the call has no id. */
  readonly callId?: string | null | undefined;
}

/** Who performs an action. */
export interface Actor extends CallingProgram {
  readonly memberId: string | null;
}

/** Returns the fields of an event that say who performed the action. */
export const actorIn = ({ memberId, caller = null, callId = null }: Actor) => ({ memberId, caller, callId });

/** A core that erases the leads whose retention has ended. The name is not valid for a caller. */
export const BY_RETENTION: Actor = { memberId: null, caller: '(retention)' };

/** The migration from release 1.2. The name is not valid for a caller. */
export const BY_MIGRATION = { memberId: null, caller: '(migration)' } as const satisfies Actor;

export interface Repeatable {
  /** The caller's id of the request, a UUID; undefined: it gave none. In the store port: the result of requestIdentity. */
  readonly requestId?: string | undefined;
}

/** The unchecked data about who requests an action. */
export interface Requester extends Repeatable, CallingProgram {
  readonly memberId?: string | undefined;
}

/** Who performs an action, and when. */
export interface AuditContext extends Actor, Repeatable {
  readonly now: Date;
}

/** The number of newest changes of a studio, key or lead whose repeated requests are deduplicated. */
export const MAX_APPLIED_REQUESTS = 1000;

/** The number of newest events of a studio, key or lead that are always kept, and the most that a list returns. */
export const MAX_AUDIT_EVENTS = 1000;

/**
 * Returns the identity of a caller's request as a UUID, derived from its id, the operation and the record. If a caller
 * reuses an id for another operation or record, no change is lost.
 *
 * @param requestId undefined: the caller gave none, so the request has no identity
 * @param what the operation, and the ids of the record
 */
export function requestIdentity(requestId: string | undefined, ...what: readonly string[]): string | undefined {
  if (requestId === undefined) return undefined;
  const digest = hash('sha256', JSON.stringify([requestId.toLowerCase(), ...what]), 'hex');
  return digest.slice(0, 32).replace(/(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
