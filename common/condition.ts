/** Lets one function wait for a notification. */
export class Condition {
  readonly #schedule: (resume: () => void) => void;
  #waiting: (() => void) | undefined;

  /** @param schedule defers the waiting function until everything that happens together has happened: a tick, or a turn of the event loop */
  constructor(schedule: (resume: () => void) => void) {
    this.#schedule = schedule;
  }

  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  notify(): void {
    if (this.#waiting) this.#schedule(this.#waiting);
    this.#waiting = undefined;
  }
}
