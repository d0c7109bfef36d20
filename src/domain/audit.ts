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
  // No core writes these two any more. Stored ones stay in the log, which must lose nothing.
  'studio-hold-changed',
  'lead-hold-changed',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** What events of the deployment have for their studio, which is no studio's id. */
export const OF_DEPLOYMENT = '';

/** An entry of the audit log, stored in the same write as the change it records. */
export interface AuditEvent {
  /** OF_DEPLOYMENT: of none. */
  readonly studioId: string;
  readonly action: AuditAction;
  /** The member who did it; null: the request named none. */
  readonly memberId: string | null;
  /** The program that did it: a name in the callers file, a command line, or BY_RETENTION; null: the caller has no name. */
  readonly caller: string | null;
  /** The id of the call: its `x-request-id`, or that of a run of the command line; null: it has none. */
  readonly callId: string | null;
  readonly time: Date;
  /** The API key or lead that changed; both null: the studio itself. */
  readonly apiKeyId: string | null;
  readonly leadId: string | null;
  /**
   * The status, stage, quota, region, keeping of enquiries, reason of a hold, days of retention, the member's id and role, the source's
   * id and whether it is enabled, or the consumer's name, before and after; null: none.
   * `lead-updated`: null, and the corrected fields' names. `leads-resent`: null, and the consumer; null: all. `leads-set-aside`: the
   * reason, and the consumer. `studio-emptied`: null, and the number of leads. `database-restored`: null, and the time before which nothing is lost.
   */
  readonly from: string | null;
  readonly to: string | null;
}

/** Who performs an action. */
export interface Actor {
  readonly memberId: string | null;
  /** Null or undefined: the program has no name. */
  readonly caller?: string | null | undefined;
  /** Null or undefined: the call has no id. */
  readonly callId?: string | null | undefined;
}

/** Returns what an event has of who performs an action. */
export const actorIn = ({ memberId, caller = null, callId = null }: Actor): Pick<AuditEvent, keyof Actor> => ({
  memberId,
  caller,
  callId,
});

/** A core that erases what a studio's retention does not keep, which is no valid name of a caller. */
export const BY_RETENTION: Actor = { memberId: null, caller: '(retention)' };

/** A migration from release 1.2; likewise no valid name. */
export const BY_MIGRATION = { memberId: null, caller: '(migration)' } as const satisfies Actor;

/** A request that its caller may repeat. */
export interface Repeatable {
  /** The caller's id of the request, a UUID; in the store port its identity. Undefined: the caller gave none. */
  readonly requestId?: string | undefined;
}

/** Who requests an action; not yet checked. */
export interface Requester extends Repeatable, Pick<Actor, 'caller' | 'callId'> {
  readonly memberId?: string | undefined;
}

/** Who performs an action, and when. */
export interface AuditContext extends Actor, Repeatable {
  readonly now: Date;
}

/** The number of newest changes of a studio, key or lead that are recognised when their request is repeated. */
export const MAX_APPLIED_REQUESTS = 1000;

/** The number of newest events of a studio, key or lead that are always kept, and the most that are listed. */
export const MAX_AUDIT_EVENTS = 1000;

/**
 * Returns the identity of a caller's request: its id for one operation on one record, as a UUID. The same id names another
 * request elsewhere, so that a caller that reuses it loses no change.
 *
 * @param requestId undefined: the caller gave none, and so has the request no identity
 * @param what the operation, and the ids of the record
 */
export function requestIdentity(requestId: string | undefined, ...what: readonly string[]): string | undefined {
  if (requestId === undefined) return undefined;
  const digest = hash('sha256', JSON.stringify([requestId.toLowerCase(), ...what]), 'hex');
  return digest.slice(0, 32).replace(/(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
