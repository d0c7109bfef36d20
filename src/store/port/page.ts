export interface Page<Record> {
  readonly records: readonly Record[];
  readonly next: string | null;
  /** The number of unreadable records among those read. */
  readonly skipped: number;
}
