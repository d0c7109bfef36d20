import type { Actor } from '../../domain/audit.ts';
import type { DatabaseEpoch } from '../../domain/database-epoch.ts';

export interface RestoreStore {
  /** Returns the identity of this database. An unreadable epoch counts as 0, and an unreadable `restoredTo` as 1970: any data may be lost. */
  findEpoch(): Promise<DatabaseEpoch>;

  /** Stores the epoch that epochAfterRestore computes, with an event in one write, and returns it. */
  raiseEpoch(to: Date | null, now: Date, by: Actor): Promise<DatabaseEpoch>;

  /**
   * Returns the given ids (in lower case) of which the studio has no lead, not even an erased or unreadable one. Must
   * see every lead that any method returned before the call.
   */
  findMissingLeads(studioId: string, leadIds: readonly string[]): Promise<string[]>;
}
