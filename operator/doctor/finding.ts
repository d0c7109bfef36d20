/** Something that was looked at, and how it is. */
export interface Finding {
  /** What was looked at: `core settings`, `Redis`, … */
  readonly what: string;
  /** A warning is no reason not to serve, but somebody should look at it. */
  readonly verdict: 'well' | 'warning' | 'fault';
  /** How it is; what is not well, with what to do about it. */
  readonly says: string;
}

/** Notes findings about one thing. */
export class Notes {
  readonly findings: Finding[] = [];
  readonly #what: string;

  constructor(what: string) {
    this.#what = what;
  }

  well(says: string): void {
    this.findings.push({ what: this.#what, verdict: 'well', says });
  }

  warning(says: string): void {
    this.findings.push({ what: this.#what, verdict: 'warning', says });
  }

  fault(says: string): void {
    this.findings.push({ what: this.#what, verdict: 'fault', says });
  }

  /** Notes whether a clock agrees with this machine's. @param whose names it, as "the clock of …" */
  clock(whose: string, time: Date, askedAt: number, precisionMs: number): void {
    // It was read somewhere between question and answer.
    const skewMs = time.getTime() - (askedAt + Date.now()) / 2;
    if (Math.abs(skewMs) > MAX_SKEW_MS + precisionMs) {
      const seconds = Math.abs(skewMs / 1000).toFixed(1);
      const way = skewMs > 0 ? 'ahead of' : 'behind';
      this.warning(`the clock of ${whose} is ${seconds} s ${way} this machine's: let NTP set both`);
    }
  }
}

/** How far two clocks may be from each other before keys expire at visibly different times; milliseconds. */
const MAX_SKEW_MS = 1000;
