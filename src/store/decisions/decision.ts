import { type Actor, type AuditContext, actorIn, OF_DEPLOYMENT } from '../../domain/audit.ts';
import type { Act } from '../port/audit.ts';

/**
 * The decision of a command about a record as read. Functions that decide are pure, and run again if the record has
 * changed between reading and writing. They throw UnreadableRecord if a part that they need is unreadable.
 */
export type Decision<Outcome, Write> =
  /** Nothing is written, for example because an earlier attempt, or an earlier call with the same request, was applied. */
  | { readonly outcome: Outcome }
  | {
      readonly outcome: Outcome;
      /** Null: nothing changes; only a repeatable request is recorded. */
      readonly write: Write | null;
      readonly events?: readonly DecidedEvent[];
    };

export interface DecidedEvent extends Act, Actor {
  readonly time: Date;
}

/** @typeParam Found the stored record; null: there is none */
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
