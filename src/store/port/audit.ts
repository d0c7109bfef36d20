import type { AuditContext, AuditEvent } from '../../domain/audit.ts';

/** An action that is not one write. */
export type Act = Pick<AuditEvent, 'action'> & Partial<Pick<AuditEvent, 'from' | 'to'>>;

/** A part of all audit events. */
export interface AuditPart {
  readonly events: readonly AuditEvent[];
  /** Where to go on; null: there are no more. */
  readonly next: string | null;
}

export interface AuditStore {
  /**
   * Returns the next events of all studios and of the deployment whose time is in a range, perhaps none, at most 2,200. A walk must
   * return each event that is stored when it begins exactly once, and those of one record in their order. Skips unreadable ones.
   *
   * @param range without its end
   * @param after the `next` of the part before; null: from the start
   */
  walkAuditEvents(range: { readonly start: Date; readonly end: Date }, after: string | null): Promise<AuditPart>;

  /**
   * Stores an event of a studio, or of the deployment, before what it is about: writes of many records, of which none could have it. So
   * there may be one of what was not done, and never none of what was. Does nothing if there is no such studio.
   *
   * @param studioId OF_DEPLOYMENT: of none
   */
  recordAct(studioId: string, act: Act, by: AuditContext): Promise<void>;

  /**
   * Returns the events of a studio and its keys, of one of its leads, or of the deployment; newest first, at most MAX_AUDIT_EVENTS. Must
   * return the events of one record in the order in which they happened. Skips unreadable ones.
   *
   * @param studioId OF_DEPLOYMENT: those of no studio
   * @param leadId null: the studio and its keys
   */
  listAuditEvents(studioId: string, leadId: string | null): Promise<AuditEvent[]>;
}
