/** The maximum number of names; the least recently added is evicted first. */
const MAX_RECENT = 10_000;

/** A bounded set of recently seen names. Only a hint: the database decides. */
export class RecentSet {
  readonly #names = new Set<string>();

  /** Adds a name. Returns whether it was present. */
  add(name: string): boolean {
    const isSeen = this.#names.delete(name);
    this.#names.add(name);
    if (this.#names.size > MAX_RECENT) this.#names.delete(this.#names.values().next().value as string);
    return isSeen;
  }
}
