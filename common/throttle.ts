/** Lets each subject through at most once per interval, so that frequent events cannot fill the log. */
export class Throttle {
  readonly #intervalMs: number;
  readonly #maxSubjects: number;
  readonly #allowed = new Set<string>();
  #intervalBegan = Number.NEGATIVE_INFINITY;

  /** @param maxSubjects how many different subjects may pass per interval */
  constructor(intervalMs: number, maxSubjects = 1) {
    this.#intervalMs = intervalMs;
    this.#maxSubjects = maxSubjects;
  }

  /** Returns whether an event may pass now, and counts it if so. */
  allow(subject = ''): boolean {
    const now = performance.now();
    if (now - this.#intervalBegan >= this.#intervalMs) {
      this.#allowed.clear();
      this.#intervalBegan = now;
    }
    if (this.#allowed.has(subject) || this.#allowed.size >= this.#maxSubjects) return false;
    this.#allowed.add(subject);
    return true;
  }
}
