/** The retention time, which all cores share. */
export interface RetentionTime {
  /** Grows with each change. */
  readonly version: number;
  /** Null: it is unreadable. */
  readonly time: Date | null;
}

export interface RetentionStore {
  /** Returns null if there never was one. Must see every change that resolved before the call. */
  findRetentionTime(): Promise<RetentionTime | null>;

  /**
   * Replaces the retention time. Must change nothing, and return false, unless the stored version is `version` (null:
   * none is stored). Exactly one of concurrent calls changes it. If a response was lost, may return false for a change.
   */
  putRetentionTime(version: RetentionTime['version'] | null, time: Date): Promise<boolean>;
}
