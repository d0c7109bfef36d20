import type { ReportUnreadable } from './faults.ts';

export interface StoreCommand {
  readonly name: 'commit' | 'find' | 'insert' | 'update';
  /** The number of reads or writes that it combines. */
  readonly size: number;
}

/** Gets the commands to the database that take long. */
export interface SlowCommands {
  readonly fromMs: number;
  /** @param shape the statement, or the collection, the method and the names in its filter: nothing that a caller sent */
  report(shape: string, durationMs: number): void;
}

/** Called when a command is sent to the database; returns what is called when it ends, with whether it succeeded. */
export type StoreObserver = (command: StoreCommand) => (isDone: boolean) => void;

/**
 * Who hears of each command to the database, of each unreadable record that a call skips, of each slow command, and when the log
 * of SQLite cannot be emptied because other processes read.
 */
export type StoreListeners = [
  observer?: StoreObserver,
  report?: ReportUnreadable,
  slow?: SlowCommands,
  logStays?: () => void,
];

export const LOG_STAYS =
  "the log of the database (-wal) may contain erased data, and grows: another process reads the database. End that process; a core or 'vacuum' then empties the log";
