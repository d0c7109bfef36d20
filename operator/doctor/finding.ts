export interface Finding {
  /** The part: `core settings`, `Redis`, … */
  readonly what: string;
  /** With a warning the part works, but an operator should act. */
  readonly verdict: 'ok' | 'warning' | 'fault';
  /** The state of the part; for a warning or fault, also what to do. */
  readonly says: string;
}

/** Examines one part, and returns what was noted about it. */
export async function examined(what: string, examine: (notes: Notes) => unknown): Promise<readonly Finding[]> {
  const notes = new Notes(what);
  await examine(notes);
  return notes.findings;
}

export class Notes {
  readonly findings: Finding[] = [];
  readonly #what: string;

  constructor(what: string) {
    this.#what = what;
  }

  readonly ok = (says: string): void => this.#note('ok', says);
  readonly warning = (says: string): void => this.#note('warning', says);
  readonly fault = (says: string): void => this.#note('fault', says);

  /** Notes a clock that differs from this machine's. @param whose its owner, as in "the clock of …" */
  clock(whose: string, time: Date, requestedAt: number, precisionMs: number): void {
    // It was read between the request and the response.
    const skewMs = time.getTime() - (requestedAt + Date.now()) / 2;
    if (Math.abs(skewMs) > MAX_SKEW_MS + precisionMs) {
      const seconds = Math.abs(skewMs / 1000).toFixed(1);
      const direction = skewMs > 0 ? 'ahead of' : 'behind';
      this.warning(`the clock of ${whose} is ${seconds} s ${direction} this machine's: synchronise both with NTP`);
    }
  }

  #note(verdict: Finding['verdict'], says: string): void {
    this.findings.push({ what: this.#what, verdict, says });
  }
}

/** The maximum difference of two clocks without visible effects on the expiry of keys; milliseconds. */
const MAX_SKEW_MS = 1000;
