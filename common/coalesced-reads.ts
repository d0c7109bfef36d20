/**
 * Lets equal reads that come while one is under way share the next one. That begins after all of them came, so each still
 * sees every change that was answered before it; and a herd costs two reads instead of one each.
 */
export class CoalescedReads {
  readonly #underWay = new Map<string, Promise<unknown>>();
  readonly #next = new Map<string, Promise<unknown>>();

  /**
   * @param name the same for reads that give the same
   * @param read begins the read, for those who share it
   */
  read<Result>(name: string, read: () => Promise<Result>): Promise<Result> {
    const next = this.#next.get(name);
    if (next) return next as Promise<Result>;
    const begin = () => this.#begin(name, read);
    const underWay = this.#underWay.get(name);
    if (!underWay) return begin();
    const answer = underWay.then(begin, begin);
    this.#next.set(name, answer);
    return answer;
  }

  #begin<Result>(name: string, read: () => Promise<Result>): Promise<Result> {
    this.#next.delete(name);
    const begun = read().finally(() => {
      if (this.#underWay.get(name) === begun) this.#underWay.delete(name);
    });
    this.#underWay.set(name, begun);
    return begun;
  }
}
