/** Lets something be said once in a while, however often it happens, so that nobody can fill the log with it. */
export class Throttle {
  readonly #everyMs: number;
  readonly #mostSubjects: number;
  readonly #saidOf = new Set<string>();
  #began = Number.NEGATIVE_INFINITY;

  /**
   * @param everyMs how long nothing more is said of a subject
   * @param mostSubjects of how many it is said in that time
   */
  constructor(everyMs: number, mostSubjects = 1) {
    this.#everyMs = everyMs;
    this.#mostSubjects = mostSubjects;
  }

  /** Whether it is to be said now; if so, it counts as said. */
  isDue(subject = ''): boolean {
    const now = performance.now();
    if (now - this.#began >= this.#everyMs) {
      this.#saidOf.clear();
      this.#began = now;
    }
    if (this.#saidOf.has(subject) || this.#saidOf.size >= this.#mostSubjects) return false;
    this.#saidOf.add(subject);
    return true;
  }
}
