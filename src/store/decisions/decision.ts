import { type Actor, type AuditContext, type AuditEvent, actorIn, OF_DEPLOYMENT } from '../../domain/audit.ts';
import type { Act } from '../port/audit.ts';

/**
 * What a command decides about a record as it was read. A decision is pure, and made again whenever the record has changed
 * between its reading and its writing. What an unreadable record allows no decision about is thrown as UnreadableRecord.
 */
export type Decision<Outcome, Write> =
  /** Nothing is written. So it is if an earlier attempt, or an earlier call with the same request, was applied. */
  | { readonly outcome: Outcome }
  | {
      readonly outcome: Outcome;
      /** Null: nothing changes, and only a request that its caller may repeat is recorded. */
      readonly write: Write | null;
      readonly events?: readonly DecidedEvent[];
    };

export type DecidedEvent = Pick<AuditEvent, 'action' | 'time'> & Partial<Pick<AuditEvent, 'from' | 'to'>> & Actor;

/** @typeParam Found the record as it is stored; null: there is none */
export type Decide<Found, Command, Outcome, Write> = (
  found: Found | null,
  command: Command,
  isApplied: boolean,
) => Decision<Outcome, Write>;

export const eventOfAct = ({ now: time, ...by }: AuditContext, act: Act): DecidedEvent => ({
  ...act,
  ...actorIn(by),
  time,
});

export const deploymentEvent = (by: AuditContext, act: Act) => ({ studioId: OF_DEPLOYMENT, ...eventOfAct(by, act) });

export const restoreAct = ({ restoredTo }: { readonly restoredTo: Date }): Act => ({
  action: 'database-restored',
  to: restoredTo.toISOString(),
});
