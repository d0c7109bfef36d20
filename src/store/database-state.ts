/** What is found of a database by whoever looks at it and changes nothing in it. */
export type DatabaseState = FileState | ServerState | SilentServer;

/** A database that is a file of this machine. */
export interface FileState {
  readonly kind: 'file';
  readonly path: string;
  readonly isThere: boolean;
  /** Undefined when it is not there, or could not be read. */
  readonly contents?: {
    /** The release whose schema it has, as seen from this one; half-converted: from an earlier one's to this one's. */
    readonly release: 'earlier' | 'half-converted' | 'this' | 'newer';
    readonly isOpenToOthers: boolean;
    readonly indexFaults: readonly string[];
  };
  /** What its disk has left; bytes. Undefined when the look did not get that far. */
  readonly roomBytes?: number;
  /** What keeps it from being used, and what to do about it: the end of the sentence "the database file …". */
  readonly fault?: string;
}

/** A database on a server that answers. */
export interface ServerState {
  readonly kind: 'server';
  readonly product: 'MongoDB';
  readonly version: string;
  readonly topology: 'standalone server' | 'replica set' | 'sharded cluster';
  /** By its clock. */
  readonly time: Date;
  /** What is wrong with each index that is not there, or not as it has to be, and which records stand in its way. */
  readonly indexFaults: readonly string[];
}

/** A server that does not answer. */
export interface SilentServer {
  readonly kind: 'silent server';
  readonly product: 'MongoDB';
  readonly reason: unknown;
}
