/** How far the conversion of a database file that an earlier release wrote has come, since this process began with it. */
export interface ConversionProgress {
  /** How many records were converted, and how many there were to convert. */
  readonly done: number;
  readonly total: number;
}

/** Who waits for it. */
export interface ConversionWatch {
  /** Breaks it off; the next start goes on from there. */
  readonly stopping?: AbortSignal | undefined;
  progressed?(progress: ConversionProgress): void;
}
