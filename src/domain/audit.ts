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
  // No core writes these two any more, but stored ones must stay readable.
  'studio-hold-changed',
  'lead-hold-changed',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** The `studioId` of events that belong to no studio. It is not a valid studio id. */
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
   * The values before and after, in the form of memberText, sourceText, keepingText and numberText; null: none. Some actions differ. `to` has the
   * corrected fields of `lead-updated`, the consumer of `leads-resent` (null: all), the number of leads of `studio-emptied`, and the time up to
   * which `database-restored` lost nothing. `leads-set-aside` has the reason in `from`, and the consumer in `to`.
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

/** Requests are deduplicated against this many of the newest changes of a studio, key or lead. */
export const MAX_APPLIED_REQUESTS = 1000;

/** The number of newest events of a studio, key or lead that are always kept, and the most that a list returns. */
export const MAX_AUDIT_EVENTS = 1000;

/**
 * Returns the identity of a caller's request as a UUID, derived from its id, the operation and the record. A request that
 * reuses an id for another operation or record is therefore not taken for a repetition.
 *
 * @param requestId undefined: the caller gave none, so the request has no identity
 * @param what the operation, and the ids of the record
 */
export function requestIdentity(requestId: string | undefined, ...what: readonly string[]): string | undefined {
  if (requestId === undefined) return undefined;
  const digest = hash('sha256', JSON.stringify([requestId.toLowerCase(), ...what]), 'hex');
  return digest.slice(0, 32).replace(/(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
