/**
 * Coalesces equal reads: those that arrive while one is in flight share the next one. That one starts after all of them
 * arrived, so each sees every change that was acknowledged before it. Any number of concurrent reads costs two.
 */
export class CoalescedReads {
  readonly #inFlight = new Map<string, Promise<unknown>>();
  readonly #next = new Map<string, Promise<unknown>>();

  /**
   * @param key equal for reads with equal results
   * @param read starts the read for all callers that share it
   */
  read<Result>(key: string, read: () => Promise<Result>): Promise<Result> {
    const next = this.#next.get(key);
    if (next) return next as Promise<Result>;
    const start = () => this.#start(key, read);
    const inFlight = this.#inFlight.get(key);
    if (!inFlight) return start();
    const result = inFlight.then(start, start);
    this.#next.set(key, result);
    return result;
  }

  #start<Result>(key: string, read: () => Promise<Result>): Promise<Result> {
    this.#next.delete(key);
    const started = read().finally(() => {
      if (this.#inFlight.get(key) === started) this.#inFlight.delete(key);
    });
    this.#inFlight.set(key, started);
    return started;
  }
}
