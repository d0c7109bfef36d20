import type { AuditAction, AuditContext, AuditEvent } from '../../domain/audit.ts';

/** An action that consists of more than one write. */
export interface Act {
  readonly action: AuditAction;
  readonly from?: string | null;
  readonly to?: string | null;
}

/** A part of all audit events. */
export interface AuditPart {
  readonly events: readonly AuditEvent[];
  /** The position to continue after; null: there are no more. */
  readonly next: string | null;
}

export interface AuditStore {
  /**
   * Returns the next events of all studios and of the deployment in a range of times: perhaps none, at most 2,200. A walk
   * must return each event that was stored at its start exactly once, and the events of one record in their order. Skips
   * unreadable ones.
   *
   * @param range excludes its end
   * @param after the `next` of the part before; null: from the start
   */
  walkAuditEvents(range: { readonly start: Date; readonly end: Date }, after: string | null): Promise<AuditPart>;

  /**
   * Stores an event before an action that writes many records. The event may therefore exist without the action, but not
   * the action without the event. Does nothing if the studio does not exist.
   *
   * @param studioId OF_DEPLOYMENT: no studio
   */
  recordAct(studioId: string, act: Act, by: AuditContext): Promise<void>;

  /**
   * Returns the events of a studio and its keys, of one of its leads, or of the deployment: newest first, at most
   * MAX_AUDIT_EVENTS. The events of one record must be in the order in which they happened. Skips unreadable ones.
   *
   * @param studioId OF_DEPLOYMENT: the events of no studio
   * @param leadId null: the studio and its keys
   */
  listAuditEvents(studioId: string, leadId: string | null): Promise<AuditEvent[]>;
}
