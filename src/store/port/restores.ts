import type { Actor } from '../../domain/audit.ts';
import type { DatabaseEpoch } from '../../domain/database-epoch.ts';

export interface RestoreStore {
  /** Returns which database this is. If that cannot be read, it was never restored, or all may be lost. */
  findEpoch(): Promise<DatabaseEpoch>;

  /** Notes that the database was restored, as epochAfterRestore decides, with an event in one write; returns its epoch from then on. */
  raiseEpoch(to: Date | null, now: Date, by: Actor): Promise<DatabaseEpoch>;

  /**
   * Returns those of some ids, in lower case, with which the studio has no lead: no erased or unreadable one either. Must see
   * every lead that was returned before the call, by any method.
   */
  findMissingLeads(studioId: string, leadIds: readonly string[]): Promise<string[]>;
}
