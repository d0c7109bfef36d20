/** Lets one function wait for a notification. */
export class Condition {
  readonly #schedule: (resume: () => void) => void;
  #waiting: (() => void) | undefined;

  /** @param schedule runs what has waited once everything has happened that happens together: by a tick, or a turn of the event loop */
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
