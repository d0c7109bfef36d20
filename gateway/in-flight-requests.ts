/** How many answered requests at the start of the list cause it to be copied without them. */
const MAX_ANSWERED_PREFIX = 256;

/**
 * Pending requests by their index among all that were sent. Responses arrive nearly in that order.
 *
 * Not a `Map`: V8 links each table that a Map outgrew to its successor, so requests in an old table live until the next
 * full garbage collection: half of all requests, which every minor collection until then copies.
 */
export class InFlightRequests<Request> {
  #requests: (Request | undefined)[] = [];
  /** The number of requests that were removed from the start of the list. */
  #removed = 0;
  /** The number of answered requests at the start of the list. */
  #answeredPrefix = 0;

  /** The number of requests that were ever added. */
  get count(): number {
    return this.#removed + this.#requests.length;
  }

  add(request: Request): void {
    this.#requests.push(request);
  }

  /** Takes the request at an index; undefined when it was taken before or never added. */
  take(index: number): Request | undefined {
    const request = this.#requests[index - this.#removed];
    if (request === undefined) return undefined;
    this.#requests[index - this.#removed] = undefined;
    while (this.#answeredPrefix < this.#requests.length && this.#requests[this.#answeredPrefix] === undefined) {
      this.#answeredPrefix += 1;
    }
    if (this.#answeredPrefix >= MAX_ANSWERED_PREFIX) {
      this.#requests = this.#requests.slice(this.#answeredPrefix);
      this.#removed += this.#answeredPrefix;
      this.#answeredPrefix = 0;
    }
    return request;
  }

  pending(): Request[] {
    return this.#requests.filter((request) => request !== undefined);
  }
}
