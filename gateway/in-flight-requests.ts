/** How many places at the start may be done with before the list is made anew without them. */
const MAX_DONE = 256;

/**
 * What was sent and is not answered, by its place among all that was sent. Answers come in nearly that order.
 *
 * Not a `Map`: V8 links the table that one outgrew to the one after it, so whatever was in an old table when it was left
 * lives on until all of memory is searched: half of all requests, which every small collection until then has to copy.
 */
export class InFlightRequests<Request> {
  #requests: (Request | undefined)[] = [];
  /** How many were let go of, all before the first of the list. */
  #gone = 0;
  /** How many at the start of the list are done with. */
  #done = 0;

  /** How many were sent, answered or not. */
  get count(): number {
    return this.#gone + this.#requests.length;
  }

  add(request: Request): void {
    this.#requests.push(request);
  }

  /** The request at a place, which is then answered; undefined when it is already, or was never sent. */
  take(place: number): Request | undefined {
    const request = this.#requests[place - this.#gone];
    if (request === undefined) return undefined;
    this.#requests[place - this.#gone] = undefined;
    while (this.#done < this.#requests.length && this.#requests[this.#done] === undefined) this.#done += 1;
    if (this.#done >= MAX_DONE) {
      this.#requests = this.#requests.slice(this.#done);
      this.#gone += this.#done;
      this.#done = 0;
    }
    return request;
  }

  /** All that have no answer. */
  unanswered(): Request[] {
    return this.#requests.filter((request) => request !== undefined);
  }
}
