/** A queue of several groups, each in its order, which take turns. */
export class FairQueue<Item extends { readonly group: string }> {
  /** Insertion order is the order of turns. */
  readonly #groups = new Map<string, Item[]>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(item: Item): void {
    const items = this.#groups.get(item.group);
    if (items) items.push(item);
    else this.#groups.set(item.group, [item]);
    this.#length += 1;
  }

  /** Takes at most `count` items, one of each group in turn. */
  take(count: number): Item[] {
    const taken: Item[] = [];
    for (const [group, items] of this.#groups) {
      if (taken.length >= count) break;
      // The last group takes all turns. Another one goes to the end of the loop.
      taken.push(...items.splice(0, this.#groups.size === 1 ? count - taken.length : 1));
      this.#groups.delete(group);
      if (items.length > 0) this.#groups.set(group, items);
    }
    this.#length -= taken.length;
    return taken;
  }
}
