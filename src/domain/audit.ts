/** What is kept of who did it. */
export const AUDIT_ACTIONS = [
  'api-key-created',
  'api-key-replaced',
  'api-key-revoked',
  'api-key-quota-changed',
  'studio-status-changed',
  'studio-quota-changed',
  'lead-stage-changed',
  'lead-updated',
  'lead-erased',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** That something was done, by whom and when; kept in the same write as what was done. */
export interface AuditEvent {
  readonly studioId: string;
  readonly action: AuditAction;
  /** Who did it, as the CRM knows them; null: nobody was named. */
  readonly memberId: string | null;
  /** By which program, as the file of callers names it, or COMMAND_LINE; null: programs are not told apart. */
  readonly caller: string | null;
  /** Whole milliseconds. */
  readonly time: Date;
  /** What it was done to, where that is not the studio. */
  readonly apiKeyId: string | null;
  readonly leadId: string | null;
  /** The status, stage or quota before and after; null where there is none. Of an update: null, and the names of the corrected fields. */
  readonly from: string | null;
  readonly to: string | null;
}

/** By whom something is done. */
export interface Actor {
  readonly memberId: string | null;
  /** Null, or left out: the program has no name. */
  readonly caller?: string | null | undefined;
}

/** What the audit calls the operator's command line; no name of a caller. */
export const COMMAND_LINE = '(command line)';

/** By whom something is done, and when. */
export interface AuditContext extends Actor {
  readonly now: Date;
}

/** How many events of one studio, key or lead are kept at least, and how many are told at most: the newest. */
export const EVENTS_KEPT = 1000;
