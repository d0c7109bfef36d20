/** The time that retention goes by, which all cores share. */
export interface RetentionTime {
  /** Grows with each change. */
  readonly version: number;
  /** Null: it cannot be read. */
  readonly time: Date | null;
}

export interface RetentionStore {
  /** Returns null if there never was one. Must see every change that resolved before the call. */
  findRetentionTime(): Promise<RetentionTime | null>;

  /**
   * Replaces it. Must change nothing, and return false, unless it has the version that was read (null: there is none): of
   * concurrent calls exactly one changes it. Where a response was lost, it may return false for a change.
   */
  putRetentionTime(version: RetentionTime['version'] | null, time: Date): Promise<boolean>;
}
