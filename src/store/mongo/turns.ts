/**
 * Lets works that share a name take turns, in the order in which they came. The database keeps every promise without it;
 * but a herd on one entry of an index is answered badly by some engines, and slowly by all.
 */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  /**
   * Runs a work when all earlier ones that share a name with it have ended.
   *
   * @param work gets whether it had to wait; what it throws is passed on
   */
  async take<Result>(names: readonly string[], work: (waited: boolean) => Promise<Result>): Promise<Result> {
    const earlier = names.flatMap((name) => this.#last.get(name) ?? []);
    const turn = Promise.allSettled(earlier).then(() => work(earlier.length > 0));
    for (const name of names) this.#last.set(name, turn);
    try {
      return await turn;
    } finally {
      for (const name of names) if (this.#last.get(name) === turn) this.#last.delete(name);
    }
  }
}
