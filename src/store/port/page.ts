export interface Page<Record> {
  readonly records: readonly Record[];
  readonly next: string | null;
  /** The number of unreadable records among those that it was read from. */
  readonly skipped: number;
}
