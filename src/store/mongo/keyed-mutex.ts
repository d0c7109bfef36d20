/**
 * Lets one at a time work under a name. The database keeps every promise without it; but a herd on one entry of an index is
 * answered badly by some engines, and slowly by all.
 */
export class KeyedMutex {
  readonly #holders = new Map<string, Promise<unknown>>();

  /**
   * Works when nobody else works under any of the names. Who has to wait looks, at each end of another's work, whether
   * that has settled the matter, and all who wait look at once.
   *
   * @param names of what the work is about
   * @param look gives undefined when the work has yet to be done
   */
  async take<Result>(
    names: readonly string[],
    work: () => Promise<Result>,
    look: () => Promise<Result | undefined> = async () => undefined,
  ): Promise<Result> {
    for (;;) {
      const holders = names.flatMap((name) => this.#holders.get(name) ?? []);
      if (holders.length === 0) return this.#hold(names, work);
      await Promise.allSettled(holders);
      const settled = await look();
      if (settled !== undefined) return settled;
    }
  }

  async #hold<Result>(names: readonly string[], work: () => Promise<Result>): Promise<Result> {
    const held = work();
    for (const name of names) this.#holders.set(name, held);
    try {
      return await held;
    } finally {
      for (const name of names) this.#holders.delete(name);
    }
  }
}
