/** The state of a database, examined without changing it. */
export type DatabaseState = FileState | ServerState | SilentServer;

export interface FileState {
  readonly kind: 'file';
  readonly path: string;
  readonly exists: boolean;
  /** Undefined when the file does not exist or cannot be read. */
  readonly contents?: FileContents;
  /** The free disk space; bytes. Undefined after an earlier fault. */
  readonly roomBytes?: number;
  /** Why the file is unusable, and what to do: the end of the sentence "the database file …". */
  readonly fault?: string;
}

export interface FileContents {
  /** The release of its schema; `this`: also an empty file. */
  readonly release: 'earlier' | '1.2' | 'this' | 'newer';
  readonly isOpenToOthers: boolean;
  /** Whether it is a restored backup that nobody has registered as such. */
  readonly isBackup: boolean;
}

export interface ServerState {
  readonly kind: 'server';
  readonly product: 'MongoDB' | 'FerretDB';
  readonly version: string;
  readonly topology: 'standalone server' | 'replica set' | 'sharded cluster' | 'in front of PostgreSQL';
  /** A description of each missing or invalid index, with its conflicting records. */
  readonly indexFaults: readonly string[];
}

/** A database server that does not respond, or is not the intended one. */
export interface SilentServer {
  readonly kind: 'silent server';
  readonly product: 'MongoDB';
  readonly reason: unknown;
  /** Whether it responds but must not be used. */
  readonly isWrong: boolean;
}

/** The maximum number of reported groups of duplicates, and of records in a group. */
export const MAX_GROUPS = 10;
export const MAX_IN_GROUP = 10;

/** Returns the error message for a write whose index is missing or invalid. @param faults sentences */
export const describeRefusal = (faults: readonly string[]): string => `no records are created: ${faults.join('. ')}`;

/**
 * Describes the records that conflict with a unique index; undefined: there are none.
 *
 * @param groups the names of the records in each group of duplicates, oldest first; at most MAX_GROUPS of MAX_IN_GROUP
 */
export function describeDuplicates(groups: readonly (readonly string[])[]): string | undefined {
  if (groups.length === 0) return undefined;
  const listed = groups.map((names) => names.join(' = ')).join('; ');
  return `duplicates: keep one of each group, usually the first: ${listed}${groups.length < MAX_GROUPS ? '' : '; …'}`;
}
