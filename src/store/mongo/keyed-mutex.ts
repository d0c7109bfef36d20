/**
 * A mutex per key. It is an optimisation: the database enforces uniqueness without it, but many concurrent writes to
 * one index entry are slow on every engine and fail on some.
 */
export class KeyedMutex {
  readonly #holders = new Map<string, Promise<unknown>>();

  /**
   * Runs work while no other work holds any of the keys. A waiter re-checks each time a holder finishes; all waiters
   * check concurrently, so that one finished creation settles all of them.
   *
   * @param check returns the result if the work is no longer needed, else undefined
   */
  async run<Result>(
    keys: readonly string[],
    work: () => Promise<Result>,
    check: () => Promise<Result | undefined> = async () => undefined,
  ): Promise<Result> {
    for (;;) {
      const holders = keys.flatMap((key) => this.#holders.get(key) ?? []);
      if (holders.length === 0) return this.#hold(keys, work);
      await Promise.allSettled(holders);
      const result = await check();
      if (result !== undefined) return result;
    }
  }

  async #hold<Result>(keys: readonly string[], work: () => Promise<Result>): Promise<Result> {
    const running = work();
    for (const key of keys) this.#holders.set(key, running);
    try {
      return await running;
    } finally {
      for (const key of keys) this.#holders.delete(key);
    }
  }
}
