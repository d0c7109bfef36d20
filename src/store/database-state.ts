/** The state of a database, as examined without changing it. */
export type DatabaseState = FileState | ServerState | SilentServer;

export interface FileState {
  readonly kind: 'file';
  readonly path: string;
  readonly exists: boolean;
  /** Undefined when the file does not exist or cannot be read. */
  readonly contents?: {
    /** The release of its schema; `this`: also an empty file. */
    readonly release: 'earlier' | '1.2' | 'this' | 'newer';
    readonly isOpenToOthers: boolean;
    /** Whether it is a backup that was restored, and nobody has noted that. */
    readonly isBackup: boolean;
  };
  /** The free space of its disk; bytes. Undefined after an earlier fault. */
  readonly roomBytes?: number;
  /** Why it cannot be used, and what to do: the end of the sentence "the database file …". */
  readonly fault?: string;
}

export interface ServerState {
  readonly kind: 'server';
  readonly product: 'MongoDB' | 'FerretDB';
  readonly version: string;
  readonly topology: 'standalone server' | 'replica set' | 'sharded cluster' | 'in front of PostgreSQL';
  /** One text for each missing or invalid index, with the records that conflict with it. */
  readonly indexFaults: readonly string[];
}

/** A database server that does not respond, or is not the one that the address means. */
export interface SilentServer {
  readonly kind: 'silent server';
  readonly product: 'MongoDB';
  readonly reason: unknown;
  /** Whether it responds, and must not be used. */
  readonly isWrong: boolean;
}

/** The maximum number of reported groups of duplicates, and of records in a group. */
export const MAX_GROUPS = 10;
export const MAX_IN_GROUP = 10;

/** The message of the error for a write that needs an index which is missing or invalid. @param faults sentences */
export const refusalOfCreations = (faults: readonly string[]): string => `no records are created: ${faults.join('. ')}`;

/**
 * Describes the records that conflict with a unique index; undefined: none does.
 *
 * @param groups the names of the records in each group of duplicates, oldest first; at most MAX_GROUPS of MAX_IN_GROUP
 */
export function describeDuplicates(groups: readonly (readonly string[])[]): string | undefined {
  if (groups.length === 0) return undefined;
  const listed = groups.map((names) => names.join(' = ')).join('; ');
  return `duplicates, of which only one each may remain, usually the first: ${listed}${groups.length < MAX_GROUPS ? '' : '; …'}`;
}
