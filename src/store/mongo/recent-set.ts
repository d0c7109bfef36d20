/** How many are kept in mind; whoever was not seen for longest is forgotten first. */
const MAX_RECENT = 10_000;

/** What was seen lately. It is a hint: what is true is in the database. */
export class RecentSet {
  readonly #names = new Set<string>();

  /** Whether it was seen before; from now on it was. */
  see(name: string): boolean {
    const isSeen = this.#names.delete(name);
    this.#names.add(name);
    if (this.#names.size > MAX_RECENT) this.#names.delete(this.#names.values().next().value as string);
    return isSeen;
  }
}
