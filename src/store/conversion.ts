/** The progress of converting the database file of an earlier release, since this process started. */
export interface ConversionProgress {
  /** The number of converted records, and of all records to convert. */
  readonly done: number;
  readonly total: number;
}

export interface ConversionWatch {
  /** Aborts the conversion; the next start resumes it. */
  readonly stopping?: AbortSignal | undefined;
  onProgress?(progress: ConversionProgress): void;
}
