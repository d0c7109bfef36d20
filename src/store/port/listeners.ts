import type { ReportUnreadable } from './faults.ts';

export interface StoreCommand {
  readonly name: 'commit' | 'find' | 'insert' | 'update';
  /** The number of reads or writes that it combines. */
  readonly size: number;
}

/** Receives slow database commands: those that take `fromMs` or longer. */
export interface SlowCommands {
  readonly fromMs: number;
  /** @param shape the statement, or the collection, the method and the filter's names; nothing that a caller sent */
  report(shape: string, durationMs: number): void;
}

/** Called when a command is sent to the database. Returns a function to call at its end, with whether it succeeded. */
export type StoreObserver = (command: StoreCommand) => (isDone: boolean) => void;

export interface StoreListeners {
  readonly observer?: StoreObserver | undefined;
  /** Called with each unreadable record that a call skips. */
  readonly report?: ReportUnreadable | undefined;
  readonly slow?: SlowCommands | undefined;
  /** Called while SQLite's log cannot be emptied, because other processes read. */
  readonly logStays?: (() => void) | undefined;
}

export const LOG_STAYS =
  "the log of the database (-wal) may contain erased data, and grows: another process reads the database. End that process; a core or 'vacuum' then empties the log";
