import type { Actor } from '../../domain/audit.ts';
import type { DatabaseEpoch } from '../../domain/database-epoch.ts';

export interface RestoreStore {
  /** Returns the identity of this database. If unreadable, it was never restored, or all data may be lost. */
  findEpoch(): Promise<DatabaseEpoch>;

  /** Notes that the database was restored, as epochAfterRestore decides, with an event in one write. Returns the new epoch. */
  raiseEpoch(to: Date | null, now: Date, by: Actor): Promise<DatabaseEpoch>;

  /**
   * Returns the given ids (in lower case) of which the studio has no lead, not even an erased or unreadable one. Must
   * see every lead that any method returned before the call.
   */
  findMissingLeads(studioId: string, leadIds: readonly string[]): Promise<string[]>;
}
